package portstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// pseudoAgentRenewal is the age of a pseudo agent's heartbeat after which the heartbeat is written again.
const pseudoAgentRenewal = network.AgentDownTime / 3

// SyncPseudoAgents makes the pseudo agents match the hosts that the controller reports. A pseudo agent, as in
// networking-odl, is the row of an agent that stands for the controller on one host. SyncPseudoAgents
// registers a pseudo agent for each new host and binds the host's ports whose binding had failed.
// SyncPseudoAgents deletes a pseudo agent if the controller has not reported the agent's host for the
// duration `forget`. SyncPseudoAgents skips a host that exceeds the limits of ReportState. If nothing has
// changed and no heartbeat must be renewed, SyncPseudoAgents only reads the pseudo agents once.
func (s *Store) SyncPseudoAgents(
	ctx context.Context,
	hosts []network.AgentState,
	forget time.Duration,
) error {
	known, err := s.pseudoAgents(ctx)
	if err != nil {
		return err
	}
	for _, h := range hosts {
		key := [2]string{h.Type, h.Host}
		agent, there := known[key]
		delete(known, key)
		if there && agent.fresh && db.EqualJSON(agent.configurations, h.Configurations) {
			continue
		}
		var fault *network.Fault
		if _, err := s.ReportState(ctx, h); errors.As(err, &fault) {
			slog.WarnContext(ctx, "OpenDaylight host configuration exceeds a limit; skipped",
				"host", h.Host, "type", h.Type, "error", err)
			continue
		} else if err != nil {
			return err
		}
		if there && !db.EqualJSON(agent.configurations, h.Configurations) {
			if err := s.recheckControllerPorts(ctx, h.Host); err != nil {
				return err
			}
		}
	}
	for _, agent := range known {
		if agent.silent < forget {
			continue
		}
		if err := s.DeleteAgent(ctx, agent.id); err != nil && !errors.Is(err, db.ErrNotFound) {
			return err
		}
	}
	return nil
}

type pseudoAgent struct {
	id             uuid.UUID
	configurations json.RawMessage
	silent         time.Duration
	fresh          bool
}

func (s *Store) pseudoAgents(ctx context.Context) (map[[2]string]pseudoAgent, error) {
	all := map[[2]string]pseudoAgent{}
	var key [2]string
	var a pseudoAgent
	rows, err := s.db.Query(ctx, `
		select agent_type, host, id, configurations, clock_timestamp() - heartbeat_at
		from agent
		where binary_name = $1`, network.ODLAgentBinary)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&key[0], &key[1], &a.id, &a.configurations, &a.silent}, func() error {
			a.fresh = a.silent < pseudoAgentRenewal
			all[key] = a
			a.configurations = nil
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read pseudo agents: %w", err)
	}
	return all, nil
}

// recheckControllerPorts rechecks the ports on the host that the controller wires and that wait for L2. If
// the controller no longer reports which ports are ready, the recheck removes the L2 blocks of these ports.
func (s *Store) recheckControllerPorts(ctx context.Context, host string) error {
	return s.inTx(ctx, func(tx *transaction) error {
		return recheckPorts(ctx, tx, `
			select p.id
			from port p
			join block b on b.object_id = p.id
			where p.host = $1 and p.vif_details is not null and b.entity = $2
			order by p.id`, host, network.L2)
	})
}

// WiredPort is a port that the controller wires, with the port's current binding.
type WiredPort struct {
	ID              uuid.UUID
	Host            string
	BindingRevision int64 // revision of the current binding
	AwaitsL2        bool  // has an L2 block
	// no unfinished journal entry of the port exists, so the controller has the port's current state
	InSync bool
}

// WiredPorts returns those of the given ports that the controller wires.
func (s *Store) WiredPorts(ctx context.Context, ids []uuid.UUID) ([]WiredPort, error) {
	ports, err := db.QueryAll(ctx, s.db, pgx.RowToStructByName[WiredPort], `
		select p.id, p.host, p.binding_revision, exists (select from block b where b.object_id = p.id and b.entity = $2) as awaits_l2,
			not exists (
				select from journal_entry e
				where e.object_type = 'port' and e.object_id = p.id::text and e.finished_at is null) as in_sync
		from port p
		where p.id = any($1) and p.vif_details is not null
		order by p.id`, ids, network.L2)
	if err != nil {
		return nil, fmt.Errorf("read controller-wired ports: %w", err)
	}
	return ports, nil
}

// HasPortAwaitingController reports whether at least one port waits until the controller has wired the port.
func (s *Store) HasPortAwaitingController(ctx context.Context) (bool, error) {
	var waits bool
	err := s.db.QueryRow(ctx, `
		select exists (
			select from block b
			join port p on p.id = b.object_id
			where b.entity = $1 and p.vif_details is not null)`, network.L2).Scan(&waits)
	if err != nil {
		return false, fmt.Errorf("find ports that wait for the controller: %w", err)
	}
	return waits, nil
}
