package server_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/internal/config"
	"berth/internal/devstack"
	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

func TestDevRun_ReachableAndKeepsData(t *testing.T) {
	t.Parallel()
	data := servertest.DataFolder(t)
	settings := append([]string{"BERTH_DATA=" + data}, servertest.FreePorts...)
	first := servertest.StartDev(t, settings...)
	found := first.Addresses(t, data)

	for name, url := range map[string]string{"API": found["BERTH_URL"] + "/readyz", "UI": found["TEMPORAL_UI"]} {
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(name, err)
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("GET the address of %s: got %s, want 200", name, r.Status)
		}
	}
	for name, value := range found {
		if name == "BERTH_DATABASE_URL" || value == data {
			continue
		}
		for url := range strings.FieldsSeq(value) {
			if !strings.Contains(first.Output(), url) {
				t.Errorf("output of the development run: want it to contain the URL %s of %s", url, name)
			}
		}
	}
	second := servertest.StartDev(t, settings...)
	<-second.Done
	refusal := "another run (process " + strconv.Itoa(first.Cmd.Process.Pid) + ") uses " + data
	if second.Cmd.ProcessState.ExitCode() != 1 || !strings.Contains(second.Output(), refusal) {
		t.Errorf(
			"a second run on the same data folder: want exit code 1 and the process ID of the first run, got the output %s",
			second.Output(),
		)
	}
	storetest.Exec(t, found["BERTH_DATABASE_URL"], `create table kept ()`)

	first.Stop(t, syscall.SIGTERM)

	if code := first.Cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("after SIGTERM the run exited with code %d, want 0:\n%s", code, first.Output())
	}
	if left, _ := config.ReadAddresses(data); left != nil {
		t.Errorf("the address file after the end of the run: got error %v, want that it does not exist", left)
	}
	third := servertest.StartDev(t, settings...)
	storetest.Exec(t, third.Addresses(t, data)["BERTH_DATABASE_URL"], `drop table kept`)
}

func TestDevRun_StartsAgainAfterKill(t *testing.T) {
	t.Parallel()
	data := servertest.DataFolder(t)
	settings := []string{"BERTH_DATA=" + data}
	for _, name := range []string{"BERTH_DEV_DATABASE_PORT", "BERTH_DEV_TEMPORAL_PORT", "BERTH_DEV_UI_PORT", "BERTH_DEV_ODL_PORT"} {
		port, err := devstack.Port(0)
		if err != nil {
			t.Fatal(err)
		}
		settings = append(settings, name+"="+strconv.Itoa(port))
	}
	settings = append(settings, "BERTH_LISTEN=127.0.0.1:0")
	first := servertest.StartDev(t, settings...)
	first.Addresses(t, data)

	first.Stop(t, syscall.SIGKILL)

	second := servertest.StartDev(t, settings...)
	for !strings.Contains(second.Output(), "Ctrl-C") {
		select {
		case <-second.Done:
			t.Fatalf(
				"the second run has ended; want it to wait until the ports of the killed run are free:\n%s",
				second.Output(),
			)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestDevRun_NamesSettingOfPortInUse(t *testing.T) {
	t.Parallel()
	s, err := devstack.Serve(0, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	address := strings.TrimPrefix(s.URL, "http://")
	_, port, _ := strings.Cut(address, ":")
	for setting, name := range map[string]string{
		"BERTH_LISTEN=" + address:         "port " + port + " (BERTH_LISTEN) is already in use",
		"BERTH_DEV_DATABASE_PORT=" + port: "port " + port + " (BERTH_DEV_DATABASE_PORT) is already in use",
		"BERTH_DEV_TEMPORAL_PORT=" + port: "port " + port + " (BERTH_DEV_TEMPORAL_PORT) is already in use",
		"BERTH_DEV_UI_PORT=" + port:       "port " + port + " (BERTH_DEV_UI_PORT) is already in use",
		"BERTH_DEV_ODL_PORT=" + port:      "port " + port + " (BERTH_DEV_ODL_PORT) is already in use",
	} {
		r := servertest.StartDev(
			t,
			append(
				append([]string{"BERTH_DATA=" + servertest.DataFolder(t)}, servertest.FreePorts...),
				setting,
			)...)
		<-r.Done
		if r.Cmd.ProcessState.ExitCode() != 1 || !strings.Contains(r.Output(), name) {
			t.Errorf(
				"start a run with %s although the port is in use: want exit code 1 and the setting in the message, got: %s",
				setting,
				r.Output(),
			)
		}
	}
}

// TestDevRun_UsesGivenServices checks that a development run starts stubs only of those services that have no
// URL.
func TestDevRun_UsesGivenServices(t *testing.T) {
	t.Parallel()
	sent := make(chan struct{})
	send := sync.OnceFunc(func() { close(sent) })
	controller := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && strings.HasPrefix(r.URL.Path, "/controller/nb/v2/neutron/networks") {
			send()
		}
	}))
	t.Cleanup(controller.Close)
	nova := httptest.NewServer(&notifytest.Nova{})
	t.Cleanup(nova.Close)
	data := servertest.DataFolder(t)
	settings := append([]string{"BERTH_DATA=" + data}, servertest.FreePorts...)
	given := []string{
		"BERTH_ODL_URL=" + controller.URL + "/controller/nb/v2/neutron",
		"BERTH_NOVA_URL=" + nova.URL,
	}

	r := servertest.StartDev(t, slices.Concat(settings, given)...)
	found := r.Addresses(t, data)

	if got := found["BERTH_ODL_URL"] + " " + found["BERTH_NOVA_URL"]; got != controller.URL+"/controller/nb/v2/neutron "+nova.URL {
		t.Errorf("addresses of OpenDaylight and Nova: got %s, want the given ones", got)
	}
	if found["STUB_URLS"] != found["BERTH_NEUTRON_URL"] {
		t.Errorf("URLs of stubs: got %q, want only the one of Neutron, %q",
			found["STUB_URLS"], found["BERTH_NEUTRON_URL"])
	}
	for _, want := range []string{"OpenDaylight is the one of BERTH_ODL_URL: " + controller.URL, "Nova is the one of BERTH_NOVA_URL: " + nova.URL,
		"the stub of Neutron is running"} {
		if !strings.Contains(r.Output(), want) {
			t.Errorf("output of the development run: want it to contain %q, got:\n%s", want, r.Output())
		}
	}
	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, found["BERTH_URL"]+"/networking/v2.0/networks",
		strings.NewReader(`{"network":{"name":"blue"}}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", "admin")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Fatalf("create a network: got %s, want 201", response.Status)
	}
	select {
	case <-sent:
	case <-time.After(5 * time.Minute):
		t.Fatalf("the given controller has not got the network; output of the run:\n%s", r.Output())
	}
	r.Stop(t, syscall.SIGTERM)

	// A shell that has read the address file contains the URLs of stubs that have ended.
	for name, url := range found {
		if name != "BERTH_LISTEN" && name != "BERTH_URL" && name != "BERTH_ODL_URL" &&
			name != "BERTH_NOVA_URL" {
			settings = append(settings, name+"="+url)
		}
	}
	again := servertest.StartDev(t, slices.Concat(settings, given)...).Addresses(t, data)
	if again["BERTH_NEUTRON_URL"] == found["BERTH_NEUTRON_URL"] ||
		again["STUB_URLS"] != again["BERTH_NEUTRON_URL"] {
		t.Errorf("Neutron of the second run: got %s with the stubs %q, want a new stub",
			again["BERTH_NEUTRON_URL"], again["STUB_URLS"])
	}
}
