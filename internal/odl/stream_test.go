package odl_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/odl"
	"berth/internal/odl/odltest"
)

func TestOperationalData_FeaturesHostsAndPortStatuses(t *testing.T) {
	t.Parallel()
	c, client := newController(t)
	ctx := t.Context()
	features, err := client.Features(ctx)
	if err != nil || len(features) != 0 {
		t.Errorf(
			"read the features of a controller without operational data: got %v, error %v; want none",
			features,
			err,
		)
	}
	if hosts, err := client.HostConfigs(ctx, odl.HostConfigsPath); err != nil || len(hosts) != 0 {
		t.Errorf(
			"read the host configurations of a controller without operational data: got %v, error %v; want none",
			hosts,
			err,
		)
	}
	if status, err := client.PortStatus(ctx, network); err != nil || status != "" {
		t.Errorf(
			"read a port status of a controller without operational data: got %q, error %v; want an empty status",
			status,
			err,
		)
	}
	if err := client.PortStatuses(ctx, func(string, string) error { return errors.New("one") }); err != nil {
		t.Errorf(
			"list the port statuses of a controller without operational data: got error %v, want none",
			err,
		)
	}
	c.SetFeatures(map[string]string{odl.FeaturePortStatus: "", "qos-rules": `{"a":1}`})
	c.SetHostConfigs(odltest.HostConfig{ID: "h", Type: "ODL L2", Config: `{}`},
		odltest.HostConfig{Config: `{}`})
	c.SetPortStatus(network, "ACTIVE")

	features, err = client.Features(ctx)
	if d := cmp.Diff(map[string]string{odl.FeaturePortStatus: "", "qos-rules": `{"a":1}`}, features); d != "" ||
		err != nil {
		t.Error(d, err)
	}
	hosts, err := client.HostConfigs(ctx, odl.HostConfigsPath)
	if d := cmp.Diff([]odl.HostConfig{{ID: "h", Type: "ODL L2", Config: []byte(`{}`)}}, hosts); d != "" ||
		err != nil {
		t.Error(d, err)
	}
	if status, err := client.PortStatus(ctx, network); err != nil || status != "ACTIVE" {
		t.Errorf("read the status of a port: got %q, error %v; want ACTIVE", status, err)
	}
	told := map[string]string{}
	err = client.PortStatuses(ctx, func(id, status string) error {
		told[id] = status
		return nil
	})
	if d := cmp.Diff(map[string]string{network: "ACTIVE"}, told); d != "" || err != nil {
		t.Error(d, err)
	}
	for _, fault := range []odltest.Fault{{Status: 503}, {Status: 200, Body: "<html>"}, {Break: odltest.BreakReset}, {Status: 401}} {
		fault.Times = 100
		c.InjectFaults(fault)
		_, first := client.Features(ctx)
		_, second := client.HostConfigs(ctx, odl.HostConfigsPath)
		_, third := client.PortStatus(ctx, network)
		if fourth := client.PortStatuses(ctx, func(string, string) error { return nil }); first == nil ||
			second == nil ||
			third == nil ||
			fourth == nil {
			t.Errorf(
				"read operational data in four ways with the fault %+v: got the errors %v, %v, %v, %v; want an error each time",
				fault, first, second, third, fourth,
			)
		}
		c.ClearFaults()
	}
}

func TestParseFeatures_NamesOrJSON(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]map[string]string{
		"":     {},
		"a, b": {"a": "", "b": ""},
		`{"features":{"feature":[{"service-provider-feature":"neutron-extensions:a","configuration":"c"},{"service-provider-feature":"b"}]}}`: {"a": "c", "b": ""},
	} {
		t.Run(given, func(t *testing.T) {
			got, err := odl.ParseFeatures(given)
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("parse the features %s: result differs (-want +got):\n%s\nerror %v", given, d, err)
			}
		})
	}
	if got, err := odl.ParseFeatures(`{"features":7}`); err == nil {
		t.Errorf("parse invalid features: got %v, want an error", got)
	}
}

// The stream of a controller with TLS and a password uses TLS and the password, whatever URL the controller
// returns for the stream.
func TestWatch_UsesTLSIfTheControllerDoes(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	c.User, c.Password = "admin", "secret"
	server := httptest.NewUnstartedServer(c)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	config := odl.Config{
		URL:      server.URL + odltest.BasePath,
		User:     "admin",
		Password: "secret",
		CAPEM:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	heard := make(chan odl.ChangeEvent, 10)
	ctx, cancel := context.WithCancel(t.Context())
	begin := func() { c.SetPortStatus(network, "ACTIVE") }
	err := newClient(t, config).Watch(ctx, odl.TopicPorts, begin, func(n odl.ChangeEvent) {
		heard <- n
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if d := cmp.Diff(odl.ChangeEvent{ID: network, Operation: "updated"}, <-heard); d != "" {
		t.Error(d)
	}
	config.Password = "wrong"
	if err := newClient(t, config).Watch(t.Context(), odl.TopicPorts, func() {}, func(odl.ChangeEvent) {}); err == nil ||
		errors.Is(err, odl.ErrNotFound) {
		t.Errorf("watch ports with a wrong password: got error %v, want an error other than ErrNotFound", err)
	}
}

func TestWatch_FailsWithoutStream(t *testing.T) {
	t.Parallel()
	for name, location := range map[string]string{
		"no place":    "",
		"no host":     "ws:///x",
		"no stream":   "file:///etc/passwd",
		"no URL":      "ws://[::1",
		"no listener": "ws://127.0.0.1:1/x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newListClient(t, func(w http.ResponseWriter, r *http.Request) {
				if location != "" {
					w.Header().Set("Location", location)
				}
				if r.Method == http.MethodPost {
					_, _ = io.WriteString(w, `{"output":{"stream-name":"a/b=c"}}`)
				}
			})
			err := c.Watch(
				t.Context(),
				odl.TopicHostConfigs,
				func() { t.Error("watch without a valid stream URL: connected, want an error") },
				func(odl.ChangeEvent) {},
			)
			if err == nil {
				t.Error("watch without a valid stream URL: got no error, want one")
			}
		})
	}
}
