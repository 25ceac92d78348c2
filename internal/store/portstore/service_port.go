package portstore

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

// No client requests service ports and SLAAC addresses. Therefore they do not prevent the deletion of a
// network or subnet, but are deleted with it. When a SLAAC subnet is created, the existing ports of the
// network, except router interfaces, get addresses in the new subnet.

// deleteServicePorts deletes the service ports of a locked network (DHCP and router ports that Neutron may
// delete). deleteServicePorts returns an error if the network has ports that are not service ports.
func deleteServicePorts(ctx context.Context, tx *transaction, n uuid.UUID) error {
	ports, used, err := removablePorts(ctx, tx, `
		select id, device_owner = any($2)
		from port
		where network_id = $1
		order by id`, n, network.AutoDeletedPortOwners())
	if err != nil {
		return err
	}
	if used {
		return network.Faultf(network.NetworkInUse,
			"Unable to complete operation on network %s. There are one or more ports still in use on the network.",
			n)
	}
	for _, id := range ports {
		p, err := lockPort(ctx, tx, id)
		if err == nil {
			err = deletePort(ctx, tx, p)
		}
		if err != nil && !errors.Is(err, db.ErrNotFound) { // a concurrent request may have deleted the port
			return err
		}
	}
	return nil
}

// releaseSubnetAddresses releases the addresses of a locked subnet that belong to service ports, and SLAAC
// addresses. releaseSubnetAddresses returns an error if the subnet has any other address: one that is not a
// SLAAC address, or one of a router port or another `network:` port that is not a service port.
func releaseSubnetAddresses(ctx context.Context, tx *transaction, s network.Subnet) error {
	ports, used, err := removablePorts(ctx, tx, `
		select distinct p.id, p.device_owner = any($2) or $3 and p.device_owner not like 'network:%'
		from port_address a
		join port p on p.id = a.port_id
		where a.subnet_id = $1
		order by p.id`, s.ID, network.AutoDeletedPortOwners(), s.IsAutoAddress())
	if err != nil {
		return err
	}
	if used {
		return network.Faultf(network.SubnetInUse,
			"Unable to complete operation on subnet %s: One or more ports have an IP allocation from this subnet.",
			s.ID)
	}
	for _, id := range ports {
		// a concurrent request may have deleted the port
		if err := releaseAddresses(ctx, tx, id, s.ID); err != nil && !errors.Is(err, db.ErrNotFound) {
			return err
		}
	}
	return nil
}

// removablePorts returns the IDs of the ports that the query returns. The result `used` is true if the query
// marks at least one port as not removable.
func removablePorts(
	ctx context.Context,
	tx *transaction,
	sql string,
	args ...any,
) (ports []uuid.UUID, used bool, err error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, false, fmt.Errorf("find ports: %w", err)
	}
	var id uuid.UUID
	var removable bool
	_, err = pgx.ForEachRow(rows, []any{&id, &removable}, func() error {
		ports, used = append(ports, id), used || !removable
		return nil
	})
	return ports, used, err
}

// releaseAddresses releases a port's addresses in the subnet.
func releaseAddresses(ctx context.Context, tx *transaction, port, subnet uuid.UUID) error {
	h, err := lockPort(ctx, tx, port)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from port_address where port_id = $1 and subnet_id = $2`, port, subnet); err != nil {
		return fmt.Errorf("release addresses: %w", err)
	}
	remaining := slices.DeleteFunc(slices.Clone(h.Addresses),
		func(a network.Address) bool { return a.Subnet == subnet })
	return setAddresses(ctx, tx, h, remaining)
}

// setAddresses sets the address list of a locked port. setAddresses does not allocate the addresses of the
// list, because the caller has allocated them. setAddresses adds no provisioning blocks to the port.
func setAddresses(ctx context.Context, tx *transaction, h lockedPort, addresses []network.Address) error {
	p := h.Port
	p.Addresses = addresses
	dependencies, err := readDependencies(ctx, tx, p)
	if err != nil {
		return err
	}
	p = p.UpdateBlocks(dependencies, network.BlockTrigger{}, h.now).UpdateStatus(h.now)
	_, err = writePort(ctx, tx, h.Port, p, network.PortCause{Request: true})
	return err
}

// assignSLAAC gives each port of a locked network, except router interfaces, a SLAAC address in a new subnet.
func assignSLAAC(ctx context.Context, tx *transaction, s network.Subnet) error {
	ports, err := db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID], `
		select id
		from port
		where network_id = $1 and device_owner <> all($2)
		order by id`, s.Network, network.RouterInterfaceOwners())
	if err != nil {
		return fmt.Errorf("find ports: %w", err)
	}
	for _, id := range ports {
		h, err := lockPort(ctx, tx, id)
		if errors.Is(err, db.ErrNotFound) { // a concurrent request may have deleted the port
			continue
		}
		if err != nil {
			return err
		}
		got, err := allocateAddresses(ctx, tx, h.Port, len(h.Addresses),
			[]network.AddressRequest{{IP: network.EUI64(s.CIDR, h.MAC), Subnets: []network.Subnet{s}}})
		if err != nil {
			return err
		}
		if err := setAddresses(ctx, tx, h, append(slices.Clone(h.Addresses), got...)); err != nil {
			return err
		}
	}
	return nil
}
