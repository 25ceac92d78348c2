package networkstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/notificationstore"
	"berth/internal/store/outbox"
)

// UpdatePortStatus applies reports to a port's blocks, updates the port's binding and status, and writes the result under the
// port's row lock. The row lock serializes concurrent calls to UpdatePortStatus: the second call sees the result of the first
// call. UpdatePortStatus counts reports that change nothing as ignored. If the list of reports is empty, UpdatePortStatus rechecks
// the port and corrects its blocks and status. For a deleted port, UpdatePortStatus returns only the port's pending Nova events.
func (s *Store) UpdatePortStatus(ctx context.Context, id uuid.UUID, reports []network.Report) (network.StatusView, error) {
	view, err := s.updatePortStatusPipelined(ctx, id, reports)
	if errors.Is(err, errNeedsTx) {
		view, err = s.updatePortStatusInTx(ctx, id, reports)
	}
	if err != nil {
		return network.StatusView{}, fmt.Errorf("update status of port %s: %w", id, err)
	}
	return view, nil
}

// errNeedsTx means that the change needs a full transaction: the binding changed, so the journal gets an entry, or
// agents or the webhook are notified.
var errNeedsTx = errors.New("port change needs a full transaction")

// updatePortStatusPipelined does the same as UpdatePortStatus in two round trips to the database, but only for changes
// that need no journal entries and no notifications. The update of the port's row requires the revision and
// status that were read, and always finds them, because the row stays locked after the read.
func (s *Store) updatePortStatusPipelined(ctx context.Context, id uuid.UUID, reports []network.Report) (network.StatusView, error) {
	var h lockedPort
	var events []network.NovaEvent
	var view network.StatusView
	err := s.db.InPipelinedTx(ctx, func(reads *pgx.Batch) {
		notificationstore.QueueNovaEventsRead(reads, id, &events)
		h.queueLock(reads, id, s.config)
	}, func(_ pgx.Tx, writes *pgx.Batch) error {
		after, accepted, entity := h.applyReports(reports, "")
		if after.VIF != h.VIF || s.config.NotifyAgents && !equal(clientView(h.Port), clientView(after)) ||
			s.config.NotifyWebhook && len(h.Blocks) > 0 && len(after.Blocks) == 0 {
			return errNeedsTx
		}
		view = after.StatusView()
		view.Accepted, view.Stale = accepted, after.StaleReports(reports, accepted)
		if queuePortUpdate(writes, h.Port, after, entity); writes.Len() > 0 {
			notificationstore.QueueNovaEventsRead(writes, id, &events) // including the events queued above
		}
		return nil
	})
	if db.NoRows(err) {
		view, err = network.StatusView{Deleted: true}, nil
	}
	view.Events = events
	return view, err
}

// updatePortStatusInTx does the same as UpdatePortStatus in a transaction with separate round trips, for every kind of
// change.
func (s *Store) updatePortStatusInTx(ctx context.Context, id uuid.UUID, reports []network.Report) (network.StatusView, error) {
	var view network.StatusView
	err := s.inTx(ctx, func(tx *transaction) error {
		_, after, accepted, err := updatePortStatus(ctx, tx, id, reports, "")
		switch {
		case errors.Is(err, db.ErrNotFound):
			view = network.StatusView{Deleted: true}
		case err != nil:
			return err
		default:
			view = after.StatusView()
			view.Accepted, view.Stale = accepted, after.StaleReports(reports, accepted)
		}
		view.Events, err = notificationstore.NovaEvents(ctx, tx, id)
		return err
	})
	return view, err
}

// ReportPort applies reports that do not come through the port's workflow, and nudges the port's workflow if the reports
// changed the port. ReportPort returns db.ErrNotFound if the port does not exist.
func (s *Store) ReportPort(ctx context.Context, id uuid.UUID, reports []network.Report) (network.StatusView, error) {
	var view network.StatusView
	err := s.inTx(ctx, func(tx *transaction) error {
		before, after, accepted, err := updatePortStatus(ctx, tx, id, reports, "")
		if err != nil {
			return err
		}
		view = after.StatusView()
		view.Accepted, view.Stale = accepted, after.StaleReports(reports, accepted)
		if equal(before, after) {
			return nil
		}
		tx.changed(before, after)
		return outbox.Enqueue(ctx, tx, portNudge(after, false))
	})
	return view, err
}

// updatePortStatus applies reports to a port and updates the port's status. The parameter `entity` is the entity whose
// block the caller has just removed; it is empty if the caller has removed none.
func updatePortStatus(ctx context.Context, tx *transaction, id uuid.UUID, reports []network.Report, entity string) (before, after network.Port, accepted []bool, err error) {
	h, err := lockPort(ctx, tx, id)
	if err != nil {
		return h.Port, h.Port, nil, err
	}
	after, accepted, entity = h.applyReports(reports, entity)
	if err := writePort(ctx, tx, h.Port, after, entity); err != nil || h.Port.VIF == after.VIF {
		return h.Port, after, accepted, err
	}
	return h.Port, after, accepted, recordReboundPorts(ctx, tx, id)
}

// applyReports returns the port after the reports, a list that says for each report whether it was accepted, and the
// entity of the last accepted report, or the parameter `last` if no report was accepted.
func (h lockedPort) applyReports(reports []network.Report, last string) (after network.Port, accepted []bool, entity string) {
	after = h.Port.RetryBinding(h.dependencies, h.Revision+1, h.now).UpdateBlocks(h.dependencies, network.BlockTrigger{}, h.now)
	after, accepted = after.ApplyReports(h.dependencies, reports, h.now)
	after, entity = after.UpdateStatus(h.now), last
	for i, ok := range accepted {
		if ok {
			entity = reports[i].Entity
		} else {
			after.IgnoredReports++
		}
	}
	return after, accepted, entity
}

// recordReboundPorts writes journal entries for ports that were bound without a client request.
func recordReboundPorts(ctx context.Context, tx *transaction, ids ...uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, portSelect+portFrom+` where id = any($1) order by id`, ids)
	if err != nil {
		return fmt.Errorf("read rebound ports: %w", err)
	}
	ports, err := pgx.CollectRows(rows, scanPort)
	if err != nil {
		return fmt.Errorf("read rebound ports: %w", err)
	}
	changes := make([]journal.Change, len(ports))
	for i, p := range ports {
		changes[i] = mirrorPort(p, journal.Update)
	}
	return recordChanges(ctx, tx, changes...)
}

// recheckPort updates the status of a port after a change of the agents that the port depends on, and nudges the port's
// workflow if the port changed.
func recheckPort(ctx context.Context, tx *transaction, id uuid.UUID) error {
	before, after, _, err := updatePortStatus(ctx, tx, id, nil, "")
	if errors.Is(err, db.ErrNotFound) || err == nil && equal(before, after) {
		return nil
	}
	if err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, portNudge(after, false))
}

// recheckDHCPPorts rechecks every port of a network that waits for DHCP. The caller of recheckDHCPPorts must hold the
// network's row lock, so that no other transaction adds a port to the network meanwhile.
func recheckDHCPPorts(ctx context.Context, tx *transaction, id uuid.UUID) error {
	return recheckPorts(ctx, tx, `
		select p.id
		from port p
		join block b on b.object_id = p.id
		where p.network_id = $1 and b.entity = $2
		order by p.id`, id, network.DHCP)
}

// recheckPorts rechecks the ports that the query returns. The query must order the ports by ID, because transactions that
// lock several ports in the same order do not deadlock.
func recheckPorts(ctx context.Context, tx *transaction, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("find ports: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("find ports: %w", err)
	}
	for _, id := range ids {
		if err := recheckPort(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}
