package leasestore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
)

// notEndedSQL is the condition that a step of a row of the table lease is left: lease.Next returns another
// step than lease.StepStop.
const notEndedSQL = `(delete_requested_at is not null or status not in ('TERMINATED', 'ERROR') or status = 'ERROR' and (
	exists (select from event e where e.lease_id = lease.id and e.event_type = 'end_lease' and e.status = 'UNDONE')
	or exists (
		select from reservation r
		where r.lease_id = lease.id and (
			exists (select from host_allocation a where a.reservation_id = r.id)
			or exists (select from floatingip_allocation a where a.reservation_id = r.id)
			or exists (select from resource_allocation a where a.reservation_id = r.id)))))`

// checkQuota returns a *lease.Fault if the quota does not allow the project another lease with these
// reservations. An advisory lock serializes the creations of leases in a project, so that two concurrent
// creations cannot both use the last unit of the quota.
func (s *Store) checkQuota(ctx context.Context, tx *transaction, d lease.Draft) error {
	var used lease.QuotaUsage
	if s.config.Quota.NeedsUsage(d.Project) {
		batch := &pgx.Batch{}
		batch.Queue(
			`select pg_advisory_xact_lock(hashtextextended('quota of leases ' || $1::text, 0))`,
			d.Project,
		)
		// A project that has as many leases as its limit gets no further one, however many more it has.
		batch.Queue(`
			select count(*), coalesce(sum(reservations), 0)::bigint
			from (
				select (select count(*) from reservation r where r.lease_id = lease.id) as reservations
				from lease
				where project_id = $1 and status <> 'TERMINATED' and `+notEndedSQL+`
				limit $2) as counted`, d.Project, s.config.Quota.Limit(d.Project, lease.QuotaLeases)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&used.Leases, &used.Reservations) })
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("count the leases of project %s: %w", d.Project, err)
		}
	}
	return s.config.Quota.CheckDraft(d, used)
}
