package networkstore

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
)

// wishes are what a port asks for in the subnets of its network, or the fault of that.
func wishes(ctx context.Context, tx *transaction, p network.Port, subnets []network.Subnet, fixed []network.FixedIP) ([]network.AddressRequest, error) {
	wants, err := p.AddressRequests(subnets, fixed)
	for _, f := range fixed {
		if err != nil && f.Subnet != uuid.Nil {
			if _, missing := subnetByID(ctx, tx, f.Subnet); missing != nil {
				return nil, missing
			}
		}
	}
	return wants, err
}

// allocate gives a port the addresses that it wants, from that position of its list on.
func allocate(ctx context.Context, tx *transaction, p network.Port, position int, wants []network.AddressRequest) ([]network.Address, error) {
	var got []network.Address
	for i, w := range wants {
		var a network.Address
		var err error
		if w.IP.IsValid() {
			a, err = claimThis(ctx, tx, p.ID, position+i, w)
		} else {
			a, err = claimAny(ctx, tx, p, position+i, w.Subnets)
		}
		if err != nil {
			return nil, err
		}
		got = append(got, a)
	}
	return got, nil
}

func claimThis(ctx context.Context, tx *transaction, port uuid.UUID, position int, w network.AddressRequest) (network.Address, error) {
	a := network.Address{Subnet: w.Subnets[0].ID, IP: w.IP}
	won, err := claim(ctx, tx, port, position, a)
	if err == nil && !won {
		err = network.Faultf(network.AddressInUse, "IP address %s already allocated in subnet %s", a.IP, a.Subnet)
	}
	return a, err
}

// claimAny takes a free address of the first subnet that has one.
func claimAny(ctx context.Context, tx *transaction, p network.Port, position int, subnets []network.Subnet) (network.Address, error) {
	for _, s := range subnets {
		for _, pool := range s.Pools {
			a, ok, err := claimIn(ctx, tx, p.ID, position, s.ID, pool)
			if err != nil || ok {
				return a, err
			}
		}
	}
	if len(subnets) == 1 {
		return network.Address{}, network.Faultf(network.IPAddressGenerationFailure, "No more IP addresses available on network %s, subnet %s.", p.Network, subnets[0].ID)
	}
	return network.Address{}, network.Faultf(network.IPAddressGenerationFailure, "No more IP addresses available on network %s.", p.Network)
}

// lucky is how many addresses of a pool are tried by chance before the free ones are looked for.
const lucky = 6

// claimIn takes a free address of the pool, or finds that there is none. What another transaction is about to take is
// waited for only when nothing else is left: of two that wait for each other's, one would have to start anew.
func claimIn(ctx context.Context, tx *transaction, port uuid.UUID, position int, subnet uuid.UUID, pool network.Pool) (network.Address, bool, error) {
	a, won, err := claimOneOf(ctx, tx, port, position, subnet, pool.RandomAddresses(lucky))
	for err == nil && !won {
		var free []netip.Addr
		if free, err = gaps(ctx, tx, subnet, pool); err != nil || len(free) == 0 {
			break
		}
		rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
		if a, won, err = claimOneOf(ctx, tx, port, position, subnet, free); err == nil && !won {
			a.IP = free[0]
			won, err = claim(ctx, tx, port, position, a)
		}
	}
	return a, won, err
}

// claimOneOf takes the first of these addresses that is free and that no other transaction is after, without waiting
// for any. Who is after an address holds its lock, of which a subnet has no more than 1,024 however many are taken at
// once; so some addresses are passed over in vain.
func claimOneOf(ctx context.Context, tx *transaction, port uuid.UUID, position int, subnet uuid.UUID, free []netip.Addr) (network.Address, bool, error) {
	texts := make([]string, len(free))
	for i, ip := range free {
		texts[i] = ip.String()
	}
	a := network.Address{Subnet: subnet}
	var got string
	err := tx.QueryRow(ctx, `
		insert into port_address (subnet_id, address, port_id, position)
		select $1, free.address, $3, $4
		from unnest($2::text[]::inet[]) as free (address)
		where case
			when exists (select from port_address t where t.subnet_id = $1 and t.address = free.address) then false
			else pg_try_advisory_xact_lock(hashtext('address ' || $1::text), hashtext(host(free.address)) & 1023)
		end
		limit 1
		on conflict (subnet_id, address) do nothing
		returning host(address)`, subnet, texts, port, position).Scan(&got)
	if db.NoRows(err) {
		return a, false, nil
	}
	if err == nil {
		a.IP, err = netip.ParseAddr(got)
	}
	if err != nil {
		return a, false, fmt.Errorf("allocate an address: %w", err)
	}
	return a, true, nil
}

// claim takes the address for the port unless another port has it.
func claim(ctx context.Context, tx *transaction, port uuid.UUID, position int, a network.Address) (won bool, err error) {
	tag, err := tx.Exec(ctx, `
		insert into port_address (subnet_id, address, port_id, position)
		values ($1, $2::text::inet, $3, $4)
		on conflict (subnet_id, address) do nothing`, a.Subnet, a.IP.String(), port, position)
	if err != nil {
		return false, fmt.Errorf("allocate %s: %w", a.IP, err)
	}
	return tag.RowsAffected() == 1, nil
}

// gaps are free addresses of the pool: those that follow a taken one, from a place by chance on, else from its first on.
// If any address of the pool is free, one is found.
func gaps(ctx context.Context, tx *transaction, subnet uuid.UUID, pool network.Pool) ([]netip.Addr, error) {
	for _, from := range append(pool.RandomAddresses(1), pool.Start) {
		rows, err := tx.Query(ctx, `
			select host(free)
			from (
				select $2::text::inet as free
				union all
				select a.address + 1
				from port_address a
				where a.subnet_id = $1 and a.address >= $2::text::inet and a.address < $3::text::inet) as edge
			where not exists (select from port_address t where t.subnet_id = $1 and t.address = free)
			limit 16`, subnet, from.String(), pool.End.String())
		if err != nil {
			return nil, fmt.Errorf("look for free addresses: %w", err)
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

// readdress gives the port other addresses if a request asks for them, or for another MAC that some follow. What
// it has and still wants, it keeps.
func readdress(ctx context.Context, tx *transaction, before network.Port, p *network.Port, fixed *[]network.FixedIP) error {
	if fixed == nil && p.MAC == before.MAC {
		return nil
	}
	subnets, err := subnetsOf(ctx, tx, p.Network)
	if err != nil {
		return err
	}
	wants, err := wishes(ctx, tx, *p, subnets, keep(subnets, before, *p, fixed))
	if err != nil {
		return err
	}
	var next []network.Address
	for _, w := range wants {
		if w.IP.IsValid() {
			next = append(next, network.Address{Subnet: w.Subnets[0].ID, IP: w.IP})
		}
	}
	gone := slices.DeleteFunc(slices.Clone(before.Addresses), func(a network.Address) bool { return slices.Contains(next, a) })
	for _, a := range gone {
		if _, err := tx.Exec(ctx, `
			delete from port_address
			where subnet_id = $1 and address = $2::text::inet and port_id = $3`, a.Subnet, a.IP.String(), p.ID); err != nil {
			return fmt.Errorf("release %s: %w", a.IP, err)
		}
	}
	p.Addresses = []network.Address{}
	for i, w := range wants {
		a := network.Address{Subnet: w.Subnets[0].ID, IP: w.IP}
		if slices.Contains(before.Addresses, a) {
			p.Addresses = append(p.Addresses, a)
			if _, err := tx.Exec(ctx, `
				update port_address
				set position = $4
				where subnet_id = $1 and address = $2::text::inet and port_id = $3`, a.Subnet, a.IP.String(), p.ID, i); err != nil {
				return fmt.Errorf("keep %s: %w", a.IP, err)
			}
			continue
		}
		got, err := allocate(ctx, tx, *p, i, []network.AddressRequest{w})
		if err != nil {
			return err
		}
		p.Addresses = append(p.Addresses, got...)
	}
	return nil
}

// keep is what the request asks for, with the port's own address wherever it asks for any address of a subnet;
// without a request, the addresses that do not follow from the MAC.
func keep(subnets []network.Subnet, before, p network.Port, fixed *[]network.FixedIP) []network.FixedIP {
	automatic := func(id uuid.UUID) bool {
		return slices.ContainsFunc(subnets, func(s network.Subnet) bool { return s.ID == id && p.HasAutoAddressIn(s) })
	}
	var asked []network.FixedIP
	if fixed == nil {
		for _, a := range before.Addresses {
			if !automatic(a.Subnet) {
				asked = append(asked, network.FixedIP(a))
			}
		}
		return asked
	}
	asked = slices.Clone(*fixed)
	taken := map[netip.Addr]bool{}
	for i, f := range asked {
		taken[f.IP] = true
		at := slices.IndexFunc(before.Addresses, func(a network.Address) bool { return a.IP == f.IP && automatic(a.Subnet) })
		if at >= 0 { // it follows from the MAC, which may become another
			asked[i] = network.FixedIP{Subnet: before.Addresses[at].Subnet}
		}
	}
	for i, f := range asked {
		if f.IP.IsValid() || automatic(f.Subnet) {
			continue
		}
		at := slices.IndexFunc(before.Addresses, func(a network.Address) bool { return a.Subnet == f.Subnet && !taken[a.IP] })
		if at >= 0 {
			asked[i].IP = before.Addresses[at].IP
			taken[asked[i].IP] = true
		}
	}
	return asked
}

// AddressesTaken counts the addresses that ports have in each subnet of these networks.
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
