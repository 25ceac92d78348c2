package leasestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// errPlanned is the error that makes a transaction roll back the creation or change of a lease that a client
// only wants to preview.
var errPlanned = errors.New("the preview is rolled back")

// PlanLease returns the lease that CreateLease would create, with its resources, or the *lease.Fault that
// CreateLease would return. PlanLease creates the lease in a transaction and rolls the transaction back, so
// that no row, note or notification remains. If `latest` is not nil, PlanLease chooses the earliest possible
// start date between the start date of the draft and `latest`. If the search for this date takes longer than
// the budget, PlanLease returns a fault of the kind lease.SearchTooLong with the start at which the search
// has ended.
func (s *Store) PlanLease(ctx context.Context, d lease.Draft, latest *time.Time) (l lease.Lease, err error) {
	if err := lease.CheckDraft(d); err != nil {
		return l, err
	}
	err = s.inTx(ctx, func(tx *transaction) error {
		draft := d
		if latest != nil {
			if draft, err = s.findEarliestStart(ctx, tx, d, *latest); err != nil {
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

// findEarliestStart returns the lease draft with its dates shifted to the earliest start date at which enough
// resources are free.
func (s *Store) findEarliestStart(
	ctx context.Context,
	tx *transaction,
	d lease.Draft,
	latest time.Time,
) (lease.Draft, error) {
	tx.search = newStartSearch(s.config.PlanBudget)
	now, err := databaseTime(ctx, tx)
	if err != nil {
		return d, err
	}
	dates, err := lease.NewSchedule(d, s.config.Limits.BeforeEndLead, now)
	if err != nil {
		return d, err
	}
	if latest.Before(dates.Start) {
		return d, lease.Faultf(lease.InvalidInput, "The latest start %s is before the start date.",
			latest.UTC().Format(time.RFC3339))
	}
	ofOtherType := func(r lease.ReservationDraft) bool { return r.Type != lease.PhysicalHost }
	if slices.ContainsFunc(d.Reservations, ofOtherType) {
		return s.tryStarts(ctx, tx, d, dates, latest)
	}
	hosts, err := readHosts(ctx, tx, `true`)
	if err != nil {
		return d, err
	}
	busy, err := readHostBookings(ctx, tx)
	if err != nil {
		return d, err
	}
	cleaned := lease.Schedule{Start: dates.Start, End: dates.End.Add(s.config.Limits.CleaningTime)}
	proceed := func(next time.Time) error { return tx.search.proceed(ctx, next) }
	start, err := lease.EarliestStart(d, cleaned, latest, hosts, busy, proceed)
	if err != nil || start.Equal(dates.Start) {
		return d, err
	}
	return d.StartingAt(dates, start), nil
}

// maxSlotAttempts is the maximum number of start dates that tryStarts tries.
const maxSlotAttempts = 500

// tryStarts returns the lease draft with its dates shifted to the first start date at which the lease can be
// created. tryStarts tries to create the lease at the start date of the draft and at each time at which
// another reservation releases a resource. There is no simpler way to find the start date, because
// reservations can share a resource, for example a host with instances.
func (s *Store) tryStarts(
	ctx context.Context,
	tx *transaction,
	d lease.Draft,
	dates lease.Schedule,
	latest time.Time,
) (lease.Draft, error) {
	starts, err := releaseTimes(ctx, tx, dates.Start, latest)
	if err != nil {
		return d, err
	}
	var fault *lease.Fault
	for i, start := range append([]time.Time{dates.Start}, starts...) {
		if i == maxSlotAttempts {
			return d, lease.Faultf(
				fault.Kind,
				"None of the first %d possible starts, until %s, has enough resources; search from a later start: %s",
				i, start.UTC().Format(time.RFC3339), fault.Message,
			)
		}
		later := d
		if i > 0 {
			if err := tx.search.proceed(ctx, start); err != nil {
				return d, err
			}
			later = d.StartingAt(dates, start)
		}
		err := tx.savepoint(ctx, func(tx *transaction) error {
			if _, err := s.createLease(ctx, tx, later); err != nil {
				return err
			}
			return errPlanned
		})
		if errors.Is(err, errPlanned) {
			return later, nil
		}
		if !errors.As(err, &fault) || !fault.IsShortage() {
			return d, err
		}
	}
	return d, lease.Faultf(fault.Kind, "No start until %s has enough resources: %s",
		latest.UTC().Format(time.RFC3339), fault.Message)
}

// releaseTimes returns the ends of the allocations that are later than `from` and not later than `until`.
func releaseTimes(ctx context.Context, tx *transaction, from, until time.Time) ([]time.Time, error) {
	all, err := db.QueryAll(ctx, tx, pgx.RowTo[time.Time], `
		select upper(during) from host_allocation where upper(during) > $1 and upper(during) <= $2
		union
		select upper(during) from floatingip_allocation where upper(during) > $1 and upper(during) <= $2
		union
		select upper(during) from resource_allocation where upper(during) > $1 and upper(during) <= $2
		union
		select end_at from (`+formerHostsSQL+`) f where end_at > $1 and end_at <= $2
		order by 1
		limit $3`, from, until, maxSlotAttempts)
	if err != nil {
		return nil, fmt.Errorf("read ends of allocations: %w", err)
	}
	return all, nil
}

// readHostBookings reads all host allocations that have not been released, and the former hosts of running
// reservations, which no other reservation gets. The search for the earliest start compares the requested
// dates with them.
func readHostBookings(ctx context.Context, tx *transaction) ([]lease.HostBooking, error) {
	busy, err := db.QueryAll(ctx, tx, func(row pgx.CollectableRow) (b lease.HostBooking, err error) {
		return b, row.Scan(&b.Host, &b.From, &b.To, &b.Stuck)
	}, `
		select a.host_id, lower(a.during), upper(a.during), e.status = 'ERROR'
		from host_allocation a
		join reservation r on r.id = a.reservation_id
		join event e on e.lease_id = r.lease_id and e.event_type = 'end_lease'
		union all
		select host_id, left_at, end_at, false
		from (`+formerHostsSQL+`) f
		where left_at < end_at
		order by 3`)
	if err != nil {
		return nil, fmt.Errorf("read host allocations: %w", err)
	}
	return busy, nil
}
