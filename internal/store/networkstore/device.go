package networkstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// ReportPorts is ReportPort for several ports, all or none, in as few trips to the database as for one. Ports that are not there are
// left out of the answer.
func (s *Store) ReportPorts(ctx context.Context, reports map[uuid.UUID][]network.Report) (map[uuid.UUID]network.StatusView, error) {
	if len(reports) == 0 {
		return nil, nil
	}
	var standings map[uuid.UUID]network.StatusView
	err := s.inTx(ctx, func(tx *transaction) error {
		ports, err := holdPorts(ctx, tx, slices.Collect(maps.Keys(reports)))
		if err != nil {
			return err
		}
		standings = map[uuid.UUID]network.StatusView{}
		batch := &pgx.Batch{}
		after := make([]network.Port, len(ports))
		for i, h := range ports {
			p, accepted, entity := h.hear(reports[h.ID], "")
			queuePort(batch, h.Port, p, entity)
			standing := p.StatusView()
			standing.Accepted = accepted
			after[i], standings[h.ID] = p, standing
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("report ports: %w", err)
		}
		return spread(ctx, tx, ports, after)
	})
	return standings, err
}

// spread tells everybody of what reports made of ports: the controller of those that were bound by the way, agents of what they
// can see, and each port's workflow.
func spread(ctx context.Context, tx *transaction, before []held, after []network.Port) error {
	var announcements []network.AgentNotification
	var nudges []contract.Nudge
	var bound []uuid.UUID
	for i, h := range before {
		if same(h.Port, after[i]) {
			continue
		}
		nudges = append(nudges, portNudge(after[i], false))
		if !same(visible(h.Port), visible(after[i])) {
			announcements = append(announcements, ofPort(h.Port, after[i]))
		}
		if h.VIF != after[i].VIF {
			bound = append(bound, h.ID)
		}
	}
	if err := mirrorRebound(ctx, tx, bound...); err != nil {
		return err
	}
	if err := announce(ctx, tx, announcements...); err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}

// Devices finds the ports that agents mean by these names: a port's ID, the beginning of one, maybe after a prefix such
// as "tap", or a MAC. Names of no port are left out, and so are those of several.
func (s *Store) Devices(ctx context.Context, names []string) (map[string]uuid.UUID, error) {
	found := map[string]uuid.UUID{}
	var tapped, low, high, hardware, macs []string
	for _, name := range names {
		if id, err := uuid.Parse(name); err == nil && len(name) == 36 {
			found[name] = id
		} else if mac, err := net.ParseMAC(name); err == nil && len(mac) == 6 {
			hardware, macs = append(hardware, name), append(macs, mac.String())
		} else if from, to, ok := beginning(name); ok {
			tapped, low, high = append(tapped, name), append(low, from.String()), append(high, to.String())
		}
	}
	if len(tapped)+len(hardware) == 0 {
		return found, nil
	}
	rows, err := s.db.Query(ctx, `
		select t.name, min(t.id::text)::uuid
		from (
			select n.name, p.id
			from unnest($1::text[], $2::uuid[], $3::uuid[]) as n (name, low, high)
			join port p on p.id between n.low and n.high
			union
			select n.name, p.id
			from unnest($4::text[], $5::macaddr[]) as n (name, mac)
			join port p on p.mac = n.mac) as t (name, id)
		group by t.name
		having count(*) = 1`, tapped, low, high, hardware, macs)
	if err != nil {
		return nil, fmt.Errorf("find devices: %w", err)
	}
	var name string
	var id uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&name, &id}, func() error {
		found[name] = id
		return nil
	})
	return found, err
}

// devicePrefixes are what stands before the beginning of a port's ID in the name of a device.
var devicePrefixes = []string{"tap", "qvo", "qr-", "qg-", "sg-", "fg-", "ha-"}

// leastBeginning is how much of an ID names a port: what fits into the name of an interface.
const leastBeginning = 8

// beginning is the range of the IDs that a device's name may stand for.
func beginning(name string) (low, high uuid.UUID, ok bool) {
	for _, p := range devicePrefixes {
		if rest, cut := strings.CutPrefix(name, p); cut {
			name = rest
			break
		}
	}
	digits := strings.ReplaceAll(name, "-", "")
	if len(digits) < leastBeginning || len(digits) > 32 {
		return low, high, false
	}
	fill := func(with string) (id uuid.UUID, err error) {
		_, err = hex.Decode(id[:], []byte(digits+strings.Repeat(with, 32-len(digits))))
		return id, err
	}
	low, err := fill("0")
	if err != nil {
		return low, high, false
	}
	high, _ = fill("f")
	return low, high, true
}

// EnsureDHCPPort makes the port of a DHCP agent, unless the agent, which the change names as the device, has one on the
// network already: that one is changed to what is asked for.
func (s *Store) EnsureDHCPPort(ctx context.Context, c network.PortChange) (network.Port, error) {
	var made network.Port
	err := s.inTx(ctx, func(tx *transaction) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dhcp port ' || $1 || $2, 0))`, c.Network.String(), *c.DeviceID); err != nil {
			return fmt.Errorf("create DHCP port: %w", err)
		}
		var id uuid.UUID
		err := tx.QueryRow(ctx, `
			select id
			from port
			where network_id = $1 and device_id = $2 and device_owner = $3
			order by id
			limit 1`, *c.Network, *c.DeviceID, network.DeviceOwnerDHCP).Scan(&id)
		if db.NoRows(err) {
			made, err = createPort(ctx, tx, c)
			return err
		}
		if err != nil {
			return fmt.Errorf("create DHCP port: %w", err)
		}
		c.Network, c.Project = nil, nil
		made, err = updatePort(ctx, tx, id, c, nil)
		return err
	})
	return made, err
}

// DHCPHosts lists the hosts of the DHCP agents that serve a network.
func (s *Store) DHCPHosts(ctx context.Context, id uuid.UUID) ([]string, error) {
	rows, err := s.db.Query(ctx, `
		select a.host
		from dhcp_binding d
		join agent a on a.id = d.agent_id
		where d.network_id = $1
		order by a.host`, id)
	if err != nil {
		return nil, fmt.Errorf("list DHCP agents: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
