package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/network"
)

// UpdatePort changes a port, binds it anew if the change concerns its binding, and decides what blocks it. If
// expect is not nil, it is the only revision that is changed.
func (s *Store) UpdatePort(ctx context.Context, id uuid.UUID, c network.PortChange, expect *int64) (network.Port, error) {
	var after network.Port
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		first, err := portByID(ctx, tx, id)
		if err != nil {
			return err
		}
		if _, err := lockNetwork(ctx, tx, first.Network, sharing); err != nil {
			return err
		}
		before, err := lockPort(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := revisionIs(before.Revision, expect); err != nil {
			return err
		}
		after, err = changePort(ctx, tx, before, c)
		return err
	})
	return after, err
}

func changePort(ctx context.Context, tx pgx.Tx, before held, c network.PortChange) (network.Port, error) {
	if equalJSON(c.Profile, before.Profile) {
		c.Profile = nil
	}
	p := before.Port.With(c)
	if err := changeable(before.Port, p); err != nil {
		return p, err
	}
	if err := readdress(ctx, tx, before.Port, &p, c.Fixed); err != nil {
		return p, err
	}
	around, err := surroundings(ctx, tx, p)
	if err != nil {
		return p, err
	}
	cause := network.Cause{
		Bound:     p.Host != before.Host || p.VNIC != before.VNIC || !equalJSON(p.Profile, before.Profile),
		Addressed: p.MAC != before.MAC || !slices.Equal(p.Addresses, before.Addresses),
	}
	if cause.Bound {
		p.VIF = p.Bind(around.Agent)
	}
	p = p.Rebind(around, before.now).Arm(around, cause, before.now).Judge()
	if same(before.Port, p) {
		return p, nil
	}
	if err := writePort(ctx, tx, before.Port, p); err != nil {
		return p, err
	}
	if p, err = portByID(ctx, tx, p.ID); err != nil {
		return p, err
	}
	if err := record(ctx, tx, mirrorPortUpdate(before.Port, p)); err != nil {
		return p, err
	}
	return p, nudge(ctx, tx, portNudge(p, false))
}

// changeable refuses what cannot change under a bound port.
func changeable(before, after network.Port) error {
	if !before.Bound() || after.Host == "" {
		return nil
	}
	if before.MAC != after.MAC {
		return network.Faultf(network.PortBound, "Unable to complete operation on port %s, port is already bound, port type: %s, old_mac %s, new_mac %s.",
			before.ID, before.VIF, before.MAC, after.MAC)
	}
	if before.VNIC != after.VNIC {
		return network.Faultf(network.PortBound, "Unable to complete operation on port %s, port is already bound, its vnic_type %s cannot become %s.",
			before.ID, before.VNIC, after.VNIC)
	}
	return nil
}

// surroundings reads what a changed port depends on; its row still says what it was.
func surroundings(ctx context.Context, tx pgx.Tx, p network.Port) (network.Surroundings, error) {
	var around network.Surroundings
	subnets := make([]uuid.UUID, len(p.Addresses))
	for i, a := range p.Addresses {
		subnets[i] = a.Subnet
	}
	err := tx.QueryRow(ctx, `
		select array(select a.host
				from dhcp_binding d
				join agent a on a.id = d.agent_id
				where d.network_id = $1 and exists (select from subnet s where s.id = any($2) and s.dhcp)
				order by a.host),
			exists (select from agent a where a.agent_type = $3 and a.host = $4)`,
		p.Network, subnets, network.OVSAgent, p.Host).Scan(&around.DHCPHosts, &around.Agent)
	return around, err
}

// writePort writes what became true of a locked port: its row, its blocks and what Nova has to be told. What a
// client can see of it gets a new revision; blocks and counted reports do not.
func writePort(ctx context.Context, tx pgx.Tx, before, after network.Port) error {
	batch := &pgx.Batch{}
	if before.Ignored != after.Ignored {
		batch.Queue(`update port set ignored_reports = $2 where id = $1`, after.ID, after.Ignored)
	}
	if !same(visible(before), visible(after)) {
		batch.Queue(`
			update port
			set name = $2, description = $3, admin_up = $4, mac = $5, device_id = $6, device_owner = $7, status = $8, host = $9, vnic = $10,
				profile = $11, vif = $12, port_security = $13, revision = revision + 1, updated_at = now()
			where id = $1 and revision = $14 and status = $15`,
			after.ID, after.Name, after.Description, after.AdminUp, after.MAC, after.DeviceID, after.DeviceOwner, after.Status, after.Host,
			after.VNIC, after.Profile, after.VIF, after.PortSecurity, before.Revision, before.Status).
			Exec(func(tag pgconn.CommandTag) error { return fenced(tag, nil, "update port", after.ID) })
	}
	queueBlocks(batch, before, after)
	queueTransition(batch, before, after)
	if batch.Len() == 0 {
		return nil
	}
	err := tx.SendBatch(ctx, batch).Close()
	if violates(err, "port_mac") {
		return macInUse(after)
	}
	if err != nil {
		return fmt.Errorf("update port: %w", err)
	}
	return nil
}

// visible is the port without what does not count as a change of it.
func visible(p network.Port) network.Port {
	p.Blocks, p.Ignored = nil, 0
	return p
}

// queueBlocks writes the difference between the blocks of before and after.
func queueBlocks(batch *pgx.Batch, before, after network.Port) {
	for _, b := range before.Blocks {
		if !slices.ContainsFunc(after.Blocks, func(o network.Block) bool { return o.Entity == b.Entity }) {
			batch.Queue(`delete from provisioning_block where port_id = $1 and entity = $2`, after.ID, b.Entity)
		}
	}
	for _, b := range after.Blocks {
		if slices.ContainsFunc(before.Blocks, func(o network.Block) bool { return same(o, b) }) {
			continue
		}
		batch.Queue(`
			insert into provisioning_block (port_id, entity, host, since, deadline)
			values ($1, $2, $3, $4, $5)
			on conflict (port_id, entity) do update
			set host = excluded.host, since = excluded.since, deadline = excluded.deadline`,
			after.ID, b.Entity, b.Host, b.Since, b.Deadline)
	}
}

// queueTransition records what a change of the port's status means to Nova.
func queueTransition(batch *pgx.Batch, before, after network.Port) {
	if e, ok := after.NovaEventFor(before.Status, after.Status); ok {
		queueEvent(batch, after.ID, e)
	}
}

func queueEvent(batch *pgx.Batch, port uuid.UUID, e network.NovaEvent) {
	batch.Queue(`
		insert into nova_event (port_id, server, name, status, tag)
		values ($1, $2, $3, $4, $5)`, port, e.Server, e.Name, e.Status, e.Tag)
}

// equalJSON tells whether two texts are the same JSON value.
func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && same(x, y)
}
