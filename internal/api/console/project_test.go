package console_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/api/console"
	"berth/internal/identity"
	"berth/internal/lease"
	"berth/internal/network"
	"berth/internal/store/storetest"
)

// tokens authenticates callers by their tokens. Another token is not valid, for example because it has
// expired.
type tokens map[string]identity.Caller

func (t tokens) Authenticate(r *http.Request) (identity.Caller, error) {
	c, ok := t[r.Header.Get("X-Auth-Token")]
	if !ok {
		return c, identity.ErrUnauthenticated
	}
	return c, nil
}

// callers are the kinds of callers of the console. The first two have no valid token.
var callers = []struct{ name, token string }{
	{"anonymous", ""},
	{"expired", "expired"},
	{"member", "ann"},
	{"member of another project", "rival-eve"},
	{"reader", "rita"},
	{"service", "nova"},
	{"admin", "root"},
}

var callersByToken = tokens{
	"ann":       {User: "ann", Project: "demo", Roles: []string{"member", "reader"}},
	"rival-eve": {User: "rival-eve", Project: "rival", Roles: []string{"member", "reader"}},
	"rita":      {User: "rita", Project: "demo", Roles: []string{"reader"}},
	"nova":      {User: "nova", Project: "service", Roles: []string{"service"}},
	"root":      {User: "root", Project: "admin", Roles: []string{"admin", "member", "reader"}},
}

// rivals are objects of the project `rival`. All their names contain the name of the project.
type rivals struct {
	port    network.Port // on a network of the project
	guest   network.Port // on a network of the project demo
	trunk   network.Trunk
	lease   lease.Lease // holds a host that the lease `blocked` needs
	blocked lease.Lease // of the project demo; waits for the other lease
}

func (e *estate) createRivals() (r rivals) {
	e.t.Helper()
	networks, err := e.Network.CreateNetworks(e.t.Context(),
		[]network.NetworkChange{{Project: ptr("rival"), Name: ptr("rival-net")}})
	e.check(err)
	_, err = e.Network.CreateSubnets(e.t.Context(), []network.SubnetChange{
		{Network: &networks[0].ID, Project: ptr("rival"), CIDR: ptr(netip.MustParsePrefix("10.2.0.0/24"))},
	})
	e.check(err)
	r.port = e.createPortOf("rival", networks[0].ID, "rival-port", "cmp-1")
	r.trunk = e.createTrunk("rival", networks[0].ID, "rival-uplink")
	r.guest = e.createPortOf("rival", e.network, "rival-guest", "cmp-1")
	r.lease = e.createLeaseOn("node-4", "rival", "rival-lease", 100)
	r.blocked = e.createLeaseOn("node-4", "demo", "rollout", 102)
	storetest.Exec(e.t, e.url, `update lease set start_at = now() where id = $1`, r.blocked.ID)
	storetest.Exec(e.t, e.url,
		`update event set at = now() where lease_id = $1 and event_type = 'start_lease'`, r.blocked.ID)
	return r
}

// createLeaseOn creates a lease of one host for one hour, which starts after the given number of hours.
func (e *estate) createLeaseOn(host, project, name string, hours int) lease.Lease {
	e.t.Helper()
	start := time.Now().Add(time.Duration(hours) * time.Hour).Truncate(time.Second)
	l, err := e.Lease.CreateLease(e.t.Context(), lease.Draft{
		Name:    name,
		User:    project + "-user",
		Project: project,
		Start:   lease.RequestedDate{At: start},
		End:     lease.RequestedDate{At: start.Add(time.Hour)},
		Reservations: []lease.ReservationDraft{{
			Type:                 lease.PhysicalHost,
			Min:                  1,
			Max:                  1,
			HypervisorProperties: `["==", "$hypervisor_hostname", "` + host + `"]`,
		}},
	})
	e.check(err)
	return l
}

// projectPaths returns the paths of the pages of the project demo.
func (e *estate) projectPaths() map[string]string {
	return map[string]string{
		"waiting": "/console/",
		"ports":   "/console/ports",
		"leases":  "/console/leases",
		"port":    "/console/ports/" + e.web.ID.String(),
		"trunk":   "/console/trunks/" + e.trunk.ID.String(),
		"lease":   "/console/leases/" + e.gold.ID.String(),
	}
}

// access has the HTTP status that each caller must get, in the order of the list `callers`.
type access [7]int

var (
	forAll     = access{200, 200, 200, 200, 200, 200, 200}
	forAdmins  = access{401, 401, 403, 403, 403, 403, 200}
	forCallers = access{401, 401, 200, 200, 200, 200, 200}
	// the reservation API refuses the role service
	forLeaseReaders = access{401, 401, 200, 200, 200, 403, 200}
	demoPort        = access{401, 401, 200, 404, 200, 404, 200}
	rivalPort       = access{401, 401, 404, 200, 404, 404, 200}
	demoLease       = access{401, 401, 200, 404, 200, 403, 200}
	rivalLease      = access{401, 401, 404, 200, 404, 403, 200}
	foundInDemo     = access{401, 401, 303, 404, 303, 404, 303}
	foundInRival    = access{401, 401, 404, 303, 404, 404, 303}
)

// call is a request of the matrix. The first word of the route and the path after the prefix of the API
// identify a route.
type call struct {
	route, path string
	want        access
}

// calls returns requests to every route of the console: to the objects of the project demo and to those of
// the project rival.
func (e *estate) calls(r rivals) []call {
	port, leaseID, guest := r.port.ID.String(), r.lease.ID.String(), r.guest.ID.String()
	blocked, trunk := r.blocked.ID.String(), r.trunk.ID.String()
	consumer := "/consumers/" + e.web.DeviceID
	invalid := func(a access, status int) access { a[6] = status; return a }
	return []call{
		{"GET /static/{file}", "/static/console.css", forAll},
		{"GET /login", "/login", forAll},
		{"POST /login", "/login", access{400, 400, 400, 400, 400, 400, 400}},
		{"POST /logout", "/logout", access{303, 303, 303, 303, 303, 303, 303}},
		{"GET /find", "/find?id=" + e.web.ID.String(), foundInDemo},
		{"GET /find", "/find?id=" + e.gold.ID.String(), foundInDemo},
		{"GET /find", "/find?id=" + port, foundInRival},
		{"GET /find", "/find?id=" + guest, foundInRival},
		{"GET /find", "/find?id=" + leaseID, foundInRival},
		{"GET /find", "/find?id=cmp-9", access{401, 401, 404, 404, 404, 404, 303}},
		{"GET /find", "/find?id=node-4", access{401, 401, 404, 404, 404, 404, 303}},
		{"GET /find", "/find?id=5", access{401, 401, 404, 404, 404, 404, 303}},
		{"GET /find", "/find?id=" + e.trunk.ID.String(), foundInDemo},
		{"GET /find", "/find?id=" + trunk, foundInRival},
		{"GET /find", "/find?id=" + e.web.DeviceID, access{401, 401, 404, 404, 404, 404, 303}},
		{"GET /find", "/find?id=" + e.provider, access{401, 401, 404, 404, 404, 404, 303}},
		{"GET /", "/", forCallers},
		{"GET /", "/?after=" + port, forCallers},
		{"GET /ports", "/ports", forCallers},
		{"GET /ports", "/ports?after=" + port, forCallers},
		{"GET /leases", "/leases", forLeaseReaders},
		{"GET /leases", "/leases?after=" + leaseID, access{401, 401, 404, 200, 404, 403, 200}},
		{"GET /ports/{id}", "/ports/" + e.web.ID.String(), demoPort},
		{"GET /ports/{id}", "/ports/" + port, rivalPort},
		{"GET /ports/{id}", "/ports/" + guest, rivalPort},
		{"GET /ports/{id}", "/ports/x", access{401, 401, 404, 404, 404, 404, 404}},
		{"GET /trunks/{id}", "/trunks/" + e.trunk.ID.String(), demoPort},
		{"GET /trunks/{id}", "/trunks/" + trunk, rivalPort},
		{"GET /trunks/{id}", "/trunks/x", access{401, 401, 404, 404, 404, 404, 404}},
		{"GET /leases/{id}", "/leases/" + e.gold.ID.String(), demoLease},
		{"GET /leases/{id}", "/leases/" + blocked, demoLease},
		{"GET /leases/{id}", "/leases/" + leaseID, rivalLease},
		{"GET /calendar", "/calendar", forAdmins},
		{"GET /journal", "/journal", forAdmins},
		{"GET /conflicts", "/conflicts", forAdmins},
		{"GET /projections", "/projections", forAdmins},
		{"GET /waiting/{party}", "/waiting/agent?name=L2", forAdmins},
		{"GET /entries/{seq}", "/entries/5", forAdmins},
		{"GET /hosts/{id}", fmt.Sprintf("/hosts/%d", e.host.ID), forAdmins},
		{"GET /providers/{id}", "/providers/" + e.provider, forAdmins},
		{"GET /consumers/{id}", consumer, forAdmins},
		{"GET /journal/pause", "/journal/pause", forAdmins},
		{"POST /journal/pause", "/journal/pause", invalid(forAdmins, 400)},
		{"POST /journal/resume", "/journal/resume", invalid(forAdmins, 400)},
	}
}

// hidden returns texts that no answer to a caller may contain, although the caller has not sent them.
func (e *estate) hidden(r rivals, project string) (all []string) {
	if project != "demo" {
		all = append(all, "demo", "lonely", "night batch", "rollout", e.web.ID.String(),
			e.gold.ID.String(), r.blocked.ID.String(), e.trunk.ID.String(), e.web.DeviceID)
	}
	if project != "rival" {
		all = append(all, "rival", r.port.ID.String(), r.guest.ID.String(), r.port.Network.String(),
			r.lease.ID.String(), r.trunk.ID.String(), r.trunk.Port.String())
	}
	return append(all, "cmp-", "node-", "net-1", e.provider)
}

// Each caller gets on every route what the caller may see, and no caller but an administrator gets the names
// and IDs of another project or of hosts.
func TestConsole_EveryRouteForEveryCaller(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	r := e.createRivals()
	h := e.console(callersByToken)
	e.live.Stop() // so that each stream ends after its first event
	e.projects.Stop()
	missing := map[string]bool{}
	for _, route := range h.Routes {
		missing[route.Method+" "+route.Path] = true
	}
	for _, c := range e.calls(r) {
		delete(missing, c.route)
		method, _, _ := strings.Cut(c.route, " ")
		for i, caller := range callers {
			stream := browser(caller.token)
			stream.Set("Accept", "text/event-stream")
			headers := []http.Header{browser(caller.token), stream}
			if caller.name == "admin" && c.want[i] == http.StatusNotFound {
				headers = headers[:1] // the stream of an administrator begins before its page is read
			}
			for _, header := range headers {
				w, body := e.send(h, request{method, "/console" + c.path, "", header})
				if w.StatusCode != c.want[i] {
					t.Errorf("%s %s (Accept: %s) as %s: got %d, want %d:\n%s",
						method, c.path, header.Get("Accept"), caller.name, w.StatusCode, c.want[i], body)
				}
				if caller.name == "admin" || strings.HasPrefix(c.path, "/static/") {
					continue
				}
				answer := strings.NewReplacer(c.path, "", sentID(c.path), "").
					Replace(body + fmt.Sprint(w.Header))
				for _, text := range e.hidden(r, callersByToken[caller.token].Project) {
					if strings.Contains(answer, text) {
						t.Errorf("%s %s as %s: the answer contains %q:\n%s",
							method, c.path, caller.name, text, answer)
					}
				}
			}
		}
	}
	for route := range missing {
		t.Errorf("the test sends no request to the route %s, want one to every route", route)
	}
}

// sentID returns the ID that a path ends with: an answer may name the ID that its caller has sent.
func sentID(path string) string {
	return path[strings.LastIndexAny(path, "/=")+1:]
}

func TestProject_PagesShowItsObjects(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	r := e.createRivals()
	h := e.console(callersByToken)
	paths := e.projectPaths()
	paths["blocked"] = "/console/leases/" + r.blocked.ID.String()
	for name, want := range map[string][]string{
		"waiting": {"web", "lonely", "it waits for L2 on its host since", "&lt;img src=x onerror=", "Reload the page to update it."},
		"ports":   {"/console/ports/" + e.web.ID.String(), "lonely"},
		"leases":  {"gold", "night batch", "start_lease is next", "/console/leases/" + e.gold.ID.String()},
		"port":    {"Port web", "10.1.0.", "L2 on its host since", "begins to wait for L2", "starter why port/" + e.web.ID.String()},
		"trunk":   {"Trunk uplink", "is not bound to a host", "/console/ports/" + e.trunk.Port.String(), "uplink-subport", "vlan 77", "starter why trunk/"},
		"lease":   {"Lease gold", "start_lease is next", "1 host<", "physical:host", "start is due: UNDONE"},
		"blocked": {") to leave a host since", "and for another lease to leave a host since", "<li>another lease since"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, token := range []string{"ann", "rita"} {
				w, body := e.send(h, request{"GET", paths[name], "", browser(token)})
				if w.StatusCode != http.StatusOK {
					t.Fatalf("as %s: got %d %s", token, w.StatusCode, body)
				}
				for _, text := range append(want, ">Waiting</a>", ">Ports</a>", ">Leases</a>", "sse-connect") {
					if !strings.Contains(body, text) {
						t.Errorf("as %s: the page does not contain %q:\n%s", token, text, body)
					}
				}
				for _, text := range []string{"<img", " style=", "<script>", ">Journal</a>", "temporal.example", "host name"} {
					if strings.Contains(body, text) {
						t.Errorf("as %s: the page contains %q:\n%s", token, text, body)
					}
				}
			}
		})
	}
}

// follow returns the texts in the first column of a list of a project, page by page.
func (e *estate) follow(h http.Handler, path, token string) (pages [][]string) {
	e.t.Helper()
	for path != "" {
		w, body := e.send(h, request{"GET", path, "", browser(token)})
		if w.StatusCode != http.StatusOK {
			e.t.Fatalf("GET %s: got %d %s", path, w.StatusCode, body)
		}
		var page []string
		for _, row := range strings.Split(body, `<th scope="row">`)[1:] {
			_, row, _ = strings.Cut(row, ">")
			name, _, _ := strings.Cut(row, "<")
			page = append(page, name)
		}
		pages = append(pages, page)
		_, next, _ := strings.Cut(body, `<a rel="next" href="`)
		path, _, _ = strings.Cut(next, `"`)
	}
	return pages
}

func TestProject_PagesListEachObjectOnce(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(callersByToken)
	var ports []network.PortChange
	for i := range 2*console.PageSize - 4 { // two pages with the six ports of the estate, and two ports on the third
		ports = append(ports, network.PortChange{
			Project: ptr("demo"),
			Network: &e.network,
			Name:    ptr(fmt.Sprintf("p%d", i)),
		})
	}
	_, err := e.Network.CreatePorts(t.Context(), ports)
	e.check(err)
	for _, path := range []string{"/console/", "/console/ports"} {
		pages := e.follow(h, path, "ann")
		all := slices.Concat(pages...)
		slices.Sort(all)
		if len(pages) != 3 || len(pages[0]) != console.PageSize || len(pages[2]) != 2 ||
			len(slices.Compact(all)) != 2*console.PageSize+2 {
			t.Errorf("the pages of %s: got %d pages %v, want 3 pages with each of the %d ports once",
				path, len(pages), pages, 2*console.PageSize+2)
		}
	}
	if w, _ := e.send(h, request{"GET", "/console/ports?after=x", "", browser("ann")}); w.StatusCode != http.StatusBadRequest {
		t.Errorf("a page after the ID x: got %d, want 400", w.StatusCode)
	}
}

// The rules of the operator's policy files hold for the pages of a project, too.
func TestProject_PagesFollowThePolicyFiles(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.createLeaseOn("node-4", "demo", "of another user", 100)
	e.rules = map[string]string{
		"get_port":          `{"get_port": "role:admin"}`,
		"get_trunk":         `{"get_trunk": "role:admin"}`,
		"blazar:leases:get": `{"blazar:leases:get": "user_id:%(user_id)s"}`,
	}
	h := e.console(callersByToken)
	for path, want := range map[string]int{
		"/console/":                              200,
		"/console/ports":                         403,
		"/console/ports/" + e.web.ID.String():    403,
		"/console/trunks/" + e.trunk.ID.String(): 403,
		"/console/leases":                        200,
		"/console/leases/" + e.gold.ID.String():  200,
		"/console/find?id=" + e.web.ID.String():  404,
	} {
		w, body := e.send(h, request{"GET", path, "", browser("ann")})
		if w.StatusCode != want || strings.Contains(body, "lonely") || strings.Contains(body, "of another user") ||
			strings.Contains(body, ">Ports</a>") {
			t.Errorf("GET %s: got %d, want %d without ports and leases of other users:\n%s",
				path, w.StatusCode, want, body)
		}
	}
	if got := slices.Concat(e.follow(h, "/console/leases", "ann")...); len(got) != 4 {
		t.Errorf("the leases of the user: got %q, want 4", got)
	}
}

// A member finds objects by ID only, so the answer to an empty search does not mention host names.
func TestFind_EmptySearchSaysWhatTheCallerCanFind(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(callersByToken)
	for token, want := range map[string]string{"root": ">Enter an ID, or the name of a port or a host.<", "ann": ">Enter an ID.<"} {
		w, body := e.send(h, request{"GET", "/console/find?id=+", "", browser(token)})
		if w.StatusCode != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("an empty search as %s: got %d, want 400 and %q:\n%s", token, w.StatusCode, want, body)
		}
	}
}

// A port leads to its trunk and its device's allocations, as far as the caller may see them.
func TestPortPage_LeadsToTrunkAndAllocations(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	trunk, consumer := `href="/console/trunks/`+e.trunk.ID.String()+`"`, `href="/console/consumers/`
	for _, c := range []struct {
		rules, token, port string
		trunk, consumer    bool
	}{
		{"", "root", e.trunk.Port.String(), true, false},
		{"", "ann", e.trunk.Port.String(), true, false},
		{"", "ann", e.trunk.Subports[0].Port.String(), true, false},
		{`{"get_trunk": "role:admin"}`, "ann", e.trunk.Port.String(), false, false},
		{"", "root", e.web.ID.String(), false, true},
		{"", "ann", e.web.ID.String(), false, false},
	} {
		e.rules = map[string]string{"get_trunk": c.rules}
		w, body := e.send(e.console(callersByToken), request{"GET", "/console/ports/" + c.port, "", browser(c.token)})
		if w.StatusCode != http.StatusOK || strings.Contains(body, trunk) != c.trunk || strings.Contains(body, consumer) != c.consumer {
			t.Errorf("port %s as %s with the rules %q: got %d, want a link to the trunk: %t, to the allocations: %t:\n%s",
				c.port, c.token, c.rules, w.StatusCode, c.trunk, c.consumer, body)
		}
	}
}

// An administrator can put a port of another project on a trunk.
func TestProject_TrunkPageHidesPortsOfOtherProjects(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	r := e.createRivals()
	e.check(e.Network.DeleteTrunk(t.Context(), r.trunk.ID, nil))
	_, err := e.Network.AddSubports(t.Context(), e.trunk.ID,
		[]network.Subport{{Port: r.trunk.Port, Type: network.VLAN, Segment: 78}})
	e.check(err)
	for token, names := range map[string]bool{"root": true, "ann": false} {
		_, body := e.send(e.console(callersByToken),
			request{"GET", "/console/trunks/" + e.trunk.ID.String(), "", browser(token)})
		if strings.Contains(body, "rival-uplink-parent") != names || !strings.Contains(body, "vlan 78") {
			t.Errorf("the trunk as %s: want the subport, with the name of the other project's port: %t:\n%s",
				token, names, body)
		}
	}
}
