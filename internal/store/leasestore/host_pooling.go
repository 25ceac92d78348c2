package leasestore

import (
	"context"
	"fmt"

	"berth/internal/contract"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// enqueuePoolUpdate stores in the caller's transaction that a host has to be added to Nova's aggregate
// "freepool" or removed from it. enqueuePoolUpdate also nudges the workflow that updates the aggregate
// "freepool".
func (s *Store) enqueuePoolUpdate(ctx context.Context, tx *transaction, service string) error {
	if !s.config.PoolHosts {
		return nil
	}
	if _, err := tx.Exec(ctx, `
		insert into host_pooling (service_name)
		values ($1)
		on conflict (service_name) do update
		set version = host_pooling.version + 1`, service); err != nil {
		return fmt.Errorf("store pool update of host %s: %w", service, err)
	}
	return outbox.Enqueue(ctx, tx, contract.Nudge{
		Workflow:   contract.Pool,
		ID:         contract.PoolID(service),
		Summary:    "host " + service + " in the pool",
		Attributes: contract.Attributes{Host: service, Resource: "pool"},
	})
}

// PendingPoolUpdate returns whether a host is registered as reservable, and the version of the pending update
// that adds the host to Nova's aggregate "freepool" or removes it. PendingPoolUpdate returns db.ErrNotFound
// if the host has no pending update.
func (s *Store) PendingPoolUpdate(
	ctx context.Context,
	service string,
) (reservable bool, version int64, err error) {
	err = s.db.QueryRow(ctx, `
		select exists (select from host h where h.service_name = p.service_name), p.version
		from host_pooling p
		where p.service_name = $1`, service).Scan(&reservable, &version)
	return reservable, version, db.NotFoundOr(err, "pool update of host %s", service)
}

// DeletePoolUpdate deletes the pending update of Nova's aggregate "freepool" for a host, but only if the
// update still has the given version. A later version means that the host has changed again, and that the new
// update has not been executed yet.
func (s *Store) DeletePoolUpdate(ctx context.Context, service string, version int64) error {
	if _, err := s.db.Exec(ctx, `delete from host_pooling where service_name = $1 and version = $2`, service, version); err != nil {
		return fmt.Errorf("delete pool update of host %s: %w", service, err)
	}
	return nil
}
