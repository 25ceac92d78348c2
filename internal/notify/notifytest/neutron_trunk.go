package notifytest

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// Subport is a subport of a trunk.
type Subport struct {
	Port    string `json:"port_id"`
	Type    string `json:"segmentation_type"`
	Segment int    `json:"segmentation_id"`
}

// Trunk is a trunk of Neutron.
type Trunk struct {
	ID       string    `json:"id"`
	Port     string    `json:"port_id"`
	AdminUp  bool      `json:"admin_state_up"`
	Subports []Subport `json:"sub_ports"`
}

// AddTrunk adds a trunk with a parent port and subports. Neutron changes no trunk while adminUp is false.
func (n *Neutron) AddTrunk(adminUp bool, parent string, subports ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := &Trunk{ID: uuid.NewString(), Port: parent, AdminUp: adminUp, Subports: []Subport{}}
	for i, port := range subports {
		t.Subports = append(t.Subports, Subport{port, "vlan", i + 1})
	}
	n.trunks = append(n.trunks, t)
}

// Trunks returns all trunks, in the order of their creation.
func (n *Neutron) Trunks() []Trunk {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []Trunk{}
	for _, t := range n.trunks {
		all = append(all, *t)
	}
	return all
}

// trunkUse returns the type of the error with which Neutron refuses to delete a port of a trunk, or "".
func (n *Neutron) trunkUse(port string) string {
	for _, t := range n.trunks {
		if t.Port == port {
			return "PortInUseAsTrunkParent"
		}
		if slices.ContainsFunc(t.Subports, func(s Subport) bool { return s.Port == port }) {
			return "PortInUseAsSubPort"
		}
	}
	return ""
}

// trunksPerPage is small, so that tests with few trunks read several pages.
const trunksPerPage = 2

// trunkPage returns a page of the list of trunks, which the parameter port_id restricts to those of a parent.
func (n *Neutron) trunkPage(r *http.Request) map[string]any {
	query := r.URL.Query()
	all := matching(n.trunks, func(t *Trunk) bool { return query.Get("port_id") == "" || query.Get("port_id") == t.Port })
	after := 1 + slices.IndexFunc(all, func(t *Trunk) bool { return t.ID == query.Get("marker") })
	page := append([]*Trunk{}, all[after:min(after+trunksPerPage, len(all))]...)
	body := map[string]any{"trunks": page}
	if after+len(page) < len(all) {
		query.Set("marker", page[len(page)-1].ID)
		next := "http://" + r.Host + r.URL.Path + "?" + query.Encode()
		body["trunks_links"] = []map[string]string{{"rel": "next", "href": next}}
	}
	return body
}

func (n *Neutron) replyTrunks(r *http.Request, parts []string, raw []byte) (int, any) {
	if parts[0] == "" {
		return http.StatusOK, n.trunkPage(r)
	}
	i := slices.IndexFunc(n.trunks, func(t *Trunk) bool { return t.ID == parts[0] })
	if i < 0 {
		return neutronError(http.StatusNotFound, "TrunkNotFound")
	}
	t := n.trunks[i]
	if r.Method == http.MethodPut && len(parts) == 1 {
		in := struct{ Trunk *Trunk }{t}
		_ = json.Unmarshal(raw, &in) // a body without attributes changes nothing
		return http.StatusOK, map[string]any{"trunk": t}
	}
	if !t.AdminUp {
		return neutronError(http.StatusConflict, "TrunkDisabled")
	}
	if r.Method == http.MethodDelete {
		n.trunks = slices.Delete(n.trunks, i, i+1)
		return http.StatusNoContent, nil
	}
	var in struct {
		Subports []Subport `json:"sub_ports"`
	}
	_ = json.Unmarshal(raw, &in) // a body without subports removes none
	for _, gone := range in.Subports {
		t.Subports = slices.DeleteFunc(t.Subports, func(s Subport) bool { return s.Port == gone.Port })
	}
	return http.StatusOK, t
}
