package networkstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"berth/internal/network"
)

// heedQuota has nobody who checks a project's quota change it from now on until the transaction ends. What is read of the quota after it,
// in a statement of its own, holds that long.
const heedQuota = `select pg_advisory_xact_lock_shared(hashtextextended('quota of ' || $1::text, 0))`

// admit refuses one more of a resource than the project may have. The resource is the name of its table, too.
func admit(ctx context.Context, tx *transaction, resource, project string) error {
	var own *int64
	batch := &pgx.Batch{}
	batch.Queue(heedQuota, project)
	batch.Queue(`select (select amount from quota where project = $1 and resource = $2)`, project, resource).
		QueryRow(func(row pgx.Row) error { return row.Scan(&own) })
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("read quota: %w", err)
	}
	return bound(ctx, tx, resource, project, own)
}

// bound is admit for who has read the project's own limit. Where there is one, those who make such a resource for the same
// project do it one after the other, so that two who each see room for one do not both take it.
func bound(ctx context.Context, tx *transaction, resource, project string, own *int64) error {
	limit := tx.config.Quota.Limit(resource)
	if own != nil {
		limit = *own
	}
	if limit < 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('quota ' || $1::text || ' ' || $2::text, 0))`, resource, project); err != nil {
		return fmt.Errorf("lock quota: %w", err)
	}
	var used int64
	if err := tx.QueryRow(ctx, `select count(*) from `+resource+` where project = $1`, project).Scan(&used); err != nil {
		return fmt.Errorf("count every %s: %w", resource, err)
	}
	if used >= limit {
		return network.OverQuota(resource)
	}
	return nil
}

// DefaultQuota is how many of each resource a project may have that has no quota of its own.
func (s *Store) DefaultQuota() network.Quota { return s.complete(nil) }

// complete adds the limits that a project has none of its own for.
func (s *Store) complete(own network.Quota) network.Quota {
	q := network.Quota{}
	for _, resource := range network.QuotaResources() {
		q[resource] = s.config.Quota.Limit(resource)
		if limit, ok := own[resource]; ok {
			q[resource] = limit
		}
	}
	return q
}

// Quota is how many of each resource a project may have.
func (s *Store) Quota(ctx context.Context, project string) (network.Quota, error) {
	all, err := s.quotas(ctx, []string{project})
	return s.complete(all[project]), err
}

// Quotas are those of the projects that have some of their own.
func (s *Store) Quotas(ctx context.Context) (map[string]network.Quota, error) {
	all, err := s.quotas(ctx, nil)
	for project, own := range all {
		all[project] = s.complete(own)
	}
	return all, err
}

// quotas are the limits that projects have of their own; nil for those of all projects.
func (s *Store) quotas(ctx context.Context, projects []string) (map[string]network.Quota, error) {
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

// SetQuota changes how many of these resources a project may have. What it has already stays.
func (s *Store) SetQuota(ctx context.Context, project string, q network.Quota) error {
	return s.inTx(ctx, func(tx *transaction) error { return setQuota(ctx, tx, project, q) })
}

// LimitQuota is SetQuota unless the project has more already. It waits for those who are making something for it, and
// whoever comes later finds the new quota.
func (s *Store) LimitQuota(ctx context.Context, project string, q network.Quota) error {
	return s.inTx(ctx, func(tx *transaction) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('quota of ' || $1::text, 0))`, project); err != nil {
			return fmt.Errorf("lock quota: %w", err)
		}
		batch := &pgx.Batch{}
		used := queueUsed(batch, project)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("count what %s has: %w", project, err)
		}
		if err := q.CheckUsage(used); err != nil {
			return err
		}
		return setQuota(ctx, tx, project, q)
	})
}

func setQuota(ctx context.Context, tx *transaction, project string, q network.Quota) error {
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

// ForgetQuota has the defaults hold for a project again that had limits of its own.
func (s *Store) ForgetQuota(ctx context.Context, project string) error {
	tag, err := s.db.Exec(ctx, `delete from quota where project = $1`, project)
	switch {
	case err != nil:
		return fmt.Errorf("forget quota: %w", err)
	case tag.RowsAffected() == 0:
		return missing(network.Faultf(network.QuotaNotFound, "Quota for tenant %s could not be found.", project))
	default:
		return nil
	}
}

// Used counts what a project has of each resource.
func (s *Store) Used(ctx context.Context, project string) (map[string]int64, error) {
	batch := &pgx.Batch{}
	used := queueUsed(batch, project)
	if err := s.db.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("count what %s has: %w", project, err)
	}
	return used, nil
}

// queueUsed counts what a project has of each resource.
func queueUsed(batch *pgx.Batch, project string) map[string]int64 {
	used := map[string]int64{}
	for _, resource := range network.QuotaResources() {
		batch.Queue(`select count(*) from `+resource+` where project = $1`, project).QueryRow(func(row pgx.Row) error {
			var n int64
			err := row.Scan(&n)
			used[resource] = n
			return err
		})
	}
	return used
}
