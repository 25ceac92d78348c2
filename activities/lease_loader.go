package activities

import (
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

// leaseLoader collects the leases that concurrent callers request, and reads these leases with one query.
type leaseLoader struct {
	read    leaseReader
	batcher *coalesce.Batcher[uuid.UUID, loadedLeases]
}

// loadedLeases is the result of one read.
type loadedLeases struct {
	leases map[uuid.UUID]lease.Lease
	shared bool // the read was for several leases
}

func newLeaseLoader(read leaseReader, timeout time.Duration) *leaseLoader {
	return &leaseLoader{read: read, batcher: coalesce.NewBatcher(coalesce.Config[uuid.UUID, loadedLeases]{
		Timeout: timeout,
		Run: func(ctx context.Context, batch []*coalesce.Call[uuid.UUID, loadedLeases]) {
			requested := map[uuid.UUID]bool{}
			var ids []uuid.UUID
			for _, c := range batch {
				if !requested[c.Item] {
					ids = append(ids, c.Item)
				}
				requested[c.Item] = true
			}
			leases, err := read(ctx, ids)
			for _, c := range batch {
				c.Finish(loadedLeases{leases, len(ids) > 1}, err)
			}
		},
	})}
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
