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
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/odl"
	"berth/internal/odl/odltest"
)

func TestWhatTheControllerTellsOfItself(t *testing.T) {
	t.Parallel()
	c, client := controller(t)
	ctx := t.Context()
	features, err := client.Features(ctx)
	if err != nil || len(features) != 0 {
		t.Errorf("none: %v, %v", features, err)
	}
	if hosts, err := client.Hosts(ctx, odl.HostsPath); err != nil || len(hosts) != 0 {
		t.Errorf("none: %v, %v", hosts, err)
	}
	if status, err := client.Status(ctx, network); err != nil || status != "" {
		t.Errorf("none: %q, %v", status, err)
	}
	if err := client.Statuses(ctx, func(string, string) error { return errors.New("one") }); err != nil {
		t.Errorf("none: %v", err)
	}
	c.Offer(map[string]string{odl.ReportsPortStatus: "", "qos-rules": `{"a":1}`})
	c.Manage(odltest.Host{ID: "h", Type: "ODL L2", Config: `{}`}, odltest.Host{Config: `{}`})
	c.SetStatus(network, "ACTIVE")

	features, err = client.Features(ctx)
	if d := cmp.Diff(map[string]string{odl.ReportsPortStatus: "", "qos-rules": `{"a":1}`}, features); d != "" || err != nil {
		t.Error(d, err)
	}
	hosts, err := client.Hosts(ctx, odl.HostsPath)
	if d := cmp.Diff([]odl.Host{{ID: "h", Type: "ODL L2", Config: []byte(`{}`)}}, hosts); d != "" || err != nil {
		t.Error(d, err)
	}
	if status, err := client.Status(ctx, network); err != nil || status != "ACTIVE" {
		t.Errorf("%q, %v", status, err)
	}
	told := map[string]string{}
	err = client.Statuses(ctx, func(id, status string) error {
		told[id] = status
		return nil
	})
	if d := cmp.Diff(map[string]string{network: "ACTIVE"}, told); d != "" || err != nil {
		t.Error(d, err)
	}
	for _, fault := range []odltest.Fault{{Status: 503}, {Status: 200, Body: "<html>"}, {Break: odltest.BreakReset}, {Status: 401}} {
		fault.Times = 100
		c.Inject(fault)
		_, first := client.Features(ctx)
		_, second := client.Hosts(ctx, odl.HostsPath)
		_, third := client.Status(ctx, network)
		if fourth := client.Statuses(ctx, func(string, string) error { return nil }); first == nil || second == nil || third == nil || fourth == nil {
			t.Errorf("%+v: %v, %v, %v, %v", fault, first, second, third, fourth)
		}
		c.Heal()
	}
}

func TestGivenFeatures(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]map[string]string{
		"":     {},
		"a, b": {"a": "", "b": ""},
		`{"features":{"feature":[{"service-provider-feature":"neutron-extensions:a","configuration":"c"},{"service-provider-feature":"b"}]}}`: {"a": "c", "b": ""},
	} {
		got, err := odl.ParseFeatures(given)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %s %v", given, d, err)
		}
	}
	if got, err := odl.ParseFeatures(`{"features":7}`); err == nil {
		t.Errorf("%v", got)
	}
}

// A controller that is reached by TLS and with a password is listened to in the same way, whatever address it names.
func TestStreamIsAsSafeAsTheController(t *testing.T) {
	t.Parallel()
	c := odltest.New()
	c.User, c.Password = "admin", "secret"
	server := httptest.NewUnstartedServer(c)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	config := odl.Config{URL: server.URL + odltest.Base, User: "admin", Password: "secret",
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	heard := make(chan odl.Notice, 10)
	ctx, cancel := context.WithCancel(t.Context())
	err := client(t, config).Watch(ctx, odl.PortTopic, func() { c.SetStatus(network, "ACTIVE") }, func(n odl.Notice) {
		heard <- n
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if d := cmp.Diff(odl.Notice{ID: network, Operation: "updated"}, <-heard); d != "" {
		t.Error(d)
	}
	config.Password = "wrong"
	if err := client(t, config).Watch(t.Context(), odl.PortTopic, func() {}, func(odl.Notice) {}); err == nil || errors.Is(err, odl.ErrAbsent) {
		t.Errorf("%v", err)
	}
}

func TestStreamThatCannotBeHeardIsAnError(t *testing.T) {
	t.Parallel()
	for name, location := range map[string]string{
		"no place": "", "no host": "ws:///x", "no stream": "file:///etc/passwd", "no URL": "ws://[::1", "nobody there": "ws://127.0.0.1:1/x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lister(t, 10*time.Second, func(w http.ResponseWriter, r *http.Request) {
				if location != "" {
					w.Header().Set("Location", location)
				}
				if r.Method == http.MethodPost {
					_, _ = io.WriteString(w, `{"output":{"stream-name":"a/b=c"}}`)
				}
			})
			err := c.Watch(t.Context(), odl.HostTopic, func() { t.Error("connected") }, func(odl.Notice) {})
			if err == nil {
				t.Error("no error")
			}
		})
	}
}
