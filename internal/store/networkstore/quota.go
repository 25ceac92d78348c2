package networkstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/network"
)

// lockQuotaShared prevents changes of a project's quota by SetQuotaAboveUsage until the transaction ends. The
// quota that the transaction reads after lockQuotaShared therefore stays valid until the transaction ends.
const lockQuotaShared = `select pg_advisory_xact_lock_shared(hashtextextended('quota of ' || $1::text, 0))`

// CheckQuota fails if the project's quota does not allow the given number of new objects of the resource. The
// name of a resource, for example `port`, is also the name of its table.
func CheckQuota(ctx context.Context, tx *Transaction, resource, project string, count int) error {
	var own *int64
	batch := &pgx.Batch{}
	batch.Queue(lockQuotaShared, project)
	batch.Queue(`select (select amount from quota where project = $1 and resource = $2)`, project, resource).
		QueryRow(func(row pgx.Row) error { return row.Scan(&own) })
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("read quota: %w", err)
	}
	return CheckQuotaLimit(ctx, tx, resource, project, count, own)
}

// CheckQuotaLimit does the same as CheckQuota for a limit that the caller has already read. An advisory lock
// serializes creations of the same resource in a project, so that two concurrent creations cannot both use
// the last unit of the quota.
func CheckQuotaLimit(
	ctx context.Context,
	tx *Transaction,
	resource, project string,
	count int,
	own *int64,
) error {
	limit := tx.config.Quota.Limit(resource)
	if own != nil {
		limit = *own
	}
	if limit < 0 {
		return nil
	}
	others := limit - int64(count) // existing objects that leave room for the new ones
	if others < 0 {
		return network.OverQuota(resource)
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('quota ' || $1::text || ' ' || $2::text, 0))`, resource, project); err != nil {
		return fmt.Errorf("lock quota: %w", err)
	}
	// One row more than `others` decides. A project can have many more objects than its limit, for example
	// after the limit was lowered.
	var used int64
	if err := tx.QueryRow(ctx, `
		select count(*)
		from (select from `+resource+` where project = $1 limit $2) as counted`, project, others+1).Scan(&used); err != nil {
		return fmt.Errorf("count %s rows: %w", resource, err)
	}
	if used > others {
		return network.OverQuota(resource)
	}
	return nil
}

// DefaultQuota returns the limits of a project that has no quota of its own.
func (s *Store) DefaultQuota() network.Quota { return s.config.Quota.WithDefaults(nil) }

// Quota returns the effective limits of a project.
func (s *Store) Quota(ctx context.Context, project string) (network.Quota, error) {
	all, err := s.projectQuotas(ctx, []string{project})
	return s.config.Quota.WithDefaults(all[project]), err
}

// Quotas returns the effective limits of each project that has a quota of its own.
func (s *Store) Quotas(ctx context.Context) (map[string]network.Quota, error) {
	all, err := s.projectQuotas(ctx, nil)
	for project, own := range all {
		all[project] = s.config.Quota.WithDefaults(own)
	}
	return all, err
}

// projectQuotas returns the quota limits that are set for the projects, without the default limits. If the
// list of projects is nil, projectQuotas returns the limits of all projects.
func (s *Store) projectQuotas(ctx context.Context, projects []string) (map[string]network.Quota, error) {
	rows, err := s.db.Query(ctx, `
		select project, resource, amount
		from quota
		where $1::text[] is null or project = any($1)`, projects)
	if err != nil {
		return nil, fmt.Errorf("read quotas: %w", err)
	}
	all := map[string]network.Quota{}
	var project, resource string
	var amount int64
	_, err = pgx.ForEachRow(rows, []any{&project, &resource, &amount}, func() error {
		if all[project] == nil {
			all[project] = network.Quota{}
		}
		all[project][resource] = amount
		return nil
	})
	return all, err
}

// SetQuota sets limits of a project. If the project already has more objects than a new limit allows,
// SetQuota keeps these objects.
func (s *Store) SetQuota(ctx context.Context, project string, q network.Quota) error {
	return s.inTx(ctx, func(tx *Transaction) error { return setQuota(ctx, tx, project, q) })
}

// SetQuotaAboveUsage does the same as SetQuota, but fails if the project already has more objects than a new
// limit allows. SetQuotaAboveUsage waits until the running transactions that create objects of the project
// have ended; transactions that begin later see the new quota.
func (s *Store) SetQuotaAboveUsage(ctx context.Context, project string, q network.Quota) error {
	return s.inTx(ctx, func(tx *Transaction) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('quota of ' || $1::text, 0))`, project); err != nil {
			return fmt.Errorf("lock quota: %w", err)
		}
		batch := &pgx.Batch{}
		used := queueUsage(batch, project)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("count resources of project %s: %w", project, err)
		}
		if err := q.CheckUsage(used); err != nil {
			return err
		}
		return setQuota(ctx, tx, project, q)
	})
}

func setQuota(ctx context.Context, tx *Transaction, project string, q network.Quota) error {
	batch := &pgx.Batch{}
	for _, resource := range network.QuotaResources() {
		if limit, ok := q[resource]; ok {
			batch.Queue(`
					insert into quota (project, resource, amount)
					values ($1, $2, $3)
					on conflict (project, resource) do update
					set amount = excluded.amount`, project, resource, limit)
		}
	}
	return tx.SendBatch(ctx, batch).Close()
}

// ResetQuota deletes the limits of a project, so that the defaults apply.
func (s *Store) ResetQuota(ctx context.Context, project string) error {
	tag, err := s.db.ExecInTx(ctx, `delete from quota where project = $1`, project)
	switch {
	case err != nil:
		return fmt.Errorf("reset quota: %w", err)
	case tag.RowsAffected() == 0:
		return NotFound(
			network.Faultf(network.QuotaNotFound, "Quota for tenant %s could not be found.", project),
		)
	default:
		return nil
	}
}

// QuotaUsage counts the objects of a project per resource.
func (s *Store) QuotaUsage(ctx context.Context, project string) (map[string]int64, error) {
	batch := &pgx.Batch{}
	used := queueUsage(batch, project)
	if err := s.db.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("count resources of project %s: %w", project, err)
	}
	return used, nil
}

// queueUsage queues the counts of a project's objects per resource.
func queueUsage(batch *pgx.Batch, project string) map[string]int64 {
	used := map[string]int64{}
	for _, resource := range network.QuotaResources() {
		batch.Queue(`select count(*) from `+resource+` where project = $1`, project).
			QueryRow(func(row pgx.Row) error {
				var n int64
				err := row.Scan(&n)
				used[resource] = n
				return err
			})
	}
	return used
}
