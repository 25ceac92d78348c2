// Package console is the console in the browser, at /console. It shows operators what waits and for whom,
// the page of each object, the calendar of leases, the journal, the conflicts of generations and the state
// of the projections; other callers see the ports, trunks and leases of their project. Its only write pauses
// and resumes the journal. Each page is rendered on the server and works without JavaScript. The pages
// update themselves by server-sent events if the browser runs JavaScript.
package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store/inventorystore"
	"berth/internal/store/journalstore"
	"berth/internal/store/leasestore"
	"berth/internal/store/mirrorstore"
	"berth/internal/store/outbox"
	"berth/internal/store/portstore"
	"berth/internal/store/reportstore"
)

// prefix is the path of the console.
const prefix = "/console"

// Options contains the dependencies of the console.
type Options struct {
	Network   *portstore.Store
	Journal   *journalstore.Store
	Lease     *leasestore.Store
	Inventory *inventorystore.Store
	Outbox    *outbox.Store
	Mirror    *mirrorstore.Store
	Report    *reportstore.Store
	Identity  identity.Authenticator
	Ports     NetworkReader[network.Port]  // the ports that callers other than administrators see
	Trunks    NetworkReader[network.Trunk] // the trunks that callers other than administrators see
	Leases    LeaseReader                  // the leases that callers other than administrators see
	Live      *Live                        // the live pages for administrators

	ProjectLive *Live // the live pages of projects
	// TemporalUI is the URL of Temporal's UI, without a slash at the end; empty: the pages do not link to it.
	TemporalUI string
	Namespace  string // Temporal namespace of the workflows
}

// New returns the console. The console is an osapi.API whose bodies are HTML.
func New(o Options) *osapi.API {
	c := &handler{Options: o, cookies: cookies{o.Identity}}
	routes := []osapi.Route{
		{
			Method: http.MethodGet,
			Path:   "/static/{file}",
			Handle: serveStatic,
			Open:   true,
		},
		{
			Method: http.MethodGet,
			Path:   "/login",
			Handle: c.showLogin,
			Open:   true,
		},
		{
			Method:     http.MethodPost,
			Path:       "/login",
			Handle:     c.login,
			Open:       true,
			Repeatable: true,
		},
		{
			Method:     http.MethodPost,
			Path:       "/logout",
			Handle:     c.logout,
			Open:       true,
			Repeatable: true,
		},
		{
			Method: http.MethodGet,
			Path:   "/find",
			Handle: byRole(forAdmins(c.find), forProject(c.mayReadProject, c.findInProject)),
		},
		{Method: http.MethodGet, Path: "/journal/pause", Handle: forAdmins(c.showPause)},
		{Method: http.MethodPost, Path: "/journal/pause", Handle: forAdmins(c.pause)},
		{Method: http.MethodPost, Path: "/journal/resume", Handle: forAdmins(c.resume)},
	}
	return &osapi.API{
		Prefix:   prefix,
		Identity: c.cookies,
		Routes:   append(routes, c.pageRoutes()...),
		Before:   refuseForeignWrites,
		Fail:     c.fail,
	}
}

// pageRoutes returns the routes of all pages. At a path with a page for administrators and a page for one
// project, the role of the caller decides which one the caller sees.
func (c *handler) pageRoutes() (routes []osapi.Route) {
	own := map[string]osapi.Handler{}
	for _, p := range c.projectPages() {
		own[p.path] = c.showProject(p)
	}
	for _, p := range c.pages() {
		handle := forAdmins(c.show(p))
		if others, ok := own[p.path]; ok {
			handle = byRole(handle, others)
			delete(own, p.path)
		}
		routes = append(routes, osapi.Route{Method: http.MethodGet, Path: p.path, Handle: handle})
	}
	for _, path := range slices.Sorted(maps.Keys(own)) {
		routes = append(routes, osapi.Route{Method: http.MethodGet, Path: path, Handle: own[path]})
	}
	return routes
}

// handler answers the requests of the console.
type handler struct {
	Options
	cookies cookies
}

// pages lists the pages for administrators. A page with a title in the navigation has the field nav.
func (c *handler) pages() []page {
	return slices.Concat([]page{
		{
			path:     "/",
			nav:      "Waiting",
			title:    "What waits, and for whom",
			template: "waiting",
			load:     c.waiting,
		},
		{
			path:     "/calendar",
			nav:      "Leases",
			title:    "Lease calendar",
			template: "calendar",
			load:     c.calendar,
		},
		{
			path:     "/journal",
			nav:      "Journal",
			title:    "Journal",
			template: "journal",
			load:     c.journal,
		},
		{
			path:     "/conflicts",
			nav:      "Conflicts",
			title:    "Generation conflicts",
			template: "conflicts",
			load:     c.conflicts,
		},
		{
			path:     "/projections",
			nav:      "Projections",
			title:    "Projections",
			template: "projections",
			load:     c.projections,
		},
		{
			path:     "/waiting/{party}",
			title:    "Objects that wait",
			template: "waiting_objects",
			load:     c.waitingObjects,
		},
	}, c.objectPages())
}

func (c *handler) objectPages() []page {
	return []page{
		{
			path:     "/ports",
			title:    "Ports with a name",
			template: "named_ports",
			load:     c.namedPorts,
		},
		{
			path:     "/ports/{id}",
			title:    "Port",
			template: "object",
			load:     c.port,
		},
		{
			path:     "/trunks/{id}",
			title:    "Trunk",
			template: "object",
			load:     c.trunk,
		},
		{
			path:     "/leases/{id}",
			title:    "Lease",
			template: "object",
			load:     c.lease,
		},
		{
			path:     "/entries/{seq}",
			title:    "Journal entry",
			template: "object",
			load:     c.entry,
		},
		{
			path:     "/hosts/{id}",
			title:    "Host",
			template: "object",
			load:     c.host,
		},
		{
			path:     "/providers/{id}",
			title:    "Resource provider",
			template: "object",
			load:     c.provider,
		},
		{
			path:     "/consumers/{id}",
			title:    "Consumer",
			template: "object",
			load:     c.consumer,
		},
	}
}

// crossOrigin refuses the requests that a page of another site makes a browser send.
var crossOrigin = http.NewCrossOriginProtection()

// refuseForeignWrites refuses a request other than GET, HEAD and OPTIONS that a page of another site has made
// the browser send.
func refuseForeignWrites(r *http.Request) (*http.Request, error) {
	if crossOrigin.Check(r) != nil {
		return r, osapi.Fault(http.StatusForbidden, "",
			"The console refuses requests from the pages of other sites.")
	}
	return r, nil
}

// basePath returns the path of the console as the client of the request knows it: a reverse proxy may have
// added a prefix.
func basePath(r *http.Request) string {
	u, err := url.Parse(osapi.BaseURL(r))
	if err != nil {
		return prefix
	}
	return u.EscapedPath() + prefix
}

// isBrowser reports whether the client of a request wants HTML. Other clients get errors as JSON.
func isBrowser(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}
