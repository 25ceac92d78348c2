package leasestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// hostResource implements the interface resource for reservations of the type physical:host.
type hostResource struct{}

func (hostResource) allocate(ctx context.Context, tx *transaction, b allocationRequest) error {
	c, err := newHostRequest(tx, b)
	if err != nil {
		return err
	}
	return c.allocate(ctx, tx)
}

// hostRequest contains the minimum and maximum number of hosts to allocate to a reservation, the requirements
// for the hosts, and the already allocated hosts that the reservation keeps.
type hostRequest struct {
	allocationRequest
	least, most  int
	requirements []lease.Requirement
	kept         []int64
}

func newHostRequest(tx *transaction, b allocationRequest) (hostRequest, error) {
	if tx.search != nil { // match parses the requirements once for all starts
		return hostRequest{allocationRequest: b, least: b.Min, most: b.Max}, nil
	}
	requirements, err := lease.HostRequirements(b.HypervisorProperties, b.ResourceProperties)
	return hostRequest{
		allocationRequest: b,
		least:             b.Min,
		most:              b.Max,
		requirements:      requirements,
	}, err
}

// allocate chooses hosts for a reservation and stores the allocations.
func (b hostRequest) allocate(ctx context.Context, tx *transaction) error {
	if b.most <= 0 {
		return nil
	}
	all, err := readHostCandidates(ctx, tx, b.allocationRequest)
	if err != nil {
		return err
	}
	matching, err := tx.matchHosts(all, b.ReservationDraft)
	if err != nil {
		return err
	}
	matching = slices.DeleteFunc(matching, func(c lease.HostCandidate) bool {
		return slices.Contains(b.kept, c.ID)
	})
	if b.shuffled {
		rand.Shuffle(len(matching), func(i, j int) { matching[i], matching[j] = matching[j], matching[i] })
	}
	hosts, err := lease.PickHosts(matching, max(b.least, 0), b.most)
	if err != nil || len(hosts) == 0 {
		return err
	}
	slices.Sort(hosts)
	// Without the lock of the hosts' rows, two transactions that insert allocations of the same host at the
	// same time wait for each other, and PostgreSQL ends this deadlock only after a second.
	if _, err := tx.Exec(ctx, `
		with locked as (select id from host where id = any($2) order by id for no key update)
		insert into host_allocation (reservation_id, host_id, during, owner)
		select $1, id, tstzrange($3, $4), $1
		from locked`, b.ID, hosts, b.from, b.to); err != nil {
		return fmt.Errorf("allocate hosts: %w", err)
	}
	return b.checkRequirements(ctx, tx, hosts)
}

// checkRequirements returns errTaken if one of the hosts no longer meets the requirements. The caller has
// already inserted the allocations of the hosts, and this insertion has locked the hosts, so that no other
// transaction can change them.
func (b hostRequest) checkRequirements(ctx context.Context, tx *transaction, hosts []int64) error {
	if len(b.requirements) == 0 || tx.search != nil { // a plan does not keep its hosts
		return nil
	}
	all, err := readHosts(ctx, tx, `h.id = any($1)`, hosts)
	if err != nil {
		return err
	}
	for _, h := range all {
		if !h.Meets(b.requirements) {
			return errTaken
		}
	}
	return nil
}

// readHostCandidates returns all hosts, sorted by ID. For each host, readHostCandidates says whether the host
// has allocations, whether it is free at the requested dates, whether a lease still holds it past the end of
// the lease, and whether it is a former host of the reservation or of another one. If the end of a lease has
// failed, the hosts of this lease are not free. The query searches for failed ends only among the
// reservations that have started, because a reservation that has not started cannot have a failed end and few
// reservations have started.
func readHostCandidates(
	ctx context.Context,
	tx *transaction,
	b allocationRequest,
) ([]lease.HostCandidate, error) {
	all, err := db.QueryAll(ctx, tx, func(row pgx.CollectableRow) (c lease.HostCandidate, err error) {
		c.Host, err = scanHost(row, &c.Booked, &c.Free, &c.Late, &c.Former, &c.FormerOfOther)
		return c, err
	}, `
		with former as materialized (`+formerHostsSQL+`)
		select `+hostColumns+`,
			exists (select from host_allocation a where a.host_id = h.id)
				or h.id in (select host_id from former where reservation_id <> $3),
			not exists (select from host_allocation a where a.host_id = h.id and a.during && tstzrange($1, $2))
				and h.id <> all(array(
					select a.host_id
					from host_allocation a
					join reservation r on r.id = a.reservation_id
					join event e on e.lease_id = r.lease_id and e.event_type = 'end_lease'
					where a.during && tstzrange(null, now()) and e.status = 'ERROR')),
			h.id = any(array(
				select a.host_id
				from host_allocation a
				join reservation r on r.id = a.reservation_id
				join lease l on l.id = r.lease_id
				where a.during << tstzrange(now(), null) and l.status <> 'PENDING')),
			h.id in (select host_id from former where reservation_id = $3),
			h.id in (select host_id from former where reservation_id <> $3 and end_at > $1)
		from host h
		order by h.id`, b.from, b.to, b.ID)
	if err != nil {
		return nil, fmt.Errorf("read free hosts: %w", err)
	}
	return all, nil
}

func (hostResource) reallocate(ctx context.Context, tx *transaction, request allocationRequest) error {
	b, err := newHostRequest(tx, request)
	if err != nil {
		return err
	}
	if err := b.chooseKept(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		delete from host_allocation
		where reservation_id = $1 and not host_id = any($2)`, b.ID, b.kept); err != nil {
		return fmt.Errorf("release hosts: %w", err)
	}
	if _, err := tx.Exec(ctx, `
		with moved as (
			select host_id, case when $4 then lower(during) else $2 end as begins
			from host_allocation
			where reservation_id = $1)
		update host_allocation a
		set during = tstzrange(m.begins, greatest($3, m.begins + interval '1 microsecond'))
		from moved m
		where a.reservation_id = $1 and a.host_id = m.host_id`, b.ID, b.from, b.to, b.active); err != nil {
		return fmt.Errorf("change dates of host allocations: %w", err)
	}
	b.least, b.most = b.least-len(b.kept), b.most-len(b.kept)
	return b.allocate(ctx, tx)
}

// chooseKept sets the field `kept` to the hosts that a reservation keeps when it changes. A reservation keeps
// those of its hosts that meet the requirements and have no other reservation at the new dates, up to the
// maximum number of hosts.
func (b *hostRequest) chooseKept(ctx context.Context, tx *transaction) error {
	held, err := readHosts(ctx, tx,
		`h.id in (select host_id from host_allocation where reservation_id = $1)`, b.ID)
	if err != nil {
		return err
	}
	taken, err := hostsTakenByOthers(ctx, tx, b.allocationRequest)
	if err != nil {
		return err
	}
	changed := b.HypervisorProperties != b.before.HypervisorProperties ||
		b.ResourceProperties != b.before.ResourceProperties
	if changed { // so that an unknown property is reported as such, and not as a lack of hosts
		all, err := readHostCandidates(ctx, tx, b.allocationRequest)
		if err != nil {
			return err
		}
		if _, err := tx.matchHosts(all, b.ReservationDraft); err != nil {
			return err
		}
	}
	b.kept = []int64{}
	for _, h := range held {
		fits := !changed || h.Meets(b.requirements)
		if fits && len(b.kept) < b.most && !slices.Contains(taken, h.ID) {
			b.kept = append(b.kept, h.ID)
		}
	}
	if b.active && len(b.kept) < len(held) {
		return lease.Faultf(lease.NotEnoughHosts, "Not enough hosts available")
	}
	return nil
}

// replaceHost replaces a failed host of a reservation by a free host. If the reservation is active,
// replaceHost also stores the failed host, because servers of the reservation can be on it.
func (hostResource) replaceHost(
	ctx context.Context,
	tx *transaction,
	request allocationRequest,
	host int64,
) (whole bool, err error) {
	b, err := newHostRequest(tx, request)
	if err != nil {
		return false, err
	}
	if err := releaseHost(ctx, tx, b.ID, host); err != nil {
		return false, err
	}
	if b.active {
		if err := keepFormerHost(ctx, tx, b.ID, host); err != nil {
			return false, err
		}
	}
	b.kept = append(slices.Clone(b.Hosts), host)
	b.least, b.most = 1, 1
	var fault *lease.Fault
	if err := b.allocate(ctx, tx); errors.As(err, &fault) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, nil
}

func releaseHost(ctx context.Context, tx *transaction, reservation uuid.UUID, host int64) error {
	if _, err := tx.Exec(ctx, `delete from host_allocation where reservation_id = $1 and host_id = $2`, reservation, host); err != nil {
		return fmt.Errorf("release host %d of reservation %s: %w", host, reservation, err)
	}
	return nil
}

func (hostResource) release(ctx context.Context, tx *transaction, reservations ...uuid.UUID) error {
	return releaseHosts(ctx, tx, reservations...)
}

func releaseHosts(ctx context.Context, tx *transaction, reservations ...uuid.UUID) error {
	if _, err := tx.Exec(ctx, `delete from host_allocation where reservation_id = any($1)`, reservations); err != nil {
		return fmt.Errorf("release hosts of reservations %s: %w", reservations, err)
	}
	return nil
}

// hostsTakenByOthers returns those hosts of a reservation that are also allocated to another reservation at
// the requested dates, and former hosts of other reservations. A reservation that is active keeps such a
// host, because its start has already deleted the servers on the host.
func hostsTakenByOthers(ctx context.Context, tx *transaction, b allocationRequest) ([]int64, error) {
	taken, err := db.QueryAll(ctx, tx, pgx.RowTo[int64], `
		select distinct mine.host_id
		from host_allocation mine
		join host_allocation theirs on theirs.host_id = mine.host_id and theirs.reservation_id <> mine.reservation_id
		where mine.reservation_id = $1 and theirs.during && tstzrange($2, $3)
		union
		select host_id
		from (`+formerHostsSQL+`) f
		where reservation_id <> $1 and end_at > $2 and not $4`, b.ID, b.from, b.to, b.active)
	if err != nil {
		return nil, fmt.Errorf("read other allocations of hosts: %w", err)
	}
	return taken, nil
}
