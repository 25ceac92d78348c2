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
	"berth/internal/store/notificationstore"
	"berth/internal/store/outbox"
)

// UpdatePort changes a port, binds the port again if the change concerns the binding, and updates the port's blocks and status.
// If `expect` is not nil, UpdatePort fails unless the port has the revision `expect`.
func (s *Store) UpdatePort(ctx context.Context, id uuid.UUID, c network.PortChange, expect *int64) (network.Port, error) {
	var after network.Port
	err := s.inTx(ctx, func(tx *transaction) (err error) {
		after, err = updatePort(ctx, tx, id, c, expect)
		return err
	})
	return after, err
}

func updatePort(ctx context.Context, tx *transaction, id uuid.UUID, c network.PortChange, expect *int64) (network.Port, error) {
	before, err := lockPortAndNetwork(ctx, tx, id)
	if err != nil {
		return before.Port, err
	}
	if err := checkRevision(before.Revision, expect); err != nil {
		return before.Port, err
	}
	after, err := changePort(ctx, tx, before, c)
	tx.changed(before.Port, after)
	return after, err
}

// lockPortAndNetwork takes a share lock on the port's network and then locks the port.
func lockPortAndNetwork(ctx context.Context, tx *transaction, id uuid.UUID) (lockedPort, error) {
	p, err := portByID(ctx, tx, id)
	if err != nil {
		return lockedPort{}, err
	}
	if _, err := lockNetwork(ctx, tx, p.Network, lockShared); err != nil {
		return lockedPort{}, err
	}
	return lockPort(ctx, tx, id)
}

func changePort(ctx context.Context, tx *transaction, before lockedPort, c network.PortChange) (network.Port, error) {
	if db.EqualJSON(c.Profile, before.Profile) {
		c.Profile = nil
	}
	p, err := before.Port.With(c).WithExtensions(c)
	if err != nil {
		return p, err
	}
	if err := p.CheckBoundChange(before.Port); err != nil {
		return p, err
	}
	if p, err = applySecurityGroups(ctx, tx, p, c); err != nil {
		return p, err
	}
	if err := updateFixedIPs(ctx, tx, before.Port, &p, c.FixedIPs); err != nil {
		return p, err
	}
	dependencies, err := readDependencies(ctx, tx, p)
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
		p = p.BindToNewHost(dependencies.HostAgents)
	}
	p = p.RetryBinding(dependencies, revision, before.now).UpdateBlocks(dependencies, cause, before.now).UpdateStatus(before.now)
	if equal(before.Port, p) {
		return p, nil
	}
	if err := writePort(ctx, tx, before.Port, p, ""); err != nil {
		return p, err
	}
	return finishPortUpdate(ctx, tx, before.Port)
}

// finishPortUpdate records the effects of a changed port row: the Nova event, the journal entry and the nudge for the
// port's workflow.
func finishPortUpdate(ctx context.Context, tx *transaction, before network.Port) (network.Port, error) {
	p, err := portByID(ctx, tx, before.ID)
	if err != nil {
		return p, err
	}
	batch := &pgx.Batch{}
	if e, ok := p.NovaEventForChange(); ok {
		notificationstore.QueueNovaEvent(batch, p.ID, e)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return p, fmt.Errorf("record Nova event: %w", err)
	}
	return p, recordPortChange(ctx, tx, before, p)
}

// recordPortChange writes the journal entry of a port change, binds the subports of the port's trunk to the port's
// host, and nudges the port's workflow.
func recordPortChange(ctx context.Context, tx *transaction, before, after network.Port) error {
	if before.SubportHost() != after.SubportHost() {
		if err := moveSubports(ctx, tx, after); err != nil {
			return err
		}
	}
	if err := recordChanges(ctx, tx, mirrorPortUpdate(before, after)); err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, portNudge(after, false))
}

// readDependencies reads the agents that a changed port depends on. When readDependencies runs, the port's row still has the
// values before the change, so readDependencies gets the new values in the parameter p.
func readDependencies(ctx context.Context, tx *transaction, p network.Port) (network.PortContext, error) {
	dependencies := network.PortContext{BlockPolicy: tx.config.Policy}
	subnets := make([]uuid.UUID, len(p.Addresses))
	for i, a := range p.Addresses {
		subnets[i] = a.Subnet
	}
	err := tx.QueryRow(ctx, `select `+dhcpHosts("$1", "(select unnest($2::uuid[]))")+`, `+agentsOn("$3"), p.Network, subnets, p.Host).
		Scan(&dependencies.DHCPHosts, &dependencies.HostAgents)
	if tx.config.NoDHCP {
		dependencies.DHCPHosts = nil
	}
	return dependencies, err
}

// writePort writes the changes of a locked port: row, blocks, bindings and Nova events. Changes of fields that clients can see
// increase the port's revision; changes of blocks and of the count of ignored reports do not. The parameter `entity` names the
// entity that last completed its part for the port.
func writePort(ctx context.Context, tx *transaction, before, after network.Port, entity string) error {
	batch := &pgx.Batch{}
	queuePortUpdate(batch, before, after, entity)
	if batch.Len() == 0 {
		return nil
	}
	err := tx.SendBatch(ctx, batch).Close()
	if db.Violates(err, "port_mac") {
		return after.MACInUse()
	}
	if err != nil {
		return fmt.Errorf("update port: %w", err)
	}
	if err := enqueueProvisioned(ctx, tx, len(before.Blocks) > 0, after, entity); err != nil || equal(clientView(before), clientView(after)) {
		return err
	}
	return enqueueNotifications(ctx, tx, portNotification(before, after))
}

func queuePortUpdate(batch *pgx.Batch, before, after network.Port, entity string) {
	if before.IgnoredReports != after.IgnoredReports {
		batch.Queue(`update port set ignored_reports = $2 where id = $1`, after.ID, after.IgnoredReports)
	}
	if !equal(clientView(before), clientView(after)) {
		batch.Queue(`
			update port
			set name = @name, description = @description, admin_up = @admin_up, mac = @mac, device_id = @device_id, device_owner = @device_owner, status = @status, host = @host, vnic = @vnic,
				profile = @profile, vif = @vif, port_security = @port_security, epoch = @epoch, tags = @tags, address_pairs = @address_pairs, dhcp_options = @dhcp_options, vif_details = @vif_details,
				security_groups = @security_groups, switch = @switch,
				revision = revision + 1, updated_at = now()
			where id = @id and revision = @expected_revision and status = @expected_status`, pgx.StrictNamedArgs{
			"id":                after.ID,
			"name":              after.Name,
			"description":       after.Description,
			"admin_up":          after.AdminUp,
			"mac":               after.MAC,
			"device_id":         after.DeviceID,
			"device_owner":      after.DeviceOwner,
			"status":            after.Status,
			"host":              after.Host,
			"vnic":              after.VNIC,
			"profile":           after.Profile,
			"vif":               after.VIF,
			"port_security":     after.PortSecurity,
			"epoch":             after.BindingRevision,
			"expected_revision": before.Revision,
			"expected_status":   before.Status,
			"tags":              after.Tags,
			"address_pairs":     encoded(after.AddressPairs),
			"dhcp_options":      encoded(after.DHCPOptions),
			"vif_details":       after.ControllerVIFDetails,
			"security_groups":   after.SecurityGroups,
			"switch":            after.Switch,
		}).
			Exec(func(tag pgconn.CommandTag) error { return db.CheckFence(tag, nil, "update port", after.ID) })
	}
	queueBlocks(batch, before, after)
	queueBindings(batch, before, after)
	queueStatusEvents(batch, before, after, entity)
}

// clientView returns a copy of the port without the fields whose changes do not increase the port's revision.
func clientView(p network.Port) network.Port {
	p.Blocks, p.IgnoredReports = nil, 0
	return p
}

// queueBlocks queues the statements for the difference between the blocks of `before` and of `after`.
func queueBlocks(batch *pgx.Batch, before, after network.Port) {
	for _, b := range before.Blocks {
		if !slices.ContainsFunc(after.Blocks, func(o network.Block) bool { return o.Entity == b.Entity }) {
			batch.Queue(`delete from block where object_id = $1 and entity = $2`, after.ID, b.Entity)
		}
	}
	for _, b := range after.Blocks {
		if slices.ContainsFunc(before.Blocks, func(o network.Block) bool { return equal(o, b) }) {
			continue
		}
		batch.Queue(`
			insert into block (object_type, object_id, entity, host, epoch, state, since, deadline, fatal, owner)
			values ('port', @object_id, @entity, @host, @epoch, @state, @since, @deadline, @fatal, @owner)
			on conflict (object_id, entity) do update
			set host = excluded.host, epoch = excluded.epoch, state = excluded.state, since = excluded.since,
				deadline = excluded.deadline, fatal = excluded.fatal`, pgx.StrictNamedArgs{
			"object_id": after.ID,
			"entity":    b.Entity,
			"host":      b.Host,
			"epoch":     b.MinRevision,
			"state":     b.State,
			"since":     b.Since,
			"deadline":  b.Deadline,
			"fatal":     b.Fatal,
			"owner":     b.Owner,
		})
	}
}

// queueBindings queues the statements for the difference between the inactive bindings of `before` and of `after`.
func queueBindings(batch *pgx.Batch, before, after network.Port) {
	for _, b := range before.Bindings {
		if !slices.ContainsFunc(after.Bindings, func(o network.Binding) bool { return o.Host == b.Host }) {
			batch.Queue(`delete from port_binding where port_id = $1 and host = $2`, after.ID, b.Host)
		}
	}
	for _, b := range after.Bindings {
		if slices.ContainsFunc(before.Bindings, func(o network.Binding) bool { return equal(o, b) }) {
			continue
		}
		batch.Queue(`
			insert into port_binding (port_id, host, status, vnic, profile, vif, plugged, switch)
			values (@port_id, @host, @status, @vnic, @profile, @vif, @plugged, @switch)
			on conflict (port_id, host) do update
			set status = excluded.status, vnic = excluded.vnic, profile = excluded.profile, vif = excluded.vif, plugged = excluded.plugged, switch = excluded.switch`, pgx.StrictNamedArgs{
			"port_id": after.ID,
			"host":    b.Host,
			"status":  b.Status,
			"vnic":    b.VNIC,
			"profile": b.Profile,
			"vif":     b.VIF,
			"plugged": b.Plugged,
			"switch":  b.Switch,
		})
	}
}

// queueStatusEvents queues the Nova events of a status change.
func queueStatusEvents(batch *pgx.Batch, before, after network.Port, entity string) {
	for _, e := range after.NovaEvents(before, entity) {
		notificationstore.QueueNovaEvent(batch, after.ID, e)
	}
}
