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

// FloatingIP is a floating IP.
type FloatingIP struct {
	ID          string   `json:"id"`
	Network     string   `json:"floating_network_id"`
	Subnet      string   `json:"subnet_id,omitempty"`
	IP          string   `json:"floating_ip_address"`
	Project     string   `json:"project_id"`
	Port        *string  `json:"port_id"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// Neutron is a Neutron that has floating IPs and nothing else. Its zero value is ready.
type Neutron struct {
	mu     sync.Mutex
	all    []*FloatingIP
	faults faults
}

// FloatingIPs lists them by address.
func (n *Neutron) FloatingIPs() []FloatingIP {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []FloatingIP{}
	for _, f := range n.all {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b FloatingIP) int { return strings.Compare(a.IP, b.IP) })
	return all
}

// Add adds a floating IP of somebody else, or attaches one that is there already to a port.
func (n *Neutron) PutFloatingIP(f FloatingIP) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, other := range n.all {
		if other.IP == f.IP && other.Network == f.Network {
			other.Port = f.Port
			return
		}
	}
	f.ID = uuid.NewString()
	n.all = append(n.all, &f)
}

// Inject adds faults, which meet requests in their order.
func (n *Neutron) InjectFaults(faults ...Fault) { n.faults.add(faults) }

// ServeHTTP answers below …/v2.0/floatingips.
func (n *Neutron) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	_, path, found := strings.Cut(r.URL.Path, "/floatingips")
	if err != nil || !found {
		write(w, http.StatusNotFound, map[string]any{"NeutronError": "no such thing"})
		return
	}
	n.faults.meet(w, r, r.Method+" /floatingips"+path, func(Fault) (int, any) {
		n.mu.Lock()
		defer n.mu.Unlock()
		return encoded(n.answer(r, strings.Split(strings.Trim(path, "/"), "/"), raw))
	})
}

func (n *Neutron) answer(r *http.Request, parts []string, raw []byte) (int, any) {
	var in struct {
		FloatingIP FloatingIP `json:"floatingip"`
		Tags       []string   `json:"tags"`
	}
	_ = json.Unmarshal(raw, &in) // a request without its body is refused where it lacks it
	if parts[0] == "" && r.Method == http.MethodGet {
		return http.StatusOK, map[string]any{"floatingips": n.list(r)}
	}
	if parts[0] == "" {
		f := in.FloatingIP
		if slices.ContainsFunc(n.all, func(other *FloatingIP) bool { return other.IP == f.IP && other.Network == f.Network }) {
			return http.StatusConflict, map[string]any{"NeutronError": map[string]any{"type": "FloatingIPAddressInUse", "message": "in use", "detail": ""}}
		}
		f.ID, f.Tags = uuid.NewString(), []string{}
		n.all = append(n.all, &f)
		return http.StatusCreated, map[string]any{"floatingip": f}
	}
	i := slices.IndexFunc(n.all, func(f *FloatingIP) bool { return f.ID == parts[0] })
	switch {
	case i < 0:
		return http.StatusNotFound, map[string]any{"NeutronError": map[string]any{"type": "FloatingIPNotFound", "message": "not found", "detail": ""}}
	case r.Method == http.MethodDelete:
		n.all = slices.Delete(n.all, i, i+1)
		return http.StatusNoContent, nil
	case r.Method == http.MethodPut && len(parts) == 2:
		n.all[i].Tags = in.Tags
		return http.StatusOK, map[string]any{"tags": in.Tags}
	case r.Method == http.MethodPut:
		n.all[i].Port = in.FloatingIP.Port
	}
	return http.StatusOK, map[string]any{"floatingip": n.all[i]}
}

func (n *Neutron) list(r *http.Request) []*FloatingIP {
	query, all := r.URL.Query(), []*FloatingIP{}
	for _, f := range n.all {
		fits := true
		for key, has := range map[string]string{"floating_network_id": f.Network, "floating_ip_address": f.IP, "description": f.Description} {
			fits = fits && (query.Get(key) == "" || query.Get(key) == has)
		}
		if tag := query.Get("tags"); fits && (tag == "" || slices.Contains(f.Tags, tag)) {
			all = append(all, f)
		}
	}
	return all
}
