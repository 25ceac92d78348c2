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
	"berth/internal/store/outbox"
)

// SettlePort lets reports complete the blocks of a port, decides its status and writes what became true, all under
// the port's row lock: of two last reports at the same instant, the second sees the first. Reports that complete
// nothing are counted. Without reports it is a look that also repairs. Of a deleted port, only what is recorded
// for Nova is left.
func (s *Store) SettlePort(ctx context.Context, id uuid.UUID, reports []network.Report) (network.StatusView, error) {
	standing, err := s.settleSwiftly(ctx, id, reports)
	if errors.Is(err, errRebound) {
		standing, err = s.settleMirrored(ctx, id, reports)
	}
	if err != nil {
		return network.StatusView{}, fmt.Errorf("settle port %s: %w", id, err)
	}
	return standing, nil
}

// errRebound means that a port's binding was made good, of which the controller has to hear, or that agents have to hear of it.
var errRebound = errors.New("rebound")

// settleSwiftly is SettlePort of a port that neither the controller nor agents hear of. The fence of what it writes cannot hold it
// up, because the row is locked since it was read.
func (s *Store) settleSwiftly(ctx context.Context, id uuid.UUID, reports []network.Report) (network.StatusView, error) {
	var h held
	var events []network.NovaEvent
	var standing network.StatusView
	err := s.db.InPipelinedTx(ctx, func(reads *pgx.Batch) {
		queueNovaEvents(reads, id, &events)
		h.queue(reads, id, s.config)
	}, func(_ pgx.Tx, writes *pgx.Batch) error {
		after, accepted, entity := h.hear(reports, "")
		if after.VIF != h.VIF || s.config.NotifyAgents && !same(visible(h.Port), visible(after)) {
			return errRebound
		}
		standing = after.StatusView()
		standing.Accepted = accepted
		if queuePort(writes, h.Port, after, entity); writes.Len() > 0 {
			queueNovaEvents(writes, id, &events) // with those that were recorded just now
		}
		return nil
	})
	if db.NoRows(err) {
		standing, err = network.StatusView{Deleted: true}, nil
	}
	standing.Events = events
	return standing, err
}

// settleMirrored is SettlePort of any port.
func (s *Store) settleMirrored(ctx context.Context, id uuid.UUID, reports []network.Report) (network.StatusView, error) {
	var standing network.StatusView
	err := s.inTx(ctx, func(tx *transaction) error {
		_, after, accepted, err := settle(ctx, tx, id, reports, "")
		switch {
		case errors.Is(err, db.ErrNotFound):
			standing = network.StatusView{Deleted: true}
		case err != nil:
			return err
		default:
			standing = after.StatusView()
			standing.Accepted = accepted
		}
		standing.Events, err = novaEvents(ctx, tx, id)
		return err
	})
	return standing, err
}

// ReportPort is SettlePort for reports that do not come through the port's workflow, which therefore has to look
// if something changed. An unknown port is ErrNotFound.
func (s *Store) ReportPort(ctx context.Context, id uuid.UUID, reports []network.Report) (network.StatusView, error) {
	var standing network.StatusView
	err := s.inTx(ctx, func(tx *transaction) error {
		before, after, accepted, err := settle(ctx, tx, id, reports, "")
		if err != nil {
			return err
		}
		standing = after.StatusView()
		standing.Accepted = accepted
		if same(before, after) {
			return nil
		}
		return outbox.Enqueue(ctx, tx, portNudge(after, false))
	})
	return standing, err
}

// settle lets reports act on a port and decides it anew. The entity is the last whose block was lifted, unless a report
// lifts one.
func settle(ctx context.Context, tx *transaction, id uuid.UUID, reports []network.Report, entity string) (before, after network.Port, accepted []bool, err error) {
	h, err := lockPort(ctx, tx, id)
	if err != nil {
		return h.Port, h.Port, nil, err
	}
	after, accepted, entity = h.hear(reports, entity)
	if err := writePort(ctx, tx, h.Port, after, entity); err != nil || h.Port.VIF == after.VIF {
		return h.Port, after, accepted, err
	}
	return h.Port, after, accepted, mirrorRebound(ctx, tx, id)
}

// hear is the port after reports, decided anew, with which of them it accepted and the last entity whose block was
// lifted.
func (h held) hear(reports []network.Report, last string) (after network.Port, accepted []bool, entity string) {
	after = h.Port.RetryBinding(h.around, h.Revision+1, h.now).UpdateBlocks(h.around, network.BlockTrigger{}, h.now)
	after, accepted = after.ApplyReports(h.around, reports, h.now)
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

// mirrorRebound records ports whose binding was made good without a request of anybody.
func mirrorRebound(ctx context.Context, tx *transaction, ids ...uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, portSelect+portFrom+` where id = any($1) order by id`, ids)
	if err != nil {
		return fmt.Errorf("read ports that were bound: %w", err)
	}
	ports, err := pgx.CollectRows(rows, scanPort)
	if err != nil {
		return fmt.Errorf("read ports that were bound: %w", err)
	}
	changes := make([]journal.Change, len(ports))
	for i, p := range ports {
		changes[i] = mirrorPort(p, journal.Update)
	}
	return record(ctx, tx, changes...)
}

// look settles a port whose surroundings changed and lets its workflow know if that changed the port.
func look(ctx context.Context, tx *transaction, id uuid.UUID) error {
	before, after, _, err := settle(ctx, tx, id, nil, "")
	if errors.Is(err, db.ErrNotFound) || err == nil && same(before, after) {
		return nil
	}
	if err != nil {
		return err
	}
	return outbox.Enqueue(ctx, tx, portNudge(after, false))
}

// review looks at every port of a network that waits for DHCP, after that network's DHCP changed. The caller holds
// the network's row, so that no port joins meanwhile.
func review(ctx context.Context, tx *transaction, id uuid.UUID) error {
	return lookAt(ctx, tx, `
		select p.id
		from port p
		join block b on b.object_id = p.id
		where p.network_id = $1 and b.entity = $2
		order by p.id`, id, network.DHCP)
}

// lookAt looks at the ports that a query finds. It orders them, so that two who look do not deadlock.
func lookAt(ctx context.Context, tx *transaction, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("find ports: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("find ports: %w", err)
	}
	for _, id := range ids {
		if err := look(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// NovaEvents lists what is recorded for Nova about a port and not delivered yet, oldest first.
func (s *Store) NovaEvents(ctx context.Context, port uuid.UUID) ([]network.NovaEvent, error) {
	return novaEvents(ctx, s.db, port)
}

func novaEvents(ctx context.Context, q db.Querier, port uuid.UUID) ([]network.NovaEvent, error) {
	rows, err := q.Query(ctx, eventsOf, port)
	if err != nil {
		return nil, fmt.Errorf("read Nova events: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[network.NovaEvent])
}

const eventsOf = `
	select id, server, name, status, tag, clock_timestamp() - created_at
	from nova_event
	where port_id = $1
	order by id`

func queueNovaEvents(batch *pgx.Batch, port uuid.UUID, into *[]network.NovaEvent) {
	batch.Queue(eventsOf, port).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[network.NovaEvent])
		return err
	})
}

// SettleNovaEvents forgets events that were delivered. Those that are forgotten already do no harm.
func (s *Store) SettleNovaEvents(ctx context.Context, ids []int64) error {
	if _, err := s.db.Exec(ctx, `delete from nova_event where id = any($1)`, ids); err != nil {
		return fmt.Errorf("settle Nova events: %w", err)
	}
	return nil
}
