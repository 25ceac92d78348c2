package lease_test

import (
	"errors"
	"testing"

	"berth/internal/lease"
)

func TestFindHypervisor_ByHostnameIDServiceAndPart(t *testing.T) {
	t.Parallel()
	all := []lease.Hypervisor{
		{ID: "1", Hostname: "cmp-1.example.org", Service: "cmp-1"},
		{ID: "2", Hostname: "cmp-10.example.org", Service: "cmp-10"},
		{ID: "3", Hostname: "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b01", Service: "ironic-1"},
		{ID: "4", Hostname: "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b0a", Service: "ironic-2"},
		{ID: "5", Hostname: "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b0b", Service: "ironic-2"},
		{ID: "6", Hostname: "7", Service: "seven"},
		{ID: "7", Hostname: "lost"},
		{ID: "8", Hostname: "cmp-2", Service: "cmp-2"},
		{ID: "9", Hostname: "thief", Service: "CMP-2"},
		{ID: "11", Hostname: "twin", Service: "twin-1"},
		{ID: "12", Hostname: "twin", Service: "twin-2"},
	}
	for name, want := range map[string]string{
		"cmp-1.example.org": "1", "2": "2", "cmp-1": "1", "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b01": "3", "ironic-1": "3", "4": "4",
		"7":   "6", // the hypervisor with this hostname precedes the one with this ID
		"b0b": "5",
	} {
		if h, err := lease.FindHypervisor(all, name); h.ID != want || err != nil {
			t.Errorf("find the hypervisor %s: got %+v, error %v; want the one with the ID %s",
				name, h, err, want)
		}
	}
	for name, want := range map[string]lease.Kind{
		"":         lease.UnknownHost,
		"nobody":   lease.UnknownHost,
		"lost":     lease.UnknownHost,
		"ironic-2": lease.AmbiguousHost,
		"example":  lease.AmbiguousHost,
		"thief":    lease.AmbiguousHost, // it names the compute service of cmp-2
		"cmp-2":    lease.AmbiguousHost,
		"12":       lease.AmbiguousHost,
	} {
		var fault *lease.Fault
		if h, err := lease.FindHypervisor(all, name); !errors.As(err, &fault) || fault.Kind != want {
			t.Errorf("find the hypervisor %q: got %+v, error %v; want a fault of the kind %s",
				name, h, err, want)
		}
	}
}

func TestTrustedHypervisors_OnlyNodesShareAComputeService(t *testing.T) {
	t.Parallel()
	const node, other = "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b01", "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b02"
	for name, c := range map[string]struct{ host, service, otherHost, otherService, want string }{
		"own service":              {"a.org", "a", "b.org", "b", "a"},
		"hostname as service":      {"a", "a", "b", "b", "a"},
		"service of another one":   {"a", "b", "b.org", "b", ""},
		"in other letters":         {"a", "B", "b.org", "b", ""},
		"hostname of another one":  {"a", "b.org", "b.org", "b", ""},
		"nodes of one service":     {node, "i", other, "i", "i"},
		"compute host with a node": {"a", "i", node, "i", ""},
		"node with a compute host": {node, "b", "b.org", "b", ""},
		"services are not known":   {"a", "", "b", "", ""},
	} {
		all, others, _ := lease.TrustedHypervisors([]lease.Hypervisor{
			{Hostname: c.host, Service: c.service},
			{Hostname: c.otherHost, Service: c.otherService},
		})
		if len(all) != 2 || others != 0 || all[0].Service != c.want {
			t.Errorf("%s: got %+v and %d others, want two and the service %q of the first one",
				name, all, others, c.want)
		}
	}
}
