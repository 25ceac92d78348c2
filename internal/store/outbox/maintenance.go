package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// Parts of the periodic maintenance. A round of the maintenance runs the first three parts one after another;
// the healing begins with a read of the hosts from Nova.
const (
	SweepPart      = "sweep"      // restarts lost workflows and deletes old rows
	ControllerPart = "controller" // checks the controller and starts runs that are due
	HealingPart    = "healing"    // heals reservations and removes what ended leases may have left
	HostsPart      = "hosts"      // reads the states of the hosts from Nova
)

// MaintenancePart is a part of the periodic maintenance.
type MaintenancePart struct {
	Part string
	// CompletedAt is the time of the last completion. If the part was never completed, CompletedAt is the
	// time since which the part is expected.
	CompletedAt time.Time
}

// CompleteMaintenance stores that a part of the maintenance has just been completed.
func (s *Store) CompleteMaintenance(ctx context.Context, part string) error {
	_, err := s.db.Exec(ctx, `
		insert into maintenance (part) values ($1)
		on conflict (part) do update set completed_at = now()`, part)
	if err != nil {
		return fmt.Errorf("store the completion of the maintenance part %s: %w", part, err)
	}
	return nil
}

// ExpectMaintenance stores whether a part of the maintenance is expected to be completed. The age of a new
// part begins now.
func (s *Store) ExpectMaintenance(ctx context.Context, part string, expected bool) error {
	sql := `delete from maintenance where part = $1`
	if expected {
		sql = `insert into maintenance (part) values ($1) on conflict (part) do nothing`
	}
	if _, err := s.db.Exec(ctx, sql, part); err != nil {
		return fmt.Errorf("store whether the maintenance part %s is expected: %w", part, err)
	}
	return nil
}

// Maintenance returns the parts of the maintenance that are expected to be completed.
func (s *Store) Maintenance(ctx context.Context) ([]MaintenancePart, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[MaintenancePart], `
		select part, completed_at from maintenance order by part`)
	if err != nil {
		return nil, fmt.Errorf("read when the parts of the maintenance were completed: %w", err)
	}
	return all, nil
}
