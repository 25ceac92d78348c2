package portstore

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/notificationstore"
	"berth/internal/store/outbox"
)

// portWrite is the creation, change or deletion of a port whose row the transaction has locked, with
// everything that follows from it.
type portWrite struct {
	before, after network.Port
	event         string // network.EventCreated, network.EventDeleted, or empty for a change
	effects       network.PortEffects
	// whether Nova has not received every event of a deleted port; known when the statements of `queue` have
	// run
	undelivered bool
}

// portWrite returns the write with its effects. Notifications that the configuration disables are no effects.
func (c Config) portWrite(before, after network.Port, cause network.PortCause) *portWrite {
	w := &portWrite{
		before:  before,
		after:   after,
		event:   cause.Event,
		effects: network.EffectsOf(before, after, cause),
	}
	if !c.NotifyWebhook {
		w.effects.Provisioning = nil
	}
	if !c.Network.NotifyAgents {
		w.effects.AgentEvent = ""
	}
	return w
}

// writePort writes a port and everything that follows from the write, and returns the port.
func writePort(
	ctx context.Context,
	tx *transaction,
	before, after network.Port,
	cause network.PortCause,
) (network.Port, error) {
	written, err := writePorts(ctx, tx, []*portWrite{tx.config.portWrite(before, after, cause)})
	return written[0], err
}

// writePorts writes ports and everything that follows from the writes, and returns the ports. The fields that
// the database sets (the revision and the time of the update) are read again only for ports whose changes the
// controller gets.
func writePorts(ctx context.Context, tx *transaction, writes []*portWrite) ([]network.Port, error) {
	db.CountChanges(ctx, len(writes))
	batch := &pgx.Batch{}
	written := make([]network.Port, len(writes))
	for i, w := range writes {
		w.queue(batch)
		written[i] = w.after
		if w.effects.Controller && w.event != network.EventDeleted {
			queuePortRead(batch, w.after.ID, &written[i])
		}
	}
	if batch.Len() > 0 {
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return written, portWriteError(err, writes)
		}
	}
	return written, recordEffects(ctx, tx, writes, written)
}

// portWriteError converts the violation of a constraint to a fault.
func portWriteError(err error, writes []*portWrite) error {
	for _, w := range writes {
		switch deleted := w.event == network.EventDeleted; {
		case deleted && db.Violates(err, "trunk_parent"):
			return network.Faultf(network.PortIsParent,
				"Port %s is currently a parent port for a trunk.", w.before.ID)
		case deleted && db.Violates(err, "subport_member"):
			return network.Faultf(network.PortIsSubport, "Port %s is currently a subport for a trunk.",
				w.before.ID)
		case w.before.MAC != w.after.MAC && db.Violates(err, "port_mac"):
			return w.after.MACInUse()
		}
	}
	return fmt.Errorf("write port: %w", err)
}

// queue queues the statements for the rows of the port itself.
func (w *portWrite) queue(batch *pgx.Batch) {
	for _, e := range w.effects.NovaEvents {
		notificationstore.QueueNovaEvent(batch, w.before.ID, e)
	}
	if w.event == network.EventDeleted {
		batch.Queue(`select exists (select from nova_event where port_id = $1)`, w.before.ID).
			QueryRow(func(r pgx.Row) error { return r.Scan(&w.undelivered) })
		batch.Queue(`delete from block where object_id = $1`, w.before.ID)
		batch.Queue(`delete from port where id = $1`, w.before.ID)
		return
	}
	if w.event == network.EventCreated && w.before.Status != w.after.Status {
		batch.Queue(`update port set status = $2 where id = $1 and status = $3`,
			w.after.ID, w.after.Status, w.before.Status)
	}
	if w.effects.IgnoredReports {
		batch.Queue(`update port set ignored_reports = $2 where id = $1`, w.after.ID, w.after.IgnoredReports)
	}
	if w.effects.Revised {
		queueRevision(batch, w.before, w.after)
	}
	queueBlocks(batch, w.before, w.after)
	queueBindings(batch, w.before, w.after)
}

// recordEffects records what follows from writes outside of the rows of the ports: notifications, the hosts
// of subports, journal entries and nudges.
func recordEffects(ctx context.Context, tx *transaction, writes []*portWrite, written []network.Port) error {
	var notifications []network.AgentNotification
	var changes []journal.Change
	for i, w := range writes {
		if n := w.effects.Provisioning; n != nil {
			if err := notificationstore.AppendProvisioning(ctx, tx, *n); err != nil {
				return err
			}
		}
		if w.effects.AgentEvent != "" {
			notifications = append(notifications, w.agentNotification())
		}
		if w.effects.Controller {
			changes = append(changes, w.journalChange(written[i]))
		}
	}
	if err := networkstore.EnqueueNotifications(ctx, tx.Transaction, notifications...); err != nil {
		return err
	}
	for _, w := range writes {
		if w.effects.Subports {
			if err := moveSubports(ctx, tx, w.after); err != nil {
				return err
			}
		}
	}
	if err := networkstore.RecordChanges(ctx, tx.Transaction, changes...); err != nil {
		return err
	}
	return nudgeWorkflows(ctx, tx, writes, written)
}

// agentNotification returns the notification of agents about the write.
func (w *portWrite) agentNotification() network.AgentNotification {
	a := network.AgentNotification{
		Network:    w.before.Network,
		Resource:   network.ResourcePort,
		Event:      w.effects.AgentEvent,
		ResourceID: w.before.ID,
	}
	switch w.event {
	case network.EventCreated:
	case network.EventDeleted:
		a.Data = w.journalChange(w.before).Data
	default:
		a.Data = db.EncodeJSON(network.SideEffectsOf(w.before, w.after))
	}
	return a
}

// journalChange returns the change of the journal for the written port. The change of an update names the
// objects to which the port refers before or after the update.
func (w *portWrite) journalChange(written network.Port) journal.Change {
	switch w.event {
	case network.EventCreated:
		return mirrorPort(written, journal.Create)
	case network.EventDeleted:
		return mirrorPort(w.before, journal.Delete)
	}
	was := mirrorPort(w.before, journal.Update)
	return networkstore.WithReferences(mirrorPort(written, journal.Update), &was)
}

// nudgeWorkflows nudges the workflows of the written ports. The nudge of a new port has the status that its
// workflow starts with.
func nudgeWorkflows(ctx context.Context, tx *transaction, writes []*portWrite, written []network.Port) error {
	var nudges []contract.Nudge
	for i, w := range writes {
		switch {
		case !w.effects.Nudge:
		case w.event == network.EventDeleted:
			if err := outbox.EnqueueLast(ctx, tx, portNudge(w.before, false), w.undelivered); err != nil {
				return err
			}
		case w.event == network.EventCreated:
			n, view := portNudge(written[i], true), written[i].StatusView()
			view.Events = w.effects.NovaEvents
			n.PortStatus = new(WorkflowPortStatus(written[i].ID.String(), view))
			nudges = append(nudges, n)
		default:
			nudges = append(nudges, portNudge(written[i], false))
		}
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}

// queueRevision queues the update of the fields that clients can see. The update requires the revision and
// the status that were read, and always finds them, because the row stays locked after the read.
func queueRevision(batch *pgx.Batch, before, after network.Port) {
	batch.Queue(`
		update port
		set name = @name, description = @description, admin_up = @admin_up, mac = @mac, device_id = @device_id, device_owner = @device_owner,
			status = @status, host = @host, vnic = @vnic, profile = @profile, vif = @vif, port_security = @port_security, binding_revision = @binding_revision,
			tags = @tags, address_pairs = @address_pairs, dhcp_options = @dhcp_options, vif_details = @vif_details,
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
		"binding_revision":  after.BindingRevision,
		"expected_revision": before.Revision,
		"expected_status":   before.Status,
		"tags":              after.Tags,
		"address_pairs":     db.EncodeJSON(after.AddressPairs),
		"dhcp_options":      db.EncodeJSON(after.DHCPOptions),
		"vif_details":       after.ControllerVIFDetails,
		"security_groups":   after.SecurityGroups,
		"switch":            after.Switch,
	}).Exec(func(tag pgconn.CommandTag) error {
		return db.CheckFence(tag, nil, "update port", after.ID)
	})
}

// queueBlocks queues the statements for the difference between the blocks of `before` and of `after`.
func queueBlocks(batch *pgx.Batch, before, after network.Port) {
	for _, b := range before.Blocks {
		if !slices.ContainsFunc(after.Blocks, func(o network.Block) bool { return o.Entity == b.Entity }) {
			batch.Queue(`delete from block where object_id = $1 and entity = $2`, after.ID, b.Entity)
		}
	}
	for _, b := range after.Blocks {
		if slices.ContainsFunc(before.Blocks, func(o network.Block) bool { return reflect.DeepEqual(o, b) }) {
			continue
		}
		batch.Queue(`
			insert into block (object_type, object_id, entity, host, min_revision, state, since, deadline, fatal, owner)
			values ('port', @object_id, @entity, @host, @min_revision, @state, @since, @deadline, @fatal, @owner)
			on conflict (object_id, entity) do update
			set host = excluded.host, min_revision = excluded.min_revision, state = excluded.state, since = excluded.since,
				deadline = excluded.deadline, fatal = excluded.fatal`, pgx.StrictNamedArgs{
			"object_id":    after.ID,
			"entity":       b.Entity,
			"host":         b.Host,
			"min_revision": b.MinRevision,
			"state":        b.State,
			"since":        b.Since,
			"deadline":     b.Deadline,
			"fatal":        b.Fatal,
			"owner":        b.Owner,
		})
	}
}

// queueBindings queues the statements for the difference between the inactive bindings of `before` and of
// `after`.
func queueBindings(batch *pgx.Batch, before, after network.Port) {
	for _, b := range before.Bindings {
		if !slices.ContainsFunc(after.Bindings, func(o network.Binding) bool { return o.Host == b.Host }) {
			batch.Queue(`delete from port_binding where port_id = $1 and host = $2`, after.ID, b.Host)
		}
	}
	for _, b := range after.Bindings {
		if slices.ContainsFunc(before.Bindings, func(o network.Binding) bool { return reflect.DeepEqual(o, b) }) {
			continue
		}
		batch.Queue(`
			insert into port_binding (port_id, host, status, vnic, profile, vif, plugged, switch)
			values (@port_id, @host, @status, @vnic, @profile, @vif, @plugged, @switch)
			on conflict (port_id, host) do update
			set status = excluded.status, vnic = excluded.vnic, profile = excluded.profile, vif = excluded.vif, plugged = excluded.plugged,
				switch = excluded.switch`, pgx.StrictNamedArgs{
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
