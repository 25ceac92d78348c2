package networkstore

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// ReportPorts applies reports to several ports in one transaction, with as few round trips as for one port. The result of
// ReportPorts omits ports that do not exist.
func (s *Store) ReportPorts(ctx context.Context, reports map[uuid.UUID][]network.Report) (map[uuid.UUID]network.StatusView, error) {
	if len(reports) == 0 {
		return nil, nil
	}
	var views map[uuid.UUID]network.StatusView
	err := s.inTx(ctx, func(tx *transaction) error {
		ports, err := lockExistingPorts(ctx, tx, slices.Collect(maps.Keys(reports)))
		if err != nil {
			return err
		}
		views = map[uuid.UUID]network.StatusView{}
		batch := &pgx.Batch{}
		after, entities := make([]network.Port, len(ports)), make([]string, len(ports))
		for i, h := range ports {
			p, accepted, entity := h.applyReports(reports[h.ID], "")
			queuePortUpdate(batch, h.Port, p, entity)
			view := p.StatusView()
			view.Accepted = accepted
			after[i], entities[i], views[h.ID] = p, entity, view
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("report ports: %w", err)
		}
		for i, h := range ports {
			if err := enqueueProvisioned(ctx, tx, len(h.Blocks) > 0, after[i], entities[i]); err != nil {
				return err
			}
		}
		return enqueuePortChanges(ctx, tx, ports, after, reports)
	})
	return views, err
}

// enqueuePortChanges records the effects of reports. A port whose binding changed gets a journal entry. A port whose
// client-visible fields changed, or whose agent must request the port's details again, gets an agent notification. The
// workflow of every changed port gets a nudge.
func enqueuePortChanges(ctx context.Context, tx *transaction, before []lockedPort, after []network.Port, reports map[uuid.UUID][]network.Report) error {
	var notifications []network.AgentNotification
	var nudges []contract.Nudge
	var bound []uuid.UUID
	for i, h := range before {
		if equal(h.Port, after[i]) {
			continue
		}
		nudges = append(nudges, portNudge(after[i], false))
		if !equal(clientView(h.Port), clientView(after[i])) || slices.ContainsFunc(reports[h.ID], h.NeedsDetailsAgain) {
			notifications = append(notifications, portNotification(h.Port, after[i]))
		}
		if h.VIF != after[i].VIF {
			bound = append(bound, h.ID)
		}
	}
	if err := recordReboundPorts(ctx, tx, bound...); err != nil {
		return err
	}
	if err := enqueueNotifications(ctx, tx, notifications...); err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}

// Device is an agent's name for a port. Name is the port's ID, the beginning of the ID (optionally after a prefix such as "tap"), or the
// MAC. PCISlot is the PCI address of the virtual function that an SR-IOV agent found with this MAC, or "".
type Device struct{ Name, PCISlot string }

// FindDevices maps devices to port IDs. FindDevices omits unknown and ambiguous devices. If several ports have the MAC of a device, the port
// whose binding profile names the device's PCI slot is the device's port.
func (s *Store) FindDevices(ctx context.Context, devices []Device) (map[Device]uuid.UUID, error) {
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
		select t.name, t.slot, coalesce(min(t.id::text) filter (where t.in_slot), min(t.id::text))::uuid
		from (
			select n.name, '' as slot, p.id, false as in_slot
			from unnest($1::text[], $2::uuid[], $3::uuid[]) as n (name, low, high)
			join port p on p.id between n.low and n.high
			union
			select n.name, n.slot, p.id, coalesce(p.profile ->> 'pci_slot' = n.slot, false)
			from unnest($4::text[], $5::macaddr[], $6::text[]) as n (name, mac, slot)
			join port p on p.mac = n.mac) as t
		group by t.name, t.slot
		having count(*) = 1 or count(*) filter (where t.in_slot) = 1`, prefixes, low, high, macNames, macs, slots)
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

// EnsureDHCPPort creates the port of a DHCP agent. If the network already has a DHCP port with the same device ID, EnsureDHCPPort
// updates the existing port. With `ownerOnly`, EnsureDHCPPort does not update a port on another host than that of the change, and returns
// db.ErrConflict.
func (s *Store) EnsureDHCPPort(ctx context.Context, c network.PortChange, ownerOnly bool) (network.Port, error) {
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

// DHCPHosts lists the hosts of the DHCP agents that serve a network.
func (s *Store) DHCPHosts(ctx context.Context, id uuid.UUID) ([]string, error) {
	return db.QueryAll(ctx, s.db, pgx.RowTo[string], `
		select a.host
		from dhcp_binding d
		join agent a on a.id = d.agent_id
		where d.network_id = $1
		order by a.host`, id)
}
