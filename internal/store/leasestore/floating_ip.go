package leasestore

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/db"
)

const addressSelect = `
	select id, network_id, subnet_id, address, reservable, created_at, updated_at
	from floatingip f`

// FloatingIPs returns at most `limit` reservable floating IPs that come after another one, sorted by address.
// If `after` is the zero value, the list begins with the first floating IP.
func (s *Store) FloatingIPs(
	ctx context.Context,
	after lease.ReservableFloatingIP,
	limit int,
) ([]lease.ReservableFloatingIP, error) {
	return readFloatingIPs(ctx, s.db, `f.id in (
		select id
		from floatingip
		where $1::inet is null or (address, id) > ($1::inet, $2)
		order by address, id
		limit $3)`, db.InetParam(after.IP), after.ID, limit)
}

// FloatingIP returns the reservable floating IP with the given ID. FloatingIP returns db.ErrNotFound if no
// reservable floating IP has the ID.
func (s *Store) FloatingIP(ctx context.Context, id uuid.UUID) (lease.ReservableFloatingIP, error) {
	all, err := readFloatingIPs(ctx, s.db, `f.id = $1`, id)
	if err == nil && len(all) == 0 {
		err = floatingIPNotFound(id)
	}
	if err != nil {
		return lease.ReservableFloatingIP{}, err
	}
	return all[0], nil
}

func floatingIPNotFound(id uuid.UUID) error {
	return fmt.Errorf("%w: floating IP %s", db.ErrNotFound, id)
}

func readFloatingIPs(
	ctx context.Context,
	q db.Querier,
	where string,
	args ...any,
) ([]lease.ReservableFloatingIP, error) {
	all, err := db.QueryAll(ctx, q, pgx.RowToStructByPos[lease.ReservableFloatingIP], addressSelect+` where `+where+` order by f.address, f.id`, args...)
	if err != nil {
		return nil, fmt.Errorf("read floating IPs: %w", err)
	}
	return all, nil
}

// RegisterFloatingIP makes a floating IP of a network reservable. The address must be in a subnet of the
// network, but must not be the subnet's gateway. The address must also not be in an allocation pool, because
// Neutron could then allocate it to a port.
func (s *Store) RegisterFloatingIP(
	ctx context.Context,
	network uuid.UUID,
	ip netip.Addr,
) (a lease.ReservableFloatingIP, err error) {
	err = s.inTx(ctx, func(tx *transaction) error {
		subnet, err := findSubnet(ctx, tx, network, ip)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			insert into floatingip (id, network_id, subnet_id, address)
			values ($1, $2, $3, $4)
			returning id, network_id, subnet_id, address, reservable, created_at, updated_at`, uuid.New(), network, subnet, ip)
		if err == nil {
			a, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[lease.ReservableFloatingIP])
		}
		if db.Violates(err, "floatingip_once") {
			return lease.Faultf(lease.AddressInUse, "The floating IP %s is registered already.", ip)
		}
		if err != nil {
			return fmt.Errorf("register floating IP %s: %w", ip, err)
		}
		tx.Changed(db.Change{Type: "floatingip", ID: a.ID.String()})
		return nil
	})
	return a, err
}

// findSubnet returns the ID of the subnet that contains a floating IP. If the address of the floating IP
// cannot be made reservable, findSubnet returns a *lease.Fault.
func findSubnet(
	ctx context.Context,
	tx *transaction,
	network uuid.UUID,
	ip netip.Addr,
) (id uuid.UUID, err error) {
	rows, err := tx.Query(ctx, `
		select n.id, s.id, s.cidr >> $2::inet, s.gateway = $2::inet,
			masklen(s.cidr) < case family(s.cidr) when 4 then 31 else 127 end
				and (host($2::inet) = host(network(s.cidr)) or family(s.cidr) = 4 and host($2::inet) = host(broadcast(s.cidr))),
			exists (select from jsonb_array_elements(s.pools) p where $2::inet between (p->>'start')::inet and (p->>'end')::inet)
		from network n
		left join subnet s on s.network_id = n.id
		where n.id = $1`, network, ip)
	if err != nil {
		return id, fmt.Errorf("read subnets of network %s: %w", network, err)
	}
	type found struct {
		network uuid.UUID
		id      *uuid.UUID
		holds   *bool
		gateway *bool
		edge    *bool // the network address, or the IPv4 broadcast address, of the subnet
		pooled  bool
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) {
		return f, row.Scan(&f.network, &f.id, &f.holds, &f.gateway, &f.edge, &f.pooled)
	})
	if err != nil {
		return id, fmt.Errorf("read subnets of network %s: %w", network, err)
	}
	if len(all) == 0 {
		return id, lease.Faultf(lease.UnknownNetwork, "Network %s could not be found.", network)
	}
	i := slices.IndexFunc(all, func(f found) bool { return f.holds != nil && *f.holds })
	switch {
	case i < 0:
		return id, lease.Faultf(lease.UnknownNetwork,
			"No subnet of network %s holds the floating IP %s.", network, ip)
	case all[i].gateway != nil && *all[i].gateway:
		return id, lease.Faultf(lease.InvalidInput, "The floating IP %s is the gateway of its subnet.", ip)
	case *all[i].edge:
		return id, lease.Faultf(lease.InvalidInput,
			"The floating IP %s is the network address or the broadcast address of its subnet.", ip)
	case all[i].pooled:
		return id, lease.Faultf(lease.InvalidInput,
			"The floating IP %s is in an allocation pool of its subnet, so Neutron could give it to a port.",
			ip)
	}
	return *all[i].id, nil
}

// DeleteFloatingIP deletes a reservable floating IP. DeleteFloatingIP returns a *lease.Fault if the floating
// IP is allocated to a current or future reservation.
func (s *Store) DeleteFloatingIP(ctx context.Context, id uuid.UUID) error {
	tag, err := s.db.ExecInTx(ctx, `delete from floatingip where id = $1`, id)
	switch {
	case db.Violates(err, "floatingip_allocation_address"):
		return lease.Faultf(lease.AddressInUse, "Floating IP %s is reserved and cannot be deleted.", id)
	case err != nil:
		return fmt.Errorf("delete floating IP %s: %w", id, err)
	case tag.RowsAffected() == 0:
		return floatingIPNotFound(id)
	}
	return nil
}

// floatingIPResource implements the interface resource for reservations of the type virtual:floatingip.
// Placement has no inventory of floating IPs, so the methods of floatingIPResource that change Placement do
// nothing.
type floatingIPResource struct{}

func (floatingIPResource) allocate(ctx context.Context, tx *transaction, b allocationRequest) error {
	candidates, err := readFloatingIPCandidates(ctx, tx, b)
	if err != nil {
		return err
	}
	picked, err := lease.PickFloatingIPs(candidates, b.Amount, b.Required)
	if err != nil {
		return err
	}
	return insertFloatingIPs(ctx, tx, b, picked)
}

// reallocate keeps those floating IPs of the reservation that are free at the new dates, up to the requested
// number. If reallocate keeps fewer floating IPs than requested, it allocates further floating IPs.
func (floatingIPResource) reallocate(ctx context.Context, tx *transaction, b allocationRequest) error {
	held, err := readFloatingIPs(ctx, tx,
		`f.id in (select floatingip_id from floatingip_allocation where reservation_id = $1)`, b.ID)
	if err != nil {
		return err
	}
	candidates, err := readFloatingIPCandidates(ctx, tx, b)
	if err != nil {
		return err
	}
	keep := slices.Clone(b.Required)
	for _, a := range held {
		free := slices.ContainsFunc(candidates,
			func(c lease.FloatingIPCandidate) bool { return c.ID == a.ID && c.Free })
		switch {
		case free && len(keep) < b.Amount && !slices.Contains(keep, a.IP):
			keep = append(keep, a.IP)
		case !free && b.active:
			return lease.Faultf(lease.NotEnoughAddresses,
				"Not enough floating IPs available: %s is not free.", a.IP)
		}
	}
	picked, err := lease.PickFloatingIPs(candidates, b.Amount, keep)
	if err != nil {
		return err
	}
	if err := (floatingIPResource{}).release(ctx, tx, b.ID); err != nil {
		return err
	}
	return insertFloatingIPs(ctx, tx, b, picked)
}

func insertFloatingIPs(ctx context.Context, tx *transaction, b allocationRequest, picked []uuid.UUID) error {
	if _, err := tx.Exec(ctx, `
		insert into floatingip_allocation (reservation_id, floatingip_id, during)
		select $1, id, tstzrange($3, $4)
		from unnest($2::uuid[]) as id`, b.ID, picked, b.from, b.to); err != nil {
		return fmt.Errorf("allocate floating IPs: %w", err)
	}
	return nil
}

// readFloatingIPCandidates returns the floating IPs of a reservation's network. For each floating IP,
// readFloatingIPCandidates says whether other reservations have the floating IP, and whether the floating IP
// is free at the requested dates. If the end of a lease has failed, the floating IPs of this lease are not
// free.
func readFloatingIPCandidates(
	ctx context.Context,
	tx *transaction,
	b allocationRequest,
) ([]lease.FloatingIPCandidate, error) {
	all, err := db.QueryAll(ctx, tx, func(row pgx.CollectableRow) (c lease.FloatingIPCandidate, err error) {
		return c, row.Scan(&c.ID, &c.Network, &c.Subnet, &c.IP,
			&c.Reservable, &c.CreatedAt, &c.UpdatedAt, &c.Booked, &c.Free)
	}, `
		select f.id, f.network_id, f.subnet_id, f.address, f.reservable, f.created_at, f.updated_at, x.booked, not coalesce(x.taken, false)
		from floatingip f
		cross join lateral (
			select count(*) > 0 as booked, bool_or(a.during && tstzrange($3, $4) or e.status = 'ERROR') as taken
			from floatingip_allocation a
			join reservation r on r.id = a.reservation_id
			join event e on e.lease_id = r.lease_id and e.event_type = 'end_lease'
			where a.floatingip_id = f.id and r.id <> $2) x
		where f.network_id = $1
		order by f.address, f.id`, b.Network, b.ID, b.from, b.to)
	if err != nil {
		return nil, fmt.Errorf("read free floating IPs: %w", err)
	}
	return all, nil
}

func (floatingIPResource) replaceHost(context.Context, *transaction, allocationRequest, int64) (bool, error) {
	return true, nil
}

func (floatingIPResource) addToInventory(context.Context, *transaction, []leaseReservation) error {
	return nil
}

func (floatingIPResource) removeFromInventory(context.Context, *transaction, []leaseReservation) error {
	return nil
}

func (floatingIPResource) missingInInventory(
	context.Context,
	*transaction,
	[]leaseReservation,
) ([]leaseReservation, error) {
	return nil, nil
}

func (floatingIPResource) release(ctx context.Context, tx *transaction, reservations ...uuid.UUID) error {
	if _, err := tx.Exec(ctx, `delete from floatingip_allocation where reservation_id = any($1)`, reservations); err != nil {
		return fmt.Errorf("release floating IPs of reservations %s: %w", reservations, err)
	}
	return nil
}
