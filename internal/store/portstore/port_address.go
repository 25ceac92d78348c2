package portstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// requestedAddresses resolves the requested fixed IPs in the network's subnets. requestedAddresses returns an
// error if a named subnet does not exist.
func requestedAddresses(
	ctx context.Context,
	tx *transaction,
	p network.Port,
	subnets []network.Subnet,
	fixed []network.FixedIP,
) ([]network.AddressRequest, error) {
	requests, err := p.AddressRequests(subnets, fixed)
	for _, f := range fixed {
		if err != nil && f.Subnet != uuid.Nil {
			if _, missing := networkstore.SubnetByID(ctx, tx.Transaction, f.Subnet); missing != nil {
				return nil, missing
			}
		}
	}
	return requests, err
}

// allocateAddresses allocates the requested addresses for a port. The first allocated address gets the
// position `position` in the port's address list.
func allocateAddresses(
	ctx context.Context,
	tx *transaction,
	p network.Port,
	position int,
	requests []network.AddressRequest,
) ([]network.Address, error) {
	var allocated []network.Address
	for i, w := range requests {
		var a network.Address
		var err error
		if w.IP.IsValid() {
			a, err = allocateFixed(ctx, tx, p.ID, position+i, w)
		} else {
			a, err = allocateFromSubnets(ctx, tx, p, position+i, w.Subnets)
		}
		if err != nil {
			return nil, err
		}
		allocated = append(allocated, a)
	}
	return allocated, nil
}

// allocateFixed allocates the one address that the request names.
func allocateFixed(
	ctx context.Context,
	tx *transaction,
	port uuid.UUID,
	position int,
	w network.AddressRequest,
) (network.Address, error) {
	a := network.Address{Subnet: w.Subnets[0].ID, IP: w.IP}
	inserted, err := insertAddress(ctx, tx, port, position, a)
	if err == nil && !inserted {
		err = network.Faultf(network.AddressInUse, "IP address %s already allocated in subnet %s",
			a.IP, a.Subnet)
	}
	return a, err
}

// allocateFromSubnets allocates a free address from the first subnet that has one.
func allocateFromSubnets(
	ctx context.Context,
	tx *transaction,
	p network.Port,
	position int,
	subnets []network.Subnet,
) (network.Address, error) {
	for _, s := range subnets {
		for _, pool := range s.Pools {
			a, ok, err := allocateFromPool(ctx, tx, p, position, s.ID, pool)
			if err != nil || ok {
				return a, err
			}
		}
	}
	if len(subnets) == 1 {
		return network.Address{}, network.Faultf(network.IPAddressGenerationFailure,
			"No more IP addresses available on network %s, subnet %s.", p.Network, subnets[0].ID)
	}
	return network.Address{}, network.Faultf(network.IPAddressGenerationFailure,
		"No more IP addresses available on network %s.", p.Network)
}

// randomAttempts is the number of random addresses of a pool that are tried before findFreeAddresses searches
// the pool for free ones.
const randomAttempts = 6

// allocateFromPool allocates a free address from the pool; the result `ok` is false if the pool is exhausted.
// allocateFromPool waits for an address that another transaction is allocating only if no other address is
// left, because two transactions that wait for each other would deadlock.
func allocateFromPool(
	ctx context.Context,
	tx *transaction,
	p network.Port,
	position int,
	subnet uuid.UUID,
	pool network.Pool,
) (network.Address, bool, error) {
	named := network.NamedAddresses(tx.drafts, p.Network)
	random := slices.DeleteFunc(pool.RandomAddresses(randomAttempts),
		func(a netip.Addr) bool { return slices.Contains(named, a) })
	a, inserted, err := insertFirstFreeAddress(ctx, tx, p.ID, position, subnet, random)
	for err == nil && !inserted {
		var free []netip.Addr
		if free, err = findFreeAddresses(ctx, tx, subnet, pool, named); err != nil || len(free) == 0 {
			break
		}
		rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
		if a, inserted, err = insertFirstFreeAddress(ctx, tx, p.ID, position, subnet, free); err == nil &&
			!inserted {
			a.IP = free[0]
			inserted, err = insertAddress(ctx, tx, p.ID, position, a)
		}
	}
	return a, inserted, err
}

// maxAddressLocks is the maximum number of advisory locks of addresses that a transaction holds. All
// transactions share the lock table of PostgreSQL, which has room for 64 locks for each of its
// max_connections; when it is full, PostgreSQL refuses the locks of other transactions.
const maxAddressLocks = 256

// insertFirstFreeAddress allocates the first address that is free and that no other transaction is
// allocating. insertFirstFreeAddress does not wait for other transactions, because it tries the advisory lock
// of each candidate address with pg_try_advisory_xact_lock. A subnet has 1,024 advisory locks for its
// addresses, so two addresses can share one lock, and insertFirstFreeAddress may skip a free address. The
// transaction keeps one lock for each allocated address; insertFirstFreeAddress returns a fault if the
// transaction has already allocated maxAddressLocks addresses.
func insertFirstFreeAddress(
	ctx context.Context,
	tx *transaction,
	port uuid.UUID,
	position int,
	subnet uuid.UUID,
	free []netip.Addr,
) (network.Address, bool, error) {
	a := network.Address{Subnet: subnet}
	if tx.addressLocks >= maxAddressLocks {
		return a, false, network.Faultf(network.InvalidInput,
			"Invalid input for operation: "+
				"One request cannot allocate more than %d IP addresses that it does not name. Send several requests.",
			maxAddressLocks)
	}
	var got string
	err := tx.QueryRow(ctx, `
		insert into port_address (subnet_id, address, port_id, position)
		select $1, free.address, $3, $4
		from unnest($2::inet[]) as free (address)
		where case
			when (select true from port_address t where t.subnet_id = $1 and t.address = free.address) then false
			else pg_try_advisory_xact_lock(hashtext('address ' || $1::text), hashtext(host(free.address)) & 1023)
		end
		limit 1
		on conflict (subnet_id, address) do nothing
		returning host(address)`, subnet, free, port, position).Scan(&got)
	if db.NoRows(err) {
		return a, false, nil
	}
	if err == nil {
		a.IP, err = netip.ParseAddr(got)
	}
	if err != nil {
		return a, false, fmt.Errorf("allocate address: %w", err)
	}
	tx.addressLocks++
	return a, true, nil
}

// insertAddress allocates the address for the port. The result `inserted` is false if another port has the
// address.
func insertAddress(
	ctx context.Context,
	tx *transaction,
	port uuid.UUID,
	position int,
	a network.Address,
) (inserted bool, err error) {
	tag, err := tx.Exec(ctx, `
		insert into port_address (subnet_id, address, port_id, position)
		values ($1, $2::text::inet, $3, $4)
		on conflict (subnet_id, address) do nothing`, a.Subnet, a.IP.String(), port, position)
	if err != nil {
		return false, fmt.Errorf("allocate address %s: %w", a.IP, err)
	}
	return tag.RowsAffected() == 1, nil
}

// findFreeAddresses returns up to 16 free addresses of the pool. findFreeAddresses searches from a random
// address to the end of the pool, and finds this address and the addresses that directly follow a used
// address. If there is no free address up to the end of the pool, findFreeAddresses searches from the start
// of the pool. If the pool has a free address, findFreeAddresses returns at least one. For findFreeAddresses,
// the addresses in `named` are used.
func findFreeAddresses(
	ctx context.Context,
	tx *transaction,
	subnet uuid.UUID,
	pool network.Pool,
	named []netip.Addr,
) ([]netip.Addr, error) {
	for _, from := range append(pool.RandomAddresses(1), pool.Start) {
		rows, err := tx.Query(ctx, `
			select host(free)
			from (
				select $2::text::inet as free
				union all
				select a.address + 1
				from port_address a
				where a.subnet_id = $1 and a.address >= $2::text::inet and a.address < $3::text::inet
				union all
				select n + 1 from unnest($4::inet[]) as n where n >= $2::text::inet and n < $3::text::inet) as edge
			where free <> all($4::inet[]) and not exists (select from port_address t where t.subnet_id = $1 and t.address = free)
			limit 16`, subnet, from.String(), pool.End.String(), named)
		if err != nil {
			return nil, fmt.Errorf("find free addresses: %w", err)
		}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (netip.Addr, error) {
			var text string
			if err := row.Scan(&text); err != nil {
				return netip.Addr{}, err
			}
			return netip.ParseAddr(text)
		})
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

// updateFixedIPs changes the port's addresses if the request names fixed IPs, or if the port's MAC changed
// and some of the port's addresses derive from the MAC. The port keeps each address that the request names
// again.
func updateFixedIPs(
	ctx context.Context,
	tx *transaction,
	before lockedPort,
	p *network.Port,
	c network.PortChange,
) error {
	if c.FixedIPs == nil && p.MAC == before.MAC {
		return nil
	}
	subnets, err := networkstore.NetworkSubnets(ctx, tx.Transaction, p.Network)
	if err != nil {
		return err
	}
	if c.FixedIPs != nil {
		if subnets, err = p.CandidateSubnetsForUpdate(before.Port, subnets); err != nil {
			return err
		}
	}
	merged := p.MergeFixedIPs(before.Port, subnets, c.FixedIPs)
	tx.drafts = []network.PortChange{{Network: &p.Network, FixedIPs: &merged}}
	requests, err := requestedAddresses(ctx, tx, *p, subnets, merged)
	if err != nil {
		return err
	}
	if err := c.CheckAddressCount(before.network, before.Port, requests); err != nil {
		return err
	}
	if err := releaseUnrequested(ctx, tx, before.Port, requests); err != nil {
		return err
	}
	p.Addresses = []network.Address{}
	for i, w := range requests {
		a := network.Address{Subnet: w.Subnets[0].ID, IP: w.IP}
		if slices.Contains(before.Addresses, a) {
			p.Addresses = append(p.Addresses, a)
			if _, err := tx.Exec(ctx, `
				update port_address
				set position = $4
				where subnet_id = $1 and address = $2::text::inet and port_id = $3`, a.Subnet, a.IP.String(), p.ID, i); err != nil {
				return fmt.Errorf("keep address %s: %w", a.IP, err)
			}
			continue
		}
		got, err := allocateAddresses(ctx, tx, *p, i, []network.AddressRequest{w})
		if err != nil {
			return err
		}
		p.Addresses = append(p.Addresses, got...)
	}
	return nil
}

// releaseUnrequested releases the addresses of the port that the requests do not name.
func releaseUnrequested(
	ctx context.Context,
	tx *transaction,
	p network.Port,
	requests []network.AddressRequest,
) error {
	var requested []network.Address
	for _, w := range requests {
		if w.IP.IsValid() {
			requested = append(requested, network.Address{Subnet: w.Subnets[0].ID, IP: w.IP})
		}
	}
	for _, a := range p.Addresses {
		if slices.Contains(requested, a) {
			continue
		}
		if _, err := tx.Exec(ctx, `
			delete from port_address
			where subnet_id = $1 and address = $2::text::inet and port_id = $3`, a.Subnet, a.IP.String(), p.ID); err != nil {
			return fmt.Errorf("release address %s: %w", a.IP, err)
		}
	}
	return nil
}

// AddressesTaken counts the allocated addresses of each subnet of the networks.
func (s *Store) AddressesTaken(ctx context.Context, networks []uuid.UUID) (map[uuid.UUID]int64, error) {
	rows, err := s.db.Query(ctx, `
		select s.id, count(*)
		from subnet s
		join port_address a on a.subnet_id = s.id
		where s.network_id = any($1)
		group by s.id`, networks)
	if err != nil {
		return nil, fmt.Errorf("count addresses: %w", err)
	}
	taken := map[uuid.UUID]int64{}
	var id uuid.UUID
	var count int64
	_, err = pgx.ForEachRow(rows, []any{&id, &count}, func() error {
		taken[id] = count
		return nil
	})
	return taken, err
}
