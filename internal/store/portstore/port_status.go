package portstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/notificationstore"
)

// UpdatePortStatus applies reports to a port's blocks, updates the port's binding and status, and writes the
// result under the port's row lock. The row lock serializes concurrent calls to UpdatePortStatus: the second
// call sees the result of the first call. UpdatePortStatus counts reports that change nothing as ignored. If
// the list of reports is empty, UpdatePortStatus rechecks the port and corrects its blocks and status. For a
// deleted port, UpdatePortStatus returns only the port's pending Nova events.
//
// UpdatePortStatus waits for locks only as a transaction of the port's project, so that the ports of a
// project that keeps them locked leave connections to the database for the ports of others.
func (s *Store) UpdatePortStatus(
	ctx context.Context,
	id uuid.UUID,
	reports []network.Report,
) (network.StatusView, error) {
	view, err := s.updatePortStatusPipelined(ctx, id, reports, lockPortNow)
	if db.WasLocked(err) {
		if ctx, err = s.withProjectOf(ctx, id); err == nil {
			view, err = s.updatePortStatusPipelined(ctx, id, reports, lockPortInTurn)
		}
	}
	if errors.Is(err, errNeedsTx) {
		view, err = s.updatePortStatusInTx(db.WithProject(ctx, view.Project), id, reports)
	}
	if err != nil {
		return network.StatusView{}, fmt.Errorf("update status of port %s: %w", id, err)
	}
	return view, nil
}

// withProjectOf returns a context whose transactions belong to the project of a port. If the port does not
// exist, withProjectOf returns the context unchanged.
func (s *Store) withProjectOf(ctx context.Context, id uuid.UUID) (context.Context, error) {
	project, err := db.QueryOne(ctx, s.db, pgx.RowTo[string], nil, `select project from port where id = $1`, id)
	return db.WithProject(ctx, project), err
}

// errNeedsTx means that not everything that follows from the change is stored in rows of the port itself.
var errNeedsTx = errors.New("port change needs a full transaction")

// updatePortStatusPipelined does the same as UpdatePortStatus in two round trips to the database, but only
// for changes whose effects are stored in rows of the port itself. If it returns errNeedsTx, the status has
// the project of the port.
func (s *Store) updatePortStatusPipelined(
	ctx context.Context,
	id uuid.UUID,
	reports []network.Report,
	lock string,
) (network.StatusView, error) {
	var h lockedPort
	var events []network.NovaEvent
	var view network.StatusView
	err := s.db.InPipelinedTx(ctx, func(reads *pgx.Batch) {
		notificationstore.QueueNovaEventsRead(reads, id, &events)
		h.queueLock(reads, id, s.config, lock)
	}, func(_ pgx.Tx, writes *pgx.Batch) error {
		after, accepted, entity := h.applyReports(reports)
		w := s.config.portWrite(h.Port, after, network.PortCause{Entity: entity, OwnWorkflow: true})
		view = after.StatusView()
		if !w.effects.InOwnRows() {
			return errNeedsTx
		}
		view.Accepted, view.Stale = accepted, after.StaleReports(reports, accepted)
		if w.queue(writes); writes.Len() > 0 {
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

// updatePortStatusInTx does the same as UpdatePortStatus in a transaction with separate round trips, for
// every kind of change.
func (s *Store) updatePortStatusInTx(
	ctx context.Context,
	id uuid.UUID,
	reports []network.Report,
) (network.StatusView, error) {
	var view network.StatusView
	err := s.inTx(ctx, func(tx *transaction) error {
		_, after, accepted, err := updatePortStatus(ctx, tx, id, reports,
			network.PortCause{OwnWorkflow: true})
		switch {
		case errors.Is(err, db.ErrNotFound):
			view = network.StatusView{Deleted: true}
		case err != nil:
			return err
		default:
			view = after.StatusView()
			view.Accepted, view.Stale = accepted, after.StaleReports(reports, accepted)
		}
		view.Events, err = notificationstore.NovaEvents(ctx, tx, id, 0)
		return err
	})
	return view, err
}

// ReportPort applies reports that do not come through the port's workflow, and nudges the port's workflow
// if the reports changed the port. ReportPort returns db.ErrNotFound if the port does not exist. Reports
// that are only counted as ignored, and reports of a sender that may act for one host only, leave no audit
// record: a host can send them about its ports as often as it likes. Reports of such a sender about a port
// that this host's agents cannot change, change nothing and wait for nothing: the result then has no status
// of the port.
func (s *Store) ReportPort(
	ctx context.Context,
	id uuid.UUID,
	reports []network.Report,
) (network.StatusView, error) {
	view, foreign, err := s.foreignView(ctx, id, reports)
	if err != nil || foreign {
		return view, err
	}
	err = s.inTx(ctx, func(tx *transaction) error {
		before, after, accepted, err := updatePortStatus(ctx, tx, id, reports, network.PortCause{})
		if err != nil {
			return err
		}
		view = after.StatusView()
		view.Accepted, view.Stale = accepted, after.StaleReports(reports, accepted)
		switch {
		case network.OnlyIgnoredReports(before, after), slices.ContainsFunc(reports, isHostOnly):
			db.SkipAudit(tx.Tx)
		case !reflect.DeepEqual(before, after):
			tx.Audit(before, after)
		}
		return nil
	})
	return view, err
}

func isHostOnly(r network.Report) bool { return r.HostOnly }

// updatePortStatus applies reports to a port and updates the port's status. If a report is accepted, its
// entity becomes the entity of the cause.
func updatePortStatus(
	ctx context.Context,
	tx *transaction,
	id uuid.UUID,
	reports []network.Report,
	cause network.PortCause,
) (
	before, after network.Port, accepted []bool, err error) {
	h, err := lockPort(ctx, tx, id)
	if err != nil {
		return h.Port, h.Port, nil, err
	}
	after, accepted, entity := h.applyReports(reports)
	if entity != "" {
		cause.Entity = entity
	}
	_, err = writePort(ctx, tx, h.Port, after, cause)
	return h.Port, after, accepted, err
}

// applyReports returns the port after the reports, a list that says for each report whether it was accepted,
// and the entity of the last accepted report, or "" if no report was accepted.
func (h lockedPort) applyReports(
	reports []network.Report,
) (after network.Port, accepted []bool, entity string) {
	after = h.Port.RetryBinding(h.dependencies, h.Revision+1, h.now).
		UpdateBlocks(h.dependencies, network.BlockTrigger{}, h.now)
	after, accepted = after.ApplyReports(h.dependencies, reports, h.now)
	after = after.UpdateStatus(h.now)
	for i, ok := range accepted {
		if ok {
			entity = reports[i].Entity
		} else {
			after.IgnoredReports++
		}
	}
	return after, accepted, entity
}

// recheckPort updates the status of a port after a change of the agents that the port depends on.
func recheckPort(ctx context.Context, tx *transaction, id uuid.UUID) error {
	_, _, _, err := updatePortStatus(ctx, tx, id, nil, network.PortCause{})
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return err
}

// recheckPorts rechecks the ports that the query returns. The query must order the ports by ID, because
// transactions that lock several ports in the same order do not deadlock.
func recheckPorts(ctx context.Context, tx *transaction, query string, args ...any) error {
	ids, err := db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID], query, args...)
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
