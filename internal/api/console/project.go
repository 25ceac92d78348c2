package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/lease"
	"berth/internal/network"
	"berth/internal/store/db"
)

// NetworkReader reads the ports or the trunks that the policy rules of the Networking API let a caller see.
type NetworkReader[T network.Port | network.Trunk] interface {
	// MayRead reports whether the caller may see any object.
	MayRead(c identity.Caller) bool
	// List lists objects. The names of hosts are hidden from a caller who may not see them.
	List(ctx context.Context, c identity.Caller, l db.Listing) ([]T, error)
}

// LeaseReader reads the leases that the policy rules of the reservation API let a caller see.
type LeaseReader interface {
	// MayRead reports whether the caller may see any lease.
	MayRead(c identity.Caller) bool
	// Lease reads one lease. The leases and hosts that the caller may not see are hidden. The error wraps
	// db.ErrNotFound if the caller may not see the lease.
	Lease(ctx context.Context, c identity.Caller, id uuid.UUID) (lease.Lease, error)
	// List calls the function `each` with at most `most` leases of the caller's project. The list begins
	// after the lease with the ID `after`, or with the oldest lease if `after` is uuid.Nil.
	List(ctx context.Context, c identity.Caller, after uuid.UUID, most int, each func(lease.Lease)) error
}

// projectPage is a page of one project: the project of the caller's token.
type projectPage struct {
	page
	mayRead func(identity.Caller) bool // whether the page can have content for the caller
}

// projectPages lists the pages of one project. They are for callers who are not administrators.
func (c *handler) projectPages() []projectPage {
	return []projectPage{
		{
			page{
				path:     "/",
				nav:      "Waiting",
				title:    "Ports that wait",
				template: "project_ports",
				load:     c.projectWaiting,
			},
			c.mayReadProject,
		},
		{
			page{
				path:     "/ports",
				nav:      "Ports",
				title:    "Ports of the project",
				template: "project_ports",
				load:     c.projectPorts,
			},
			c.mayReadPorts,
		},
		{
			page{
				path:     "/leases",
				nav:      "Leases",
				title:    "Leases of the project",
				template: "project_leases",
				load:     c.projectLeases,
			},
			c.mayReadLeases,
		},
		{
			page{
				path:     "/ports/{id}",
				title:    "Port",
				template: "object",
				load:     c.projectPort,
			},
			c.mayReadPorts,
		},
		{
			page{
				path:     "/trunks/{id}",
				title:    "Trunk",
				template: "object",
				load:     c.projectTrunk,
			},
			c.mayReadTrunks,
		},
		{
			page{
				path:     "/leases/{id}",
				title:    "Lease",
				template: "object",
				load:     c.projectLease,
			},
			c.mayReadLeases,
		},
	}
}

// pagesFor lists the pages that the caller may see.
func (c *handler) pagesFor(caller identity.Caller) (all []page) {
	if caller.Admin() {
		return c.pages()
	}
	for _, p := range c.projectPages() {
		if p.mayRead(caller) {
			all = append(all, p.page)
		}
	}
	return all
}

// mayReadPorts reports whether the caller may see ports of the project of the caller's token.
func (c *handler) mayReadPorts(caller identity.Caller) bool {
	return caller.Project != "" && c.Ports.MayRead(caller)
}

// mayReadTrunks reports whether the caller may see trunks of the project of the caller's token.
func (c *handler) mayReadTrunks(caller identity.Caller) bool {
	return caller.Project != "" && c.Trunks.MayRead(caller)
}

// mayReadLeases reports whether the caller may see leases of the project of the caller's token.
func (c *handler) mayReadLeases(caller identity.Caller) bool {
	return caller.Project != "" && c.Leases.MayRead(caller)
}

// mayReadProject reports whether the caller may see any object of the project of the caller's token.
func (c *handler) mayReadProject(caller identity.Caller) bool {
	return c.mayReadPorts(caller) || c.mayReadTrunks(caller) || c.mayReadLeases(caller)
}

// needsRole says who may use the console.
const needsRole = "The console needs a token with the role admin, or with a role that may see the ports, the trunks or the leases of the token's project."

// forProject refuses callers for whom mayRead returns false.
func forProject(mayRead func(identity.Caller) bool, next osapi.Handler) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		if !mayRead(identity.From(r.Context())) {
			return 0, nil, osapi.Fault(http.StatusForbidden, "", "%s", needsRole)
		}
		return next(r)
	}
}

// forAdmins is osapi.AdminOnly, with the reserved connections to the database.
func forAdmins(next osapi.Handler) osapi.Handler {
	return osapi.AdminOnly(func(r *http.Request) (int, any, error) {
		return next(r.WithContext(db.WithReserve(r.Context())))
	})
}

// byRole returns the handler that serves administrators with the first handler, and other callers with the
// second one.
func byRole(admins, others osapi.Handler) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		if identity.From(r.Context()).Admin() {
			return admins(r)
		}
		return others(r)
	}
}

// showProject returns the handler of a page of one project. Callers with the same user, project and roles
// share one rendering, because the policy rules decide by these attributes. A stream ends when its token gets
// other attributes, or when the rules no longer let the caller see the page.
func (c *handler) showProject(p projectPage) osapi.Handler {
	return forProject(p.mayRead, func(r *http.Request) (int, any, error) {
		caller := identity.From(r.Context())
		return c.showLive(r, p.page, streamed{
			live: c.ProjectLive,
			key:  fmt.Sprintf("%#v", caller),
			mayRead: func(now identity.Caller) bool {
				return reflect.DeepEqual(now, caller) && p.mayRead(now)
			},
		})
	})
}

// projectPortsView is the content of a page with ports of one project.
type projectPortsView struct {
	Project string
	Waiting bool // the page has only ports that are not ACTIVE
	Ports   []projectPort
	Next    string // path of the next page, below the path of the console; empty: this page is the last
}

type projectPort struct {
	ID, Name, Status, Why string
}

// projectWaiting reads a page of the ports of the project that are not ACTIVE.
func (c *handler) projectWaiting(ctx context.Context, q query) (any, error) {
	after, err := q.after()
	if err != nil {
		return nil, err
	}
	ids, next, err := c.Network.InactivePorts(ctx, q.caller.Project, after, pageSize)
	if err != nil {
		return nil, err
	}
	l := inProject(q.caller)
	l.Where = append(l.Where, db.OneOfIDs("id", ids))
	v, err := c.listPorts(ctx, q, l)
	v.Waiting = true
	if next != uuid.Nil {
		v.Next = "/?after=" + next.String()
	}
	return v, err
}

// projectPorts reads a page of all ports of the project.
func (c *handler) projectPorts(ctx context.Context, q query) (any, error) {
	l := inProject(q.caller)
	l.Limit = pageSize + 1
	var err error
	if l.Marker, err = q.after(); err != nil {
		return nil, err
	}
	v, err := c.listPorts(ctx, q, l)
	if len(v.Ports) > pageSize {
		v.Ports = v.Ports[:pageSize]
		v.Next = "/ports?after=" + v.Ports[pageSize-1].ID
	}
	return v, err
}

// listPorts reads the ports of a page.
func (c *handler) listPorts(ctx context.Context, q query, l db.Listing) (v projectPortsView, err error) {
	ports, err := c.Ports.List(ctx, q.caller, l)
	v.Project = q.caller.Project
	now := time.Now()
	for _, p := range ports {
		v.Ports = append(v.Ports,
			projectPort{p.ID.String(), named(p.Name, p.ID.String()), p.Status, portWhy(p, now)})
	}
	return v, err
}

// inProject lists the ports of the caller's project. The policy rules can let the caller see further ports,
// for example the ports of other projects on the caller's network.
func inProject(c identity.Caller) db.Listing {
	return db.Listing{Where: []db.Condition{{Field: "project", In: []string{c.Project}}}}
}

// after returns the ID after which the page begins, or uuid.Nil for the first page.
func (q query) after() (uuid.UUID, error) {
	text := q.values.Get("after")
	if text == "" {
		return uuid.Nil, nil
	}
	id, ok := osapi.UUID(text)
	if !ok {
		return id, osapi.Fault(http.StatusBadRequest, "", "'after' is not a UUID.")
	}
	return id, nil
}

// ownPort reads a port of the caller's project.
func (c *handler) ownPort(ctx context.Context, caller identity.Caller, id uuid.UUID) (network.Port, error) {
	l := inProject(caller)
	l.Where = append(l.Where, db.OneOfIDs("id", []uuid.UUID{id}))
	found, err := c.Ports.List(ctx, caller, l)
	if err != nil {
		return network.Port{}, err
	}
	if len(found) == 0 {
		return network.Port{}, osapi.Fault(http.StatusNotFound, "", "There is no port %s.", id)
	}
	return found[0], nil
}

// projectPort reads the page of a port without the journal, the allocations and the hosts.
func (c *handler) projectPort(ctx context.Context, q query) (any, error) {
	id, err := idOf(q, "port")
	if err != nil {
		return nil, err
	}
	p, err := c.ownPort(ctx, q.caller, id)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	v := portView(p, now)
	if err := c.addOwnTrunk(ctx, &v, q.caller, id); err != nil {
		return nil, err
	}
	v.newestFirst(now)
	return v, nil
}

// projectLeasesView is the content of the page with the leases of one project.
type projectLeasesView struct {
	Project string
	Leases  []projectLease
	Next    string // path of the next page, below the path of the console; empty: this page is the last
}

type projectLease struct {
	ID, Name, Status, Why string
	Start, End            time.Time
}

// projectLeases reads a page of the leases of the project, the oldest first.
func (c *handler) projectLeases(ctx context.Context, q query) (any, error) {
	v := projectLeasesView{Project: q.caller.Project}
	after, err := q.after()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	err = c.Leases.List(ctx, q.caller, after, pageSize+1, func(l lease.Lease) {
		why, _ := lease.Explain(l, now)
		v.Leases = append(v.Leases, projectLease{
			ID:     l.ID.String(),
			Name:   named(l.Name, l.ID.String()),
			Status: string(l.Status),
			Why:    strings.TrimPrefix(why, string(l.Status)+": "),
			Start:  l.StartAt,
			End:    l.EndAt,
		})
	})
	if len(v.Leases) > pageSize {
		v.Leases = v.Leases[:pageSize]
		v.Next = "/leases?after=" + v.Leases[pageSize-1].ID
	}
	return v, err
}

// ownLease reads a lease of the caller's project.
func (c *handler) ownLease(ctx context.Context, caller identity.Caller, id uuid.UUID) (lease.Lease, error) {
	l, err := c.Leases.Lease(ctx, caller, id)
	if errors.Is(err, db.ErrNotFound) || err == nil && l.Project != caller.Project {
		return l, osapi.Fault(http.StatusNotFound, "", "There is no lease %s.", id)
	}
	return l, err
}

// projectLease reads the page of a lease without the hosts of its reservations.
func (c *handler) projectLease(ctx context.Context, q query) (any, error) {
	id, err := idOf(q, "lease")
	if err != nil {
		return nil, err
	}
	l, err := c.ownLease(ctx, q.caller, id)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	v := leaseView(l, now)
	t := newReservationTable()
	for _, r := range l.Reservations[:min(len(l.Reservations), maxParts)] {
		problem := ""
		if r.Failure != nil {
			problem = r.Failure.Sentence(now.Truncate(time.Minute))
		}
		t.Rows = append(t.Rows, reservationRow(r, nil, problem))
	}
	v.Tables = append(v.Tables, t)
	v.newestFirst(now)
	return v, nil
}

// findInProject redirects to the page of the port, the trunk or the lease with the ID in the query, if it
// belongs to the caller's project.
func (c *handler) findInProject(r *http.Request) (int, any, error) {
	text, err := searched(r, "an ID")
	if err != nil {
		return 0, nil, err
	}
	if id, ok := osapi.UUID(strings.ToLower(text)); ok {
		caller := identity.From(r.Context())
		_, noPort := c.ownPort(r.Context(), caller, id)
		_, noTrunk := c.ownTrunk(r.Context(), caller, id)
		_, noLease := c.ownLease(r.Context(), caller, id)
		switch {
		case noPort == nil:
			return redirect(r, "/ports/"+id.String())
		case noTrunk == nil:
			return redirect(r, "/trunks/"+id.String())
		case noLease == nil:
			return redirect(r, "/leases/"+id.String())
		}
		err := errors.Join(unlessNotFound(noPort), unlessNotFound(noTrunk), unlessNotFound(noLease))
		if err != nil {
			return 0, nil, err
		}
	}
	return 0, nil, osapi.Fault(http.StatusNotFound, "",
		"No port, trunk or lease of the project has the ID %q.", text)
}

// unlessNotFound returns the error, or nil if it says that an object does not exist.
func unlessNotFound(err error) error {
	var e *osapi.Error
	if errors.As(err, &e) && e.Status == http.StatusNotFound {
		return nil
	}
	return err
}
