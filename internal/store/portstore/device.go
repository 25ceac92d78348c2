package portstore

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// ReportPorts applies reports to several ports in one transaction, with as few round trips as for one port.
// The result of ReportPorts omits ports that do not exist. If the sender of the reports may act for one host
// only, the result also omits the ports that this host's agents cannot change; ReportPorts does not lock
// them.
func (s *Store) ReportPorts(
	ctx context.Context,
	reports map[uuid.UUID][]network.Report,
) (map[uuid.UUID]network.StatusView, error) {
	if len(reports) == 0 {
		return nil, nil
	}
	ids, err := s.withoutForeign(ctx, reports)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	var views map[uuid.UUID]network.StatusView
	err = s.inTx(ctx, func(tx *transaction) error {
		ports, err := lockExistingPorts(ctx, tx, ids)
		if err != nil {
			return err
		}
		views = map[uuid.UUID]network.StatusView{}
		writes := make([]*portWrite, len(ports))
		for i, h := range ports {
			after, accepted, entity := h.applyReports(reports[h.ID])
			view := after.StatusView()
			view.Accepted = accepted
			views[h.ID] = view
			writes[i] = tx.config.portWrite(h.Port, after, network.PortCause{Entity: entity,
				DetailsAgain: slices.ContainsFunc(reports[h.ID], h.NeedsDetailsAgain)})
		}
		_, err = writePorts(ctx, tx, writes)
		return err
	})
	return views, err
}

// Device is an agent's name for a port. Name is the port's ID, the beginning of the ID (optionally after a
// prefix such as "tap"), or the MAC. PCISlot is the PCI address of the virtual function that an SR-IOV agent
// found with this MAC, or "".
type Device struct{ Name, PCISlot string }

// FindDevices maps the devices of a host to port IDs. FindDevices omits unknown and ambiguous devices. Ports
// of different networks can have the same MAC, which the project of a network chooses. If several ports have
// the MAC of a device, the port whose binding profile names the device's PCI slot is the device's port,
// otherwise the only one with a binding to the host. The host may be empty.
func (s *Store) FindDevices(
	ctx context.Context,
	host string,
	devices []Device,
) (map[Device]uuid.UUID, error) {
	found := map[Device]uuid.UUID{}
	var prefixes, low, high, macNames, macs, slots []string
	for _, d := range devices {
		if id, err := uuid.Parse(d.Name); err == nil && len(d.Name) == 36 {
			found[d] = id
		} else if mac, err := net.ParseMAC(d.Name); err == nil && len(mac) == 6 {
			macNames, macs, slots = append(macNames, d.Name), append(macs, mac.String()), append(slots, d.PCISlot)
		} else if from, to, ok := network.PortIDRange(d.Name); ok {
			prefixes, low, high = append(prefixes, d.Name), append(low, from.String()), append(high, to.String())
		}
	}
	if len(prefixes)+len(macNames) == 0 {
		return found, nil
	}
	rows, err := s.db.Query(ctx, `
		select t.name, t.slot, case
			when count(*) filter (where t.in_slot) = 1 then min(t.id::text) filter (where t.in_slot)
			when count(*) filter (where t.on_host) = 1 then min(t.id::text) filter (where t.on_host)
			else min(t.id::text) end::uuid
		from (
			select n.name, '' as slot, p.id, false as in_slot, false as on_host
			from unnest($1::text[], $2::uuid[], $3::uuid[]) as n (name, low, high)
			join port p on p.id between n.low and n.high
			union
			select n.name, n.slot, p.id, coalesce(p.profile ->> 'pci_slot' = n.slot, false),
				p.host <> '' and p.host = $7 or exists (select from port_binding b where b.port_id = p.id and b.host = $7)
			from unnest($4::text[], $5::macaddr[], $6::text[]) as n (name, mac, slot)
			join port p on p.mac = n.mac) as t
		group by t.name, t.slot
		having 1 in (count(*), count(*) filter (where t.in_slot), count(*) filter (where t.on_host))`,
		prefixes, low, high, macNames, macs, slots, host)
	if err != nil {
		return nil, fmt.Errorf("find devices: %w", err)
	}
	var d Device
	var id uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&d.Name, &d.PCISlot, &id}, func() error {
		found[d] = id
		return nil
	})
	return found, err
}

// maxDHCPPorts is the maximum number of DHCP ports of one host on one network. A DHCP agent of Neutron needs
// one for each segment.
const maxDHCPPorts = 16

// EnsureDHCPPort creates the port of a DHCP agent, in the project of the network. If the network already has
// a DHCP port with the same device ID, EnsureDHCPPort updates the existing port. With `ownerOnly`,
// EnsureDHCPPort returns db.ErrConflict instead of updating a port on another host than that of the change,
// or creating more than maxDHCPPorts ports of the host on the network. The port counts as used by the
// project, but the quota of the project does not refuse it: a DHCP agent that cannot create the port of one
// network synchronizes all its networks again and again.
func (s *Store) EnsureDHCPPort(
	ctx context.Context,
	c network.PortChange,
	ownerOnly bool,
) (network.Port, error) {
	var created network.Port
	err := s.inTx(ctx, func(tx *transaction) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dhcp port ' || $1 || $2, 0))`, c.Network.String(), *c.DeviceID); err != nil {
			return fmt.Errorf("create DHCP port: %w", err)
		}
		var id uuid.UUID
		var host string
		err := tx.QueryRow(ctx, `
			select id, host
			from port
			where network_id = $1 and device_id = $2 and device_owner = $3
			order by id
			limit 1`, *c.Network, *c.DeviceID, network.DeviceOwnerDHCP).Scan(&id, &host)
		if db.NoRows(err) {
			if c.Project, err = prepareDHCPPort(ctx, tx, *c.Network, *c.Host, ownerOnly); err != nil {
				return err
			}
			tx.beyondQuota = true
			created, err = createPort(ctx, tx, c)
			return err
		}
		if err != nil {
			return fmt.Errorf("create DHCP port: %w", err)
		}
		if ownerOnly && host != "" && host != *c.Host {
			return fmt.Errorf("%w: the DHCP port %s belongs to the host %s", db.ErrConflict, id, host)
		}
		c.Network, c.Project = nil, nil
		created, err = updatePort(ctx, tx, id, c, nil)
		return err
	})
	return created, err
}

// prepareDHCPPort returns the project of a new DHCP port: that of its network, whatever the agent names,
// because the port uses the quota of the project. With `limited`, prepareDHCPPort returns db.ErrConflict if
// the host has maxDHCPPorts DHCP ports on the network.
func prepareDHCPPort(
	ctx context.Context,
	tx *transaction,
	on uuid.UUID,
	host string,
	limited bool,
) (project *string, err error) {
	if limited {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dhcp ports of ' || $1 || ' ' || $2, 0))`, on.String(), host); err != nil {
			return nil, fmt.Errorf("create DHCP port: %w", err)
		}
	}
	var ports int
	err = tx.QueryRow(ctx, `
		select n.project, (select count(*) from port p where p.network_id = n.id and p.host = $2 and p.device_owner = $3)
		from network n
		where n.id = $1`, on, host, network.DeviceOwnerDHCP).Scan(&project, &ports)
	switch {
	case db.NoRows(err):
		return nil, networkstore.NetworkNotFound(on)
	case err != nil:
		return nil, fmt.Errorf("create DHCP port: %w", err)
	case limited && ports >= maxDHCPPorts:
		return nil, fmt.Errorf("%w: the host %s has %d DHCP ports on the network %s",
			db.ErrConflict, host, ports, on)
	}
	return project, nil
}
