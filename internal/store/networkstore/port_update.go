package networkstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

// UpdatePort changes a port, binds it anew if the change concerns its binding, and decides what blocks it. If
// expect is not nil, it is the only revision that is changed.
func (s *Store) UpdatePort(ctx context.Context, id uuid.UUID, c network.PortChange, expect *int64) (network.Port, error) {
	var after network.Port
	err := s.inTx(ctx, func(tx *transaction) (err error) {
		after, err = updatePort(ctx, tx, id, c, expect)
		return err
	})
	return after, err
}

func updatePort(ctx context.Context, tx *transaction, id uuid.UUID, c network.PortChange, expect *int64) (network.Port, error) {
	before, err := lockPlaced(ctx, tx, id)
	if err != nil {
		return before.Port, err
	}
	if err := revisionIs(before.Revision, expect); err != nil {
		return before.Port, err
	}
	return changePort(ctx, tx, before, c)
}

// lockPlaced is lockPort with a share in the lock of its network, which comes first.
func lockPlaced(ctx context.Context, tx *transaction, id uuid.UUID) (held, error) {
	p, err := portByID(ctx, tx, id)
	if err != nil {
		return held{}, err
	}
	if _, err := lockNetwork(ctx, tx, p.Network, sharing); err != nil {
		return held{}, err
	}
	return lockPort(ctx, tx, id)
}

func changePort(ctx context.Context, tx *transaction, before held, c network.PortChange) (network.Port, error) {
	if db.EqualJSON(c.Profile, before.Profile) {
		c.Profile = nil
	}
	p, err := before.Port.With(c).WithExtensions(c)
	if err != nil {
		return p, err
	}
	if err := changeable(before.Port, p); err != nil {
		return p, err
	}
	if p, err = secure(ctx, tx, p, c); err != nil {
		return p, err
	}
	if err := readdress(ctx, tx, before.Port, &p, c.FixedIPs); err != nil {
		return p, err
	}
	around, err := surroundings(ctx, tx, p)
	if err != nil {
		return p, err
	}
	revision := before.Revision + 1
	cause := network.BlockTrigger{
		BindingChanged: p.Host != before.Host || p.VNIC != before.VNIC || !db.EqualJSON(p.Profile, before.Profile) ||
			p.Distributed() != before.Distributed(),
		AddressesChanged: p.MAC != before.MAC || !slices.Equal(p.Addresses, before.Addresses),
		BroughtUp:        p.AdminUp && !before.AdminUp,
		Revision:         revision,
	}
	if cause.BindingChanged {
		p = p.BindToNewHost(around.HostAgents)
	}
	p = p.RetryBinding(around, revision, before.now).UpdateBlocks(around, cause, before.now).UpdateStatus(before.now)
	if same(before.Port, p) {
		return p, nil
	}
	if err := writePort(ctx, tx, before.Port, p, ""); err != nil {
		return p, err
	}
	return changed(ctx, tx, before.Port)
}

// changed tells everybody of a port that a client has changed.
func changed(ctx context.Context, tx *transaction, before network.Port) (network.Port, error) {
	p, err := portByID(ctx, tx, before.ID)
	if err != nil {
		return p, err
	}
	batch := &pgx.Batch{}
	if e, ok := p.NovaEventForChange(); ok {
		queueEvent(batch, p.ID, e)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return p, fmt.Errorf("record for Nova: %w", err)
	}
	return p, publish(ctx, tx, before, p)
}

// publish mirrors a change of a port, takes the subports of its trunk along, and has its workflow look.
func publish(ctx context.Context, tx *transaction, before, after network.Port) error {
	if before.SubportHost() != after.SubportHost() {
		if err := follow(ctx, tx, after); err != nil {
			return err
		}
	}
	if err := record(ctx, tx, mirrorPortUpdate(before, after)); err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, portNudge(after, false))
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
func surroundings(ctx context.Context, tx *transaction, p network.Port) (network.PortContext, error) {
	around := network.PortContext{BlockPolicy: tx.config.Policy}
	subnets := make([]uuid.UUID, len(p.Addresses))
	for i, a := range p.Addresses {
		subnets[i] = a.Subnet
	}
	err := tx.QueryRow(ctx, `select `+dhcpHosts("$1", "(select unnest($2::uuid[]))")+`, `+agentsOn("$3", "$1"), p.Network, subnets, p.Host).
		Scan(&around.DHCPHosts, &around.HostAgents)
	if tx.config.NoDHCP {
		around.DHCPHosts = nil
	}
	return around, err
}

// writePort writes what became true of a locked port: its row, its blocks and what Nova has to be told. What a
// client can see of it gets a new revision; blocks and counted reports do not. The entity is the last that reported.
func writePort(ctx context.Context, tx *transaction, before, after network.Port, entity string) error {
	batch := &pgx.Batch{}
	queuePort(batch, before, after, entity)
	if batch.Len() == 0 {
		return nil
	}
	err := tx.SendBatch(ctx, batch).Close()
	if db.Violates(err, "port_mac") {
		return macInUse(after)
	}
	if err != nil {
		return fmt.Errorf("update port: %w", err)
	}
	if same(visible(before), visible(after)) {
		return nil
	}
	return announcePort(ctx, tx, before, after)
}

func queuePort(batch *pgx.Batch, before, after network.Port, entity string) {
	if before.IgnoredReports != after.IgnoredReports {
		batch.Queue(`update port set ignored_reports = $2 where id = $1`, after.ID, after.IgnoredReports)
	}
	if !same(visible(before), visible(after)) {
		batch.Queue(`
			update port
			set name = $2, description = $3, admin_up = $4, mac = $5, device_id = $6, device_owner = $7, status = $8, host = $9, vnic = $10,
				profile = $11, vif = $12, port_security = $13, epoch = $14, tags = $17, address_pairs = $18, dhcp_options = $19, vif_details = $20,
				security_groups = $21, switch = $22,
				revision = revision + 1, updated_at = now()
			where id = $1 and revision = $15 and status = $16`,
			after.ID, after.Name, after.Description, after.AdminUp, after.MAC, after.DeviceID, after.DeviceOwner, after.Status, after.Host,
			after.VNIC, after.Profile, after.VIF, after.PortSecurity, after.BindingRevision, before.Revision, before.Status, after.Tags, encoded(after.AddressPairs),
			encoded(after.DHCPOptions), after.ControllerVIFDetails, after.SecurityGroups, after.Switch).
			Exec(func(tag pgconn.CommandTag) error { return fenced(tag, nil, "update port", after.ID) })
	}
	queueBlocks(batch, before, after)
	queueBindings(batch, before, after)
	queueTransition(batch, before, after, entity)
}

// visible is the port without what does not count as a change of it.
func visible(p network.Port) network.Port {
	p.Blocks, p.IgnoredReports = nil, 0
	return p
}

// queueBlocks writes the difference between the blocks of before and after.
func queueBlocks(batch *pgx.Batch, before, after network.Port) {
	for _, b := range before.Blocks {
		if !slices.ContainsFunc(after.Blocks, func(o network.Block) bool { return o.Entity == b.Entity }) {
			batch.Queue(`delete from block where object_id = $1 and entity = $2`, after.ID, b.Entity)
		}
	}
	for _, b := range after.Blocks {
		if slices.ContainsFunc(before.Blocks, func(o network.Block) bool { return same(o, b) }) {
			continue
		}
		batch.Queue(`
			insert into block (object_type, object_id, entity, host, epoch, state, since, deadline, fatal)
			values ('port', $1, $2, $3, $4, $5, $6, $7, $8)
			on conflict (object_id, entity) do update
			set host = excluded.host, epoch = excluded.epoch, state = excluded.state, since = excluded.since,
				deadline = excluded.deadline, fatal = excluded.fatal`,
			after.ID, b.Entity, b.Host, b.MinRevision, b.State, b.Since, b.Deadline, b.Fatal)
	}
}

// queueBindings writes the difference between the further bindings of before and after.
func queueBindings(batch *pgx.Batch, before, after network.Port) {
	for _, b := range before.Bindings {
		if !slices.ContainsFunc(after.Bindings, func(o network.Binding) bool { return o.Host == b.Host }) {
			batch.Queue(`delete from port_binding where port_id = $1 and host = $2`, after.ID, b.Host)
		}
	}
	for _, b := range after.Bindings {
		if slices.ContainsFunc(before.Bindings, func(o network.Binding) bool { return same(o, b) }) {
			continue
		}
		batch.Queue(`
			insert into port_binding (port_id, host, status, vnic, profile, vif, plugged, switch)
			values ($1, $2, $3, $4, $5, $6, $7, $8)
			on conflict (port_id, host) do update
			set status = excluded.status, vnic = excluded.vnic, profile = excluded.profile, vif = excluded.vif, plugged = excluded.plugged, switch = excluded.switch`,
			after.ID, b.Host, b.Status, b.VNIC, b.Profile, b.VIF, b.Plugged, b.Switch)
	}
}

// queueTransition records what became of the port for Nova.
func queueTransition(batch *pgx.Batch, before, after network.Port, entity string) {
	for _, e := range after.NovaEvents(before, entity) {
		queueEvent(batch, after.ID, e)
	}
}

// queueEvent records an event for Nova. Changes that it was not told of are one, the last: it looks for itself what
// they are. The event gets a new ID, so that whoever is delivering the one before does not settle this one.
func queueEvent(batch *pgx.Batch, port uuid.UUID, e network.NovaEvent) {
	batch.Queue(`
		insert into nova_event (port_id, server, name, status, tag)
		values ($1, $2, $3, $4, $5)
		on conflict (port_id, server) where name = 'network-changed' do update
		set id = default`, port, e.Server, e.Name, e.Status, e.Tag)
}
