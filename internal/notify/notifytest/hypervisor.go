package notifytest

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Hypervisor is a hypervisor in the stub of Nova. As in Nova, aggregates and lists of servers contain the
// name of a hypervisor's compute service, and not the hypervisor's hostname. Several Ironic nodes may have
// the same compute service.
type Hypervisor struct {
	ID       int
	Hostname string
	Service  string // default: the hostname without its domain
	// availability zone of the compute service while no aggregate gives it another one; default: nova
	Zone    string
	Type    string
	Version int
	CPUInfo string
	State   string // up, down or disabled; disabled: up, but the compute service is disabled
}

// hypervisors are the hypervisors of a stub by hostname.
type hypervisors struct {
	all    map[string]Hypervisor
	mirror func(context.Context) ([]string, error)
}

// PutHypervisor adds a hypervisor, or replaces the hypervisor with the same hostname.
func (n *Nova) PutHypervisor(h Hypervisor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hypervisors.put(h)
}

// SetHypervisor sets the state of a hypervisor, and adds the hypervisor if the stub does not have it.
func (n *Nova) SetHypervisor(hostname, state string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hypervisors.all[hostname]
	h.Hostname, h.State = hostname, state
	n.hypervisors.put(h)
}

// MirrorHypervisors makes the stub add a hypervisor for each hostname that f returns. In a real cloud, every
// hypervisor registers itself in Placement; in tests and development runs, root providers in Placement exist
// without any hypervisor.
func (n *Nova) MirrorHypervisors(f func(context.Context) (hostnames []string, err error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hypervisors.mirror = f
}

func (s *hypervisors) put(h Hypervisor) {
	if s.all == nil {
		s.all = map[string]Hypervisor{}
	}
	if h.ID = s.all[h.Hostname].ID; h.ID == 0 {
		h.ID = len(s.all) + 1
	}
	service, _, _ := strings.Cut(h.Hostname, ".")
	h.Service = cmp.Or(h.Service, service)
	h.Zone = cmp.Or(h.Zone, "nova")
	h.Type = cmp.Or(h.Type, "QEMU")
	h.State = cmp.Or(h.State, "up")
	s.all[h.Hostname] = h
}

func (s *hypervisors) hasService(service string) bool {
	for _, h := range s.all {
		if h.Service == service {
			return true
		}
	}
	return false
}

// updateMirror adds the hypervisors that the stub mirrors.
func (n *Nova) updateMirror(ctx context.Context) error {
	n.mu.Lock()
	mirror := n.hypervisors.mirror
	n.mu.Unlock()
	if mirror == nil {
		return nil
	}
	hostnames, err := mirror(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, hostname := range hostnames {
		if _, known := n.hypervisors.all[hostname]; !known {
			n.hypervisors.put(Hypervisor{Hostname: hostname})
		}
	}
	return err
}

// listHypervisors answers GET …/os-hypervisors/detail with the hypervisors, or with the status of a fault.
func (n *Nova) listHypervisors(w http.ResponseWriter, r *http.Request) {
	if f := n.faults.take("GET /os-hypervisors/detail"); f.Status != 0 {
		w.WriteHeader(f.Status)
		return
	}
	if err := n.updateMirror(r.Context()); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []map[string]any{}
	for _, h := range slices.SortedFunc(maps.Values(n.hypervisors.all), func(a, b Hypervisor) int { return a.ID - b.ID }) {
		one := map[string]any{
			"id":                  h.ID,
			"hypervisor_hostname": h.Hostname,
			"service":             map[string]any{"id": h.ID, "host": h.Service},
			"hypervisor_type":     h.Type,
			"hypervisor_version":  h.Version,
			"cpu_info":            h.CPUInfo,
			"state":               "up",
			"status":              "enabled",
		}
		switch h.State {
		case "down":
			one["state"] = "down"
		case "disabled":
			one["status"] = "disabled"
		}
		all = append(all, one)
	}
	writeJSON(w, http.StatusOK, map[string]any{"hypervisors": all})
}

// listZones answers GET …/os-availability-zone/detail.
func (n *Nova) listZones(w http.ResponseWriter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	zones := map[string]map[string]any{}
	for _, h := range n.hypervisors.all {
		zone := h.Zone
		for _, a := range n.compute.aggregates {
			if a.Zone != "" && slices.Contains(a.Hosts, h.Service) {
				zone = a.Zone
			}
		}
		if zones[zone] == nil {
			zones[zone] = map[string]any{}
		}
		zones[zone][h.Service] = map[string]any{
			"nova-compute": map[string]any{"active": true, "available": true},
		}
	}
	all := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		all = append(all, map[string]any{
			"zoneName":  name,
			"zoneState": map[string]any{"available": true},
			"hosts":     zones[name],
		})
	}
	writeJSON(w, http.StatusOK, map[string]any{"availabilityZoneInfo": all})
}

// refuseUnknownService returns an error answer to a request that adds a host to an aggregate if no compute
// service has the name of the host. For every other request, and if the service exists, refuseUnknownService
// returns 0.
func (n *Nova) refuseUnknownService(c computeCall) (int, any) {
	var host struct{ Host string }
	if c.parts[0] != "os-aggregates" || json.Unmarshal(c.body["add_host"], &host) != nil ||
		n.hasService(host.Host) {
		return 0, nil
	}
	if err := n.updateMirror(c.Context()); err != nil {
		return http.StatusInternalServerError, nil
	}
	if n.hasService(host.Host) {
		return 0, nil
	}
	return notFound("Compute host", host.Host)
}

func (n *Nova) hasService(service string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hypervisors.hasService(service)
}
