package notifytest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// FloatingIP is a floating IP of Neutron.
type FloatingIP struct {
	ID          string   `json:"id"`
	Network     string   `json:"floating_network_id"`
	Subnet      string   `json:"subnet_id,omitempty"`
	IP          string   `json:"floating_ip_address"`
	Project     string   `json:"project_id"`
	Port        *string  `json:"port_id"`
	Router      string   `json:"router_id"` // the stub sets it in its answers
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// Neutron is a stub of Neutron with floating IPs and their port forwardings, with networks, their subnets
// and their ports, and with routers and trunks. The zero value of Neutron is ready to use.
type Neutron struct {
	mu          sync.Mutex
	floatingIPs []*FloatingIP
	forwardings []*PortForwarding
	networks    []*Network
	subnets     []*Subnet
	ports       []*Port
	routers     []*Router
	trunks      []*Trunk
	faults      faultQueue
}

// FloatingIPs returns all floating IPs, sorted by address.
func (n *Neutron) FloatingIPs() []FloatingIP {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []FloatingIP{}
	for _, f := range n.floatingIPs {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b FloatingIP) int { return strings.Compare(a.IP, b.IP) })
	return all
}

// PutFloatingIP adds a floating IP to the stub of Neutron. If the stub already has a floating IP with the
// same address and network, PutFloatingIP only sets the port of that floating IP.
func (n *Neutron) PutFloatingIP(f FloatingIP) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.putFloatingIP(f)
}

func (n *Neutron) putFloatingIP(f FloatingIP) (id string) {
	for _, other := range n.floatingIPs {
		if other.IP == f.IP && other.Network == f.Network {
			other.Port = f.Port
			return other.ID
		}
	}
	f.ID = uuid.NewString()
	n.floatingIPs = append(n.floatingIPs, &f)
	return f.ID
}

// RenameFloatingIPs sets the description of all floating IPs, and removes their tags, as their projects can.
func (n *Neutron) RenameFloatingIPs(description string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.floatingIPs {
		f.Description, f.Tags = description, []string{}
	}
}

// InjectFaults adds faults to the stub. The stub answers each request with the first fault that matches the
// request.
func (n *Neutron) InjectFaults(faults ...Fault) { n.faults.add(faults) }

// ServeHTTP serves …/v2.0/floatingips, networks, subnets, ports and trunks, and the routes of routers and the
// removal of their interfaces.
func (n *Neutron) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	_, path, found := strings.Cut(r.URL.Path, "/v2.0/")
	if err != nil || !found {
		writeJSON(w, http.StatusNotFound, map[string]any{"NeutronError": "no such thing"})
		return
	}
	n.faults.serve(w, r, r.Method+" /"+path, func(Fault) (int, any) {
		n.mu.Lock()
		defer n.mu.Unlock()
		collection, path, _ := strings.Cut(path, "/")
		parts := strings.Split(path, "/")
		if collection == "floatingips" {
			return encodeNow(n.reply(r, parts, raw))
		}
		return encodeNow(n.replyNetwork(r, collection, parts, raw))
	})
}

func (n *Neutron) reply(r *http.Request, parts []string, raw []byte) (int, any) {
	var in struct {
		FloatingIP FloatingIP `json:"floatingip"`
		Tags       []string   `json:"tags"`
	}
	_ = json.Unmarshal(raw, &in) // the code below refuses a request that lacks a necessary body
	if parts[0] == "" && r.Method == http.MethodGet {
		return http.StatusOK, map[string]any{"floatingips": n.list(r)}
	}
	if parts[0] == "" {
		f := in.FloatingIP
		same := func(other *FloatingIP) bool { return other.IP == f.IP && other.Network == f.Network }
		if slices.ContainsFunc(n.floatingIPs, same) {
			return http.StatusConflict, map[string]any{
				"NeutronError": map[string]any{
					"type":    "FloatingIPAddressInUse",
					"message": "in use",
					"detail":  "",
				},
			}
		}
		f.ID, f.Tags = uuid.NewString(), []string{}
		n.floatingIPs = append(n.floatingIPs, &f)
		return http.StatusCreated, map[string]any{"floatingip": f}
	}
	i := slices.IndexFunc(n.floatingIPs, func(f *FloatingIP) bool { return f.ID == parts[0] })
	switch {
	case i < 0:
		return http.StatusNotFound, map[string]any{
			"NeutronError": map[string]any{
				"type":    "FloatingIPNotFound",
				"message": "not found",
				"detail":  "",
			},
		}
	case len(parts) > 1 && parts[1] == "port_forwardings":
		return n.replyForwardings(r, parts)
	case r.Method == http.MethodDelete && n.hasForwardings(parts[0]):
		return neutronError(http.StatusConflict, "FipInUseByPortForwarding")
	case r.Method == http.MethodDelete:
		n.floatingIPs = slices.Delete(n.floatingIPs, i, i+1)
		return http.StatusNoContent, nil
	case r.Method == http.MethodPut && len(parts) == 2:
		n.floatingIPs[i].Tags = in.Tags
		return http.StatusOK, map[string]any{"tags": in.Tags}
	case r.Method == http.MethodPut:
		n.floatingIPs[i].Port = in.FloatingIP.Port
	}
	return http.StatusOK, map[string]any{"floatingip": n.floatingIPs[i]}
}

func (n *Neutron) list(r *http.Request) []*FloatingIP {
	query, all := r.URL.Query(), []*FloatingIP{}
	for _, f := range n.floatingIPs {
		f.Router = n.routerOf(f)
		fits := true
		for key, has := range map[string]string{"floating_network_id": f.Network, "floating_ip_address": f.IP, "description": f.Description, "router_id": f.Router} {
			fits = fits && (query.Get(key) == "" || query.Get(key) == has)
		}
		if tag := query.Get("tags"); fits && (tag == "" || slices.Contains(f.Tags, tag)) {
			all = append(all, f)
		}
	}
	return all
}
