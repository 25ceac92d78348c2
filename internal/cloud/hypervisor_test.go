package cloud_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/cloud"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

func TestHypervisors_WithTheirComputeServices(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	s.nova.PutHypervisor(notifytest.Hypervisor{Hostname: "a", Zone: "east", State: "disabled"})
	s.nova.PutHypervisor(notifytest.Hypervisor{Hostname: "b", State: "down"})
	s.nova.PutHypervisor(notifytest.Hypervisor{
		Hostname: "c.example.org",
		Service:  "c",
		Version:  8002000,
		CPUInfo:  `{"arch": "x86_64"}`,
	})
	s.nova.PutHypervisor(notifytest.Hypervisor{Hostname: "node-7", Service: "ironic", Type: "ironic"})
	want := []lease.Hypervisor{
		{
			ID:               "1",
			Hostname:         "a",
			Service:          "a",
			Type:             "QEMU",
			AvailabilityZone: "east",
		},
		{
			ID:               "2",
			Hostname:         "b",
			Service:          "b",
			Type:             "QEMU",
			AvailabilityZone: "nova",
			Silent:           true,
		},
		{
			ID:               "3",
			Hostname:         "c",
			Service:          "c",
			Type:             "QEMU",
			AvailabilityZone: "nova",
			Up:               true,
		},
		{
			ID:               "4",
			Hostname:         "c.example.org",
			Service:          "c",
			Type:             "QEMU",
			Version:          8002000,
			CPUInfo:          `{"arch": "x86_64"}`,
			AvailabilityZone: "nova",
			Up:               true,
		},
		{
			ID:               "5",
			Hostname:         "node-7",
			Service:          "ironic",
			Type:             "ironic",
			AvailabilityZone: "nova",
			Up:               true,
		},
	}
	s.expectHypervisors(want)

	// Hypervisors must not return the availability zone of the reservation as the zone of the host
	s.apply(hostsClaim("a"))
	want[0].AvailabilityZone = ""
	s.expectHypervisors(want)
}

func (s cloudTest) expectHypervisors(want []lease.Hypervisor) {
	s.Helper()
	got, err := s.Hypervisors(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		s.Error(d)
	}
}

// Newer microversions of Nova return the ID as a UUID and the CPU information
// as an object. Nova can also refuse to list the availability zones.
func TestHypervisors_OfAnyMicroversion(t *testing.T) {
	t.Parallel()
	zones := http.StatusForbidden
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/os-availability-zone/detail") {
			w.WriteHeader(zones)
			return
		}
		_, _ = w.Write([]byte(`{"hypervisors":[
			{"id":"b1e43b5f-eec1-44e0-9f10-7b4945c0226d","hypervisor_hostname":"a","service":{"host":"a"},"cpu_info":{"arch": "arm"},"state":"up","status":"enabled"},
			{"id":2,"hypervisor_hostname":"b","service":{"host":"b"},"cpu_info":null,"vcpus":null}]}`))
	}))
	t.Cleanup(server.Close)
	c, err := cloud.New(cloud.Config{Nova: server.URL, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	cloudTest{T: t, Cloud: c}.expectHypervisors([]lease.Hypervisor{
		{
			ID:       "b1e43b5f-eec1-44e0-9f10-7b4945c0226d",
			Hostname: "a",
			Service:  "a",
			CPUInfo:  `{"arch":"arm"}`,
			Up:       true,
		},
		{ID: "2", Hostname: "b", Service: "b"},
	})
	zones = http.StatusInternalServerError
	if all, err := c.Hypervisors(t.Context()); err == nil {
		t.Errorf(
			"list hypervisors while Nova cannot list the availability zones: got %+v, want an error",
			all,
		)
	}
}

func TestHypervisors_NoneWithoutNova(t *testing.T) {
	t.Parallel()
	c, err := cloud.New(cloud.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cloudTest{T: t, Cloud: c}.expectHypervisors(nil)
	cloudTest{T: t}.expectHypervisors(nil)
}

func TestProvision_AggregatesContainComputeServices(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	s.nova.PutHypervisor(notifytest.Hypervisor{Hostname: "cmp-9.example.org", Service: "cmp-9"})
	if _, err := s.Provision(t.Context(), hostsClaim("cmp-9.example.org")); err == nil {
		t.Error("reserve a hypervisor by its hostname: got no error, want Nova's refusal")
	}
	s.apply(hostsClaim("cmp-9"))
	s.want(hostsClaim(), map[string][]string{"own": {"cmp-9"}})
}
