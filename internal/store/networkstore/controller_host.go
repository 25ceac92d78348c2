package networkstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// freshHost is how young the last heartbeat of a pseudo agent is while nobody has to renew it.
const freshHost = network.AgentDownTime / 3

// KeepHosts makes the pseudo agents those hosts of which a controller tells: new ones are registered, ports that wait for
// them are bound, and those that it has not told of for so long are forgotten. What nothing changes about costs a read.
func (s *Store) KeepHosts(ctx context.Context, hosts []network.AgentState, forget time.Duration) error {
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
		if _, err := s.ReportState(ctx, h); err != nil {
			return err
		}
		if there && !db.EqualJSON(agent.configurations, h.Configurations) {
			if err := s.reconsider(ctx, h.Host); err != nil {
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
	rows, err := s.db.Query(ctx, `
		select agent_type, host, id, configurations, clock_timestamp() - heartbeat_at
		from agent
		where binary_name = $1`, network.ODLAgentBinary)
	if err != nil {
		return nil, fmt.Errorf("read pseudo agents: %w", err)
	}
	all := map[[2]string]pseudoAgent{}
	var key [2]string
	var a pseudoAgent
	_, err = pgx.ForEachRow(rows, []any{&key[0], &key[1], &a.id, &a.configurations, &a.silent}, func() error {
		a.fresh = a.silent < freshHost
		all[key] = a
		a.configurations = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read pseudo agents: %w", err)
	}
	return all, nil
}

// reconsider looks at the ports on a host that wait to be wired: its controller may no longer say when they are.
func (s *Store) reconsider(ctx context.Context, host string) error {
	return s.inTx(ctx, func(tx *transaction) error {
		return lookAt(ctx, tx, `
			select p.id
			from port p
			join block b on b.object_id = p.id
			where p.host = $1 and p.vif_details is not null and b.entity = $2
			order by p.id`, host, network.L2)
	})
}

// WiredPort is a port that a controller wires, on the binding that it has now.
type WiredPort struct {
	ID    uuid.UUID
	Host  string
	Epoch int64 // of the binding
	Waits bool  // to be wired
	Known bool  // to the controller as it is: none of its changes is on its way
}

// WiredPorts are those of the ports that a controller wires.
func (s *Store) WiredPorts(ctx context.Context, ids []uuid.UUID) ([]WiredPort, error) {
	ports, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[WiredPort], `
		select p.id, p.host, p.epoch, exists (select from block b where b.object_id = p.id and b.entity = $2),
			not exists (
				select from journal_entry e
				where e.object_type = 'port' and e.object_id = p.id::text and e.finished_at is null)
		from port p
		where p.id = any($1) and p.vif_details is not null
		order by p.id`, ids, network.L2)
	if err != nil {
		return nil, fmt.Errorf("read ports that a controller wires: %w", err)
	}
	return ports, nil
}

// AwaitsController tells whether a port waits for a controller to wire it.
func (s *Store) AwaitsController(ctx context.Context) (bool, error) {
	var waits bool
	err := s.db.QueryRow(ctx, `
		select exists (
			select from block b
			join port p on p.id = b.object_id
			where b.entity = $1 and p.vif_details is not null)`, network.L2).Scan(&waits)
	if err != nil {
		return false, fmt.Errorf("look for ports that wait for a controller: %w", err)
	}
	return waits, nil
}
