package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"berth/internal/coalesce"
	"berth/internal/lease"
	"berth/internal/store/db"
)

// leaseReader reads leases by ID. If an ID belongs to no lease, the result of leaseReader does not contain
// this ID.
type leaseReader func(context.Context, []uuid.UUID) (map[uuid.UUID]lease.Lease, error)

// projectReader reads the projects of leases, by the ID of the lease.
type projectReader func(context.Context, []uuid.UUID) (map[uuid.UUID]string, error)

// leaseLoader collects the leases that concurrent callers request, and reads these leases with one query.
type leaseLoader struct {
	read     leaseReader
	projects projectReader
	timeout  time.Duration
	batcher  *coalesce.Batcher[uuid.UUID, loadedLeases]
}

// loadedLeases is the result of one read.
type loadedLeases struct {
	leases map[uuid.UUID]lease.Lease
	shared bool // the read was for several leases
}

type leaseCall = coalesce.Call[uuid.UUID, loadedLeases]

func newLeaseLoader(read leaseReader, projects projectReader, timeout time.Duration) *leaseLoader {
	r := &leaseLoader{read: read, projects: projects, timeout: timeout}
	r.batcher = coalesce.NewBatcher(coalesce.Config[uuid.UUID, loadedLeases]{Timeout: timeout, Run: r.run})
	return r
}

// maxSlowProjects is the number of projects with slow leases in a batch that do not delay other projects.
const maxSlowProjects = 8

// run reads the leases of a batch with one query. If this query is slow, run stops it and reads the leases of
// each project with a query of its own, so that a slow lease fails only the calls for leases of its project.
func (r *leaseLoader) run(ctx context.Context, batch []*leaseCall) {
	ids := leaseIDs(batch)
	if len(ids) == 1 {
		leases, err := r.readWithin(ctx, r.timeout, ids)
		finishCalls(batch, leases, err)
		return
	}
	leases, err := r.readWithin(ctx, r.timeout/2, ids)
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		finishCalls(batch, leases, err)
		return
	}
	projects, failed := r.projects(ctx, ids)
	byProject := map[string][]*leaseCall{}
	for _, c := range batch {
		byProject[projects[c.Item]] = append(byProject[projects[c.Item]], c)
	}
	if len(byProject) == 1 { // the same query again would take as long
		finishCalls(batch, nil, cmp.Or(failed, err))
		return
	}
	limit := r.timeout / 2 / time.Duration(min(len(byProject), maxSlowProjects))
	for _, calls := range byProject {
		leases, err := r.readWithin(ctx, limit, leaseIDs(calls))
		finishCalls(calls, leases, err)
	}
}

// readWithin reads leases with one query, which may take until the limit.
func (r *leaseLoader) readWithin(
	ctx context.Context,
	limit time.Duration,
	ids []uuid.UUID,
) (map[uuid.UUID]lease.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return r.read(ctx, ids)
}

func finishCalls(calls []*leaseCall, leases map[uuid.UUID]lease.Lease, err error) {
	shared := len(leaseIDs(calls)) > 1
	for _, c := range calls {
		c.Finish(loadedLeases{leases, shared}, err)
	}
}

// leaseIDs returns the IDs of the requested leases, each once.
func leaseIDs(calls []*leaseCall) (ids []uuid.UUID) {
	requested := map[uuid.UUID]bool{}
	for _, c := range calls {
		if !requested[c.Item] {
			ids = append(ids, c.Item)
		}
		requested[c.Item] = true
	}
	return ids
}

// load reads a lease. If a query that reads several leases together fails, load reads the requested lease in
// a query of its own, so that one unreadable lease does not fail the calls for the other leases. If the query
// fails with a timeout, load returns the error without another query, because a busy database has no time for
// a query for each lease.
func (r *leaseLoader) load(ctx context.Context, id uuid.UUID) (lease.Lease, error) {
	loaded, err := r.batcher.Do(ctx, id)
	if err != nil && loaded.shared && !errors.Is(err, context.DeadlineExceeded) {
		loaded.leases, err = r.read(ctx, []uuid.UUID{id})
	}
	l, found := loaded.leases[id]
	if err == nil && !found {
		err = fmt.Errorf("%w: lease %s", db.ErrNotFound, id)
	}
	return l, err
}
