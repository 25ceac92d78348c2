package networkstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// What nobody has asked for keeps nobody from deleting a network or a subnet: the ports that serve the network go with it, and so do the
// addresses that such ports have in a subnet, and those that hosts have made for themselves there. With a new subnet these come.

// evict deletes the ports that serve a locked network, or finds that it has others.
func evict(ctx context.Context, tx *transaction, n uuid.UUID) error {
	ports, used, err := occupants(ctx, tx, `
		select id, device_owner = any($2)
		from port
		where network_id = $1
		order by id`, n, network.AutoDeletedPortOwners())
	if err != nil {
		return err
	}
	if used {
		return network.Faultf(network.NetworkInUse, "Unable to complete operation on network %s. There are one or more ports still in use on the network.", n)
	}
	for _, id := range ports {
		p, err := lockPort(ctx, tx, id)
		if err == nil {
			err = deletePort(ctx, tx, p)
		}
		if err != nil && !errors.Is(err, db.ErrNotFound) { // somebody else may have deleted it
			return err
		}
	}
	return nil
}

// vacate takes the addresses of a locked subnet from the ports that have not asked for them, or finds that others have some.
func vacate(ctx context.Context, tx *transaction, s network.Subnet) error {
	ports, used, err := occupants(ctx, tx, `
		select distinct p.id, p.device_owner = any($2) or $3 and p.device_owner not like 'network:%'
		from port_address a
		join port p on p.id = a.port_id
		where a.subnet_id = $1
		order by p.id`, s.ID, network.AutoDeletedPortOwners(), s.IsAutoAddress())
	if err != nil {
		return err
	}
	if used {
		return network.Faultf(network.SubnetInUse, "Unable to complete operation on subnet %s: One or more ports have an IP allocation from this subnet.", s.ID)
	}
	for _, id := range ports {
		if err := withdraw(ctx, tx, id, s.ID); err != nil && !errors.Is(err, db.ErrNotFound) { // somebody else may have deleted it
			return err
		}
	}
	return nil
}

// occupants are the ports that the query finds; used tells that one of them may not be touched.
func occupants(ctx context.Context, tx *transaction, sql string, args ...any) (ports []uuid.UUID, used bool, err error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, false, fmt.Errorf("look for ports: %w", err)
	}
	var id uuid.UUID
	var goes bool
	_, err = pgx.ForEachRow(rows, []any{&id, &goes}, func() error {
		ports, used = append(ports, id), used || !goes
		return nil
	})
	return ports, used, err
}

// withdraw takes a port's addresses in the subnet.
func withdraw(ctx context.Context, tx *transaction, port, subnet uuid.UUID) error {
	h, err := lockPort(ctx, tx, port)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from port_address where port_id = $1 and subnet_id = $2`, port, subnet); err != nil {
		return fmt.Errorf("release addresses: %w", err)
	}
	left := slices.DeleteFunc(slices.Clone(h.Addresses), func(a network.Address) bool { return a.Subnet == subnet })
	return resettle(ctx, tx, h, left)
}

// resettle has a locked port have these addresses, which are allocated already. Nobody has to work for what it has lost or its host makes.
func resettle(ctx context.Context, tx *transaction, h held, addresses []network.Address) error {
	p := h.Port
	p.Addresses = addresses
	around, err := surroundings(ctx, tx, p)
	if err != nil {
		return err
	}
	if err := writePort(ctx, tx, h.Port, p.UpdateBlocks(around, network.BlockTrigger{}, h.now).UpdateStatus(h.now), ""); err != nil {
		return err
	}
	_, err = changed(ctx, tx, h.Port)
	return err
}

// populate gives the ports of a locked network the addresses that their hosts make in a new subnet.
func populate(ctx context.Context, tx *transaction, s network.Subnet) error {
	rows, err := tx.Query(ctx, `
		select id
		from port
		where network_id = $1 and device_owner <> all($2)
		order by id`, s.Network, network.RouterInterfaceOwners())
	if err != nil {
		return fmt.Errorf("look for ports: %w", err)
	}
	ports, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("look for ports: %w", err)
	}
	for _, id := range ports {
		h, err := lockPort(ctx, tx, id)
		if errors.Is(err, db.ErrNotFound) { // somebody else may have deleted it
			continue
		}
		if err != nil {
			return err
		}
		got, err := allocate(ctx, tx, h.Port, len(h.Addresses), []network.AddressRequest{{IP: network.EUI64(s.CIDR, h.MAC), Subnets: []network.Subnet{s}}})
		if err != nil {
			return err
		}
		if err := resettle(ctx, tx, h, append(slices.Clone(h.Addresses), got...)); err != nil {
			return err
		}
	}
	return nil
}
