package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
)

// errPlanned undoes what was only tried.
var errPlanned = errors.New("only planned")

// PlanLease is the lease that a draft would become now, with the hosts that it would get, or the refusal. It is
// created and undone: nothing is left of it, and nobody hears of it. With a latest start it is the earliest
// such lease from the draft's start on.
func (s *Store) PlanLease(ctx context.Context, d lease.Draft, latest *time.Time) (l lease.Lease, err error) {
	if err := lease.CheckDraft(d); err != nil {
		return l, err
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		draft := d
		if latest != nil {
			if draft, err = s.earliest(ctx, tx, d, *latest); err != nil {
				return err
			}
		}
		if l, err = s.createLease(ctx, tx, draft); err != nil {
			return err
		}
		return errPlanned
	})
	if !errors.Is(err, errPlanned) {
		return lease.Lease{}, err
	}
	return l, nil
}

// earliest moves a draft to where it first fits.
func (s *Store) earliest(ctx context.Context, tx pgx.Tx, d lease.Draft, latest time.Time) (lease.Draft, error) {
	now, err := clock(ctx, tx)
	if err != nil {
		return d, err
	}
	dates, err := lease.Plan(d, s.limits.Lead, now)
	if err != nil {
		return d, err
	}
	hosts, err := readHosts(ctx, tx, `true`)
	if err != nil {
		return d, err
	}
	busy, err := busyHosts(ctx, tx)
	if err != nil {
		return d, err
	}
	cleaned := lease.Schedule{Start: dates.Start, End: dates.End.Add(s.limits.Cleaning)}
	start, err := lease.Earliest(d, cleaned, latest, hosts, busy)
	if err != nil || start.Equal(dates.Start) {
		return d, err
	}
	return d.Later(dates, start), nil
}

// busyHosts is who has hosts: whoever was ever given one and has not left it.
func busyHosts(ctx context.Context, tx pgx.Tx) ([]lease.Busy, error) {
	rows, err := tx.Query(ctx, `
		select a.host_id, lower(a.during), upper(a.during), e.status = 'ERROR'
		from host_allocation a
		join reservation r on r.id = a.reservation_id
		join event e on e.lease_id = r.lease_id and e.event_type = 'end_lease'
		order by upper(a.during)`)
	if err != nil {
		return nil, fmt.Errorf("who has hosts: %w", err)
	}
	busy, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b lease.Busy, err error) {
		return b, row.Scan(&b.Host, &b.From, &b.To, &b.Stuck)
	})
	if err != nil {
		return nil, fmt.Errorf("who has hosts: %w", err)
	}
	return busy, nil
}
