package notifytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Aggregate is a host aggregate.
type Aggregate struct {
	ID       int               `json:"id"`
	Name     string            `json:"name"`
	Zone     string            `json:"availability_zone,omitempty"`
	Hosts    []string          `json:"hosts"`
	Metadata map[string]string `json:"metadata"`
}

// Flavor is a Nova flavor with its extra specs and access list.
type Flavor struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	VCPUs     int               `json:"vcpus"`
	RAM       int               `json:"ram"`
	Disk      int               `json:"disk"`
	Ephemeral int               `json:"OS-FLV-EXT-DATA:ephemeral"`
	Public    bool              `json:"os-flavor-access:is_public"`
	Specs     map[string]string `json:"extra_specs"`
	Access    []string          `json:"access"` // project IDs
}

// ServerGroup is a server group. The groups that the compute API creates belong to the project of the caller,
// for which Project is empty.
type ServerGroup struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Policies []string `json:"policies"`
	Project  string   `json:"project_id,omitempty"`
}

// Server is a server in the stub of Nova. After a request has deleted the server, the next PollsUntilGone
// lists of servers still contain it.
type Server struct {
	ID             string `json:"id"`
	Name           string `json:"name"`
	Host           string `json:"host"`
	Flavor         string `json:"flavor"`
	PollsUntilGone int    `json:"linger"`
	Deleted        bool   `json:"deleted"`
	MetadataSize   int    `json:"metadata_size,omitempty"` // bytes
	SoftDeleted    bool   `json:"soft_deleted"`            // the action restore makes the server active again
	Project        string `json:"project,omitempty"`
	// Created is zero if a test does not need it.
	Created time.Time `json:"created,omitzero"`
}

// ComputeState is a snapshot of Nova's resources in a fixed order, for comparison.
type ComputeState struct {
	Aggregates   []Aggregate   `json:"aggregates"`
	Flavors      []Flavor      `json:"flavors"`
	ServerGroups []ServerGroup `json:"server_groups"`
	Servers      []Server      `json:"servers"`
	Images       []string      `json:"images"` // their names
}

// compute is the state of the compute API in the stub of Nova; ComputeState is a snapshot of this state.
type compute struct {
	lastID     int
	aggregates []*Aggregate
	flavors    []*Flavor
	groups     []*ServerGroup
	servers    []*Server
	migrations []*Migration
	images     []image
	softDelete bool // DELETE only soft-deletes servers
	// moveAllocations, if set, moves the allocations of a consumer in Placement to another consumer, or
	// deletes them if there is no other consumer.
	moveAllocations func(from, to string)
}

// ComputeState returns a snapshot of the stub's compute API.
func (n *Nova) ComputeState() ComputeState {
	n.mu.Lock()
	defer n.mu.Unlock()
	var c ComputeState
	for _, made := range n.compute.images {
		c.Images = append(c.Images, made.Name)
	}
	for _, a := range n.compute.aggregates {
		copied := *a
		copied.Hosts, copied.Metadata = slices.Sorted(slices.Values(a.Hosts)), maps.Clone(a.Metadata)
		c.Aggregates = append(c.Aggregates, copied)
	}
	slices.SortFunc(c.Aggregates, func(a, b Aggregate) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range n.compute.flavors {
		copied := *f
		copied.Specs, copied.Access = maps.Clone(f.Specs), slices.Clone(f.Access)
		c.Flavors = append(c.Flavors, copied)
	}
	for _, g := range n.compute.groups {
		c.ServerGroups = append(c.ServerGroups, *g)
	}
	for _, s := range n.compute.servers {
		c.Servers = append(c.Servers, *s)
	}
	return c
}

// AddServer adds a server to the stub of Nova. If the server has no ID, AddServer gives the server a new ID.
func (n *Nova) AddServer(s Server) Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.ID == "" {
		s.ID = uuid.NewString()
	}
	n.compute.servers = append(n.compute.servers, &s)
	return s
}

// AddImage adds an image of another project than that of the caller of the compute API.
func (n *Nova) AddImage(name string, metadata map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.compute.images = append(n.compute.images, image{ID: uuid.NewString(), Name: name, Metadata: metadata})
}

// EnableSoftDelete makes DELETE only soft-delete the servers, as Nova does with the option
// reclaim_instance_interval.
func (n *Nova) EnableSoftDelete() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.compute.softDelete = true
}

// MoveAllocations sets the function with which the stub changes the allocations of servers and migrations in
// Placement. If `to` is empty, the function deletes the allocations of the consumer `from`. The function must
// not call methods of the stub.
func (n *Nova) MoveAllocations(move func(from, to string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.compute.moveAllocations = move
}

// RemoveServers removes the servers of a host, without a request to the compute API.
func (n *Nova) RemoveServers(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.compute.servers = slices.DeleteFunc(n.compute.servers, func(s *Server) bool { return s.Host == host })
}

// AddFlavor adds a flavor. Without an access list, the flavor is public.
func (n *Nova) AddFlavor(f Flavor) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f.Public = f.Access == nil
	n.compute.flavors = append(n.compute.flavors, &f)
}

// AddServerGroup adds a server group of another project than that of the caller of the compute API.
func (n *Nova) AddServerGroup(g ServerGroup) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.compute.groups = append(n.compute.groups, &g)
}

// computeCall is a request to the compute API.
type computeCall struct {
	*http.Request
	parts []string // path segments from the collection on
	body  map[string]json.RawMessage
}

// collections maps the name of a collection in the path of the compute API, such as "servers", to the handler
// of the collection.
var collections = map[string]func(*compute, computeCall) (int, any){
	"os-aggregates":    (*compute).serveAggregates,
	"flavors":          (*compute).serveFlavors,
	"images":           (*compute).serveImages,
	"os-migrations":    (*compute).serveMigrations,
	"os-server-groups": (*compute).serveServerGroups,
	"servers":          (*compute).serveServers,
}

// parseCall finds the name of a collection in the path of a request; any prefix may precede the name.
func parseCall(r *http.Request, raw []byte) (computeCall, func(*compute, computeCall) (int, any)) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	for i, part := range parts {
		if f, ok := collections[part]; ok {
			c := computeCall{Request: r, parts: parts[i:], body: map[string]json.RawMessage{}}
			_ = json.Unmarshal(raw, &c.body) // a handler that needs the body rejects a request without one
			return c, f
		}
	}
	return computeCall{}, nil
}

// matches reports whether the call has the given method, and the given number of path segments after the
// collection.
func (c computeCall) matches(method string, after int) bool {
	return c.Method == method && len(c.parts) == after+1
}

func errorBody(status int, kind, format string, args ...any) (int, any) {
	return status, map[string]any{
		kind: map[string]any{"code": status, "message": fmt.Sprintf(format, args...)},
	}
}

func notFound(what, id string) (int, any) {
	return errorBody(http.StatusNotFound, "itemNotFound", "%s %s could not be found.", what, id)
}

func conflict(format string, args ...any) (int, any) {
	return errorBody(http.StatusConflict, "conflictingRequest", format, args...)
}

func badRequest(format string, args ...any) (int, any) {
	return errorBody(http.StatusBadRequest, "badRequest", format, args...)
}

func (n *compute) serveAggregates(c computeCall) (int, any) {
	switch {
	case c.matches(http.MethodGet, 0):
		return http.StatusOK, map[string]any{"aggregates": append([]*Aggregate{}, n.aggregates...)}
	case c.matches(http.MethodPost, 0):
		a := &Aggregate{Hosts: []string{}, Metadata: map[string]string{}}
		if json.Unmarshal(c.body["aggregate"], a) != nil || a.Name == "" {
			return badRequest("no aggregate")
		}
		if slices.ContainsFunc(n.aggregates, func(other *Aggregate) bool { return other.Name == a.Name }) {
			return conflict("Aggregate %s already exists.", a.Name)
		}
		n.lastID++
		a.ID = n.lastID
		if a.Zone != "" {
			a.Metadata["availability_zone"] = a.Zone
		}
		n.aggregates = append(n.aggregates, a)
		return http.StatusOK, map[string]any{"aggregate": a}
	}
	i := -1
	if len(c.parts) > 1 {
		i = slices.IndexFunc(n.aggregates,
			func(a *Aggregate) bool { return strconv.Itoa(a.ID) == c.parts[1] })
	}
	switch {
	case i < 0:
		return notFound("Aggregate", strings.Join(c.parts[1:], "/"))
	case c.matches(http.MethodDelete, 1) && len(n.aggregates[i].Hosts) > 0:
		return badRequest("Cannot remove aggregate %s: it is not empty.", c.parts[1])
	case c.matches(http.MethodDelete, 1):
		n.aggregates = slices.Delete(n.aggregates, i, i+1)
		return http.StatusOK, nil
	case c.matches(http.MethodPost, 2):
		return n.serveAggregateAction(n.aggregates[i], c)
	}
	return http.StatusOK, map[string]any{"aggregate": n.aggregates[i]}
}

func (n *compute) serveAggregateAction(a *Aggregate, c computeCall) (int, any) {
	var host struct{ Host string }
	var set struct{ Metadata map[string]*string }
	switch {
	case json.Unmarshal(c.body["add_host"], &host) == nil:
		for _, other := range n.aggregates {
			if other != a && other.Zone != "" && a.Zone != "" && other.Zone != a.Zone &&
				slices.Contains(other.Hosts, host.Host) {
				return conflict(
					"Cannot add host to aggregate %d. Reason: host %s is in availability zone %s.",
					a.ID, host.Host, other.Zone,
				)
			}
		}
		if slices.Contains(a.Hosts, host.Host) {
			return conflict("Aggregate %d already has host %s.", a.ID, host.Host)
		}
		a.Hosts = append(a.Hosts, host.Host)
	case json.Unmarshal(c.body["remove_host"], &host) == nil:
		i := slices.Index(a.Hosts, host.Host)
		if i < 0 {
			return notFound("Host", host.Host)
		}
		a.Hosts = slices.Delete(slices.Clone(a.Hosts), i, i+1)
	case json.Unmarshal(c.body["set_metadata"], &set) == nil:
		for key, value := range set.Metadata {
			if delete(a.Metadata, key); value != nil {
				a.Metadata[key] = *value
			}
		}
	default:
		return badRequest("no such action")
	}
	return http.StatusOK, map[string]any{"aggregate": a}
}

func (n *compute) serveFlavors(c computeCall) (int, any) {
	if c.matches(http.MethodPost, 0) {
		f := &Flavor{Specs: map[string]string{}, Access: []string{}}
		if json.Unmarshal(c.body["flavor"], f) != nil || f.ID == "" || f.VCPUs < 1 || f.RAM < 1 {
			return badRequest("no flavor")
		}
		same := func(other *Flavor) bool { return other.ID == f.ID || other.Name == f.Name }
		if slices.ContainsFunc(n.flavors, same) {
			return conflict("Flavor with ID %s already exists.", f.ID)
		}
		n.flavors = append(n.flavors, f)
		return http.StatusOK, map[string]any{"flavor": f}
	}
	i := -1
	if len(c.parts) > 1 {
		i = slices.IndexFunc(n.flavors, func(f *Flavor) bool { return f.ID == c.parts[1] })
	}
	if i < 0 {
		return notFound("Flavor", strings.Join(c.parts[1:], "/"))
	}
	f := n.flavors[i]
	switch {
	case c.matches(http.MethodDelete, 1):
		n.flavors = slices.Delete(n.flavors, i, i+1)
		return http.StatusAccepted, nil
	case c.matches(http.MethodPost, 2) && c.parts[2] == "os-extra_specs":
		if json.Unmarshal(c.body["extra_specs"], &f.Specs) != nil {
			return badRequest("no extra specs")
		}
	case c.matches(http.MethodPost, 2):
		return f.serveAction(c)
	case c.matches(http.MethodGet, 1):
		return http.StatusOK, map[string]any{"flavor": f}
	case c.matches(http.MethodGet, 2) && c.parts[2] == "os-flavor-access":
		return f.accessList()
	}
	return http.StatusOK, map[string]any{"extra_specs": f.Specs}
}

// accessList answers with the projects that may use a private flavor. As in Nova, a public flavor has no such
// list.
func (f *Flavor) accessList() (int, any) {
	if f.Public {
		return notFound("Access list not available for public flavors:", f.ID)
	}
	list := []map[string]string{}
	for _, project := range f.Access {
		list = append(list, map[string]string{"flavor_id": f.ID, "tenant_id": project})
	}
	return http.StatusOK, map[string]any{"flavor_access": list}
}

func (f *Flavor) serveAction(c computeCall) (int, any) {
	var access struct{ Tenant string }
	switch {
	case json.Unmarshal(c.body["addTenantAccess"], &access) == nil:
		if slices.Contains(f.Access, access.Tenant) || f.Public {
			return conflict("Flavor access already exists for flavor %s and project %s combination.",
				f.ID, access.Tenant)
		}
		f.Access = append(f.Access, access.Tenant)
	case json.Unmarshal(c.body["removeTenantAccess"], &access) == nil:
		i := slices.Index(f.Access, access.Tenant)
		if i < 0 {
			return notFound("Flavor access", access.Tenant)
		}
		f.Access = slices.Delete(f.Access, i, i+1)
	default:
		return badRequest("no such action")
	}
	return http.StatusOK, map[string]any{"flavor_access": []any{}}
}

func (n *compute) serveServerGroups(c computeCall) (int, any) {
	switch {
	case c.matches(http.MethodGet, 0):
		ofOther := func(g *ServerGroup) bool { return g.Project != "" && !c.URL.Query().Has("all_projects") }
		return http.StatusOK, map[string]any{
			"server_groups": slices.DeleteFunc(append([]*ServerGroup{}, n.groups...), ofOther),
		}
	case c.matches(http.MethodPost, 0):
		g := &ServerGroup{}
		if json.Unmarshal(c.body["server_group"], g) != nil || len(g.Policies) != 1 {
			return badRequest("no server group")
		}
		g.ID = uuid.NewString()
		n.groups = append(n.groups, g)
		return http.StatusOK, map[string]any{"server_group": g}
	case c.matches(http.MethodDelete, 1):
		i := slices.IndexFunc(n.groups, func(g *ServerGroup) bool { return g.ID == c.parts[1] })
		if i >= 0 {
			n.groups = slices.Delete(n.groups, i, i+1)
			return http.StatusNoContent, nil
		}
	}
	return notFound("Server group", strings.Join(c.parts[1:], "/"))
}
