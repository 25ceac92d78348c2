package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
)

// bookingLock is the advisory lock that those take who lost a race for a host, so that they race no more among
// themselves.
const bookingLock = 0x6265727468

// bookingTries is how often hosts are chosen anew after others took them.
const bookingTries = 50

// errTaken means that a chosen host was taken, or changed its properties, before it could be booked.
var errTaken = errors.New("the host was taken meanwhile")

// booking is what a reservation asks for, and what it keeps of what it has.
type booking struct {
	reservation  uuid.UUID
	from, to     time.Time
	least, most  int
	requirements []lease.Requirement
	kept         []int64
}

// racing runs f, which books hosts, until nobody else takes its choice. The table refuses what overlaps; f's
// writes are then undone and it chooses anew, from what there is now.
func racing(ctx context.Context, tx pgx.Tx, f func(tx pgx.Tx) error) error {
	for range bookingTries {
		err := pgx.BeginFunc(ctx, tx, f)
		if !violates(err, "host_allocation_once") && !errors.Is(err, errTaken) {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, bookingLock); err != nil {
			return fmt.Errorf("queue for hosts: %w", err)
		}
	}
	return fmt.Errorf("%w: the hosts are being taken by others; try again", ErrConflict)
}

// book chooses hosts for a reservation and writes them down.
func book(ctx context.Context, tx pgx.Tx, b booking) error {
	if b.most <= 0 {
		return nil
	}
	all, err := candidates(ctx, tx, b.from, b.to)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(c lease.Candidate) bool { return slices.Contains(b.kept, c.ID) })
	matching, err := lease.Matching(all, b.requirements)
	if err != nil {
		return err
	}
	hosts, err := lease.Pick(matching, max(b.least, 0), b.most)
	if err != nil || len(hosts) == 0 {
		return err
	}
	slices.Sort(hosts)
	if _, err := tx.Exec(ctx, `
		insert into host_allocation (reservation_id, host_id, during)
		select $1, host_id, tstzrange($3, $4)
		from unnest($2::bigint[]) as host_id`, b.reservation, hosts, b.from, b.to); err != nil {
		return fmt.Errorf("book hosts: %w", err)
	}
	return b.check(ctx, tx, hosts)
}

// check makes sure that the hosts, which are locked against changes now, are still what was asked for.
func (b booking) check(ctx context.Context, tx pgx.Tx, hosts []int64) error {
	if len(b.requirements) == 0 {
		return nil
	}
	all, err := readHosts(ctx, tx, `h.id = any($1)`, hosts)
	if err != nil {
		return err
	}
	for _, h := range all {
		properties := h.Properties()
		for _, r := range b.requirements {
			if !r.Holds(properties) {
				return errTaken
			}
		}
	}
	return nil
}

// candidates lists all hosts by ID and how they stand in a window. A host that its last reservation failed to
// leave is not free.
func candidates(ctx context.Context, tx pgx.Tx, from, to time.Time) ([]lease.Candidate, error) {
	hosts, err := readHosts(ctx, tx, `true`)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `
		select a.host_id, bool_or(a.during && tstzrange($1, $2) or e.status = 'ERROR')
		from host_allocation a
		join reservation r on r.id = a.reservation_id
		join event e on e.lease_id = r.lease_id and e.event_type = 'end_lease'
		group by a.host_id`, from, to)
	if err != nil {
		return nil, fmt.Errorf("which hosts are free: %w", err)
	}
	busy := map[int64]bool{}
	var id int64
	var taken bool
	if _, err := pgx.ForEachRow(rows, []any{&id, &taken}, func() error { busy[id] = taken; return nil }); err != nil {
		return nil, fmt.Errorf("which hosts are free: %w", err)
	}
	all := make([]lease.Candidate, len(hosts))
	for i, h := range hosts {
		taken, booked := busy[h.ID]
		all[i] = lease.Candidate{Host: h, Booked: booked, Free: !taken}
	}
	return all, nil
}

// rebook moves what a reservation has to the lease's new window and changes its number of hosts. An active
// reservation keeps every host that it has, or is refused.
func rebook(ctx context.Context, tx pgx.Tx, b booking, active bool, changed bool) error {
	if err := b.keep(ctx, tx, active, changed); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		delete from host_allocation
		where reservation_id = $1 and not host_id = any($2)`, b.reservation, b.kept); err != nil {
		return fmt.Errorf("leave hosts: %w", err)
	}
	if _, err := tx.Exec(ctx, `
		with moved as (
			select host_id, case when $4 then lower(during) else $2 end as begins
			from host_allocation
			where reservation_id = $1)
		update host_allocation a
		set during = tstzrange(m.begins, greatest($3, m.begins + interval '1 microsecond'))
		from moved m
		where a.reservation_id = $1 and a.host_id = m.host_id`, b.reservation, b.from, b.to, active); err != nil {
		return fmt.Errorf("move hosts to the new dates: %w", err)
	}
	b.least, b.most = b.least-len(b.kept), b.most-len(b.kept)
	return book(ctx, tx, b)
}

// keep decides which of its hosts a reservation keeps: those that still match and that nobody else has in the
// new window, up to its maximum.
func (b *booking) keep(ctx context.Context, tx pgx.Tx, active, changed bool) error {
	held, err := readHosts(ctx, tx, `h.id in (select host_id from host_allocation where reservation_id = $1)`, b.reservation)
	if err != nil {
		return err
	}
	taken, err := takenByOthers(ctx, tx, *b)
	if err != nil {
		return err
	}
	b.kept = []int64{}
	for _, h := range held {
		properties := h.Properties()
		fits := !changed || !slices.ContainsFunc(b.requirements, func(r lease.Requirement) bool { return !r.Holds(properties) })
		if fits && len(b.kept) < b.most && !slices.Contains(taken, h.ID) {
			b.kept = append(b.kept, h.ID)
		}
	}
	if active && len(b.kept) < len(held) {
		return lease.Refuse(lease.NotEnoughHosts, "Not enough hosts available")
	}
	return nil
}

func takenByOthers(ctx context.Context, tx pgx.Tx, b booking) ([]int64, error) {
	rows, err := tx.Query(ctx, `
		select distinct mine.host_id
		from host_allocation mine
		join host_allocation theirs on theirs.host_id = mine.host_id and theirs.reservation_id <> mine.reservation_id
		where mine.reservation_id = $1 and theirs.during && tstzrange($2, $3)`, b.reservation, b.from, b.to)
	if err != nil {
		return nil, fmt.Errorf("who has the hosts in the new window: %w", err)
	}
	taken, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("who has the hosts in the new window: %w", err)
	}
	return taken, nil
}
