package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
)

const agentSelect = `
	select id, agent_type, host, binary_name, topic, description, admin_up, heartbeat_at > clock_timestamp() - $1::interval,
		configurations, created_at, started_at, heartbeat_at
	from agent`

func scanAgent(row pgx.CollectableRow) (network.Agent, error) {
	var a network.Agent
	err := row.Scan(&a.ID, &a.Type, &a.Host, &a.Binary, &a.Topic, &a.Description, &a.AdminUp, &a.Alive, &a.Configurations,
		&a.CreatedAt, &a.StartedAt, &a.HeartbeatAt)
	return a, err
}

var agentColumns = map[string]column{
	"id":       {expr: "agent.id", cast: "uuid[]"},
	"type":     {expr: "agent.agent_type", cast: "text[]"},
	"host":     {expr: "agent.host", cast: "text[]"},
	"binary":   {expr: "agent.binary_name", cast: "text[]"},
	"topic":    {expr: "agent.topic", cast: "text[]"},
	"admin_up": {expr: "agent.admin_up", cast: "boolean[]"},
	"alive":    {expr: "(heartbeat_at > clock_timestamp() - $1::interval)", cast: "boolean[]"},
	"network":  {test: "exists (select from dhcp_binding d where d.agent_id = agent.id and d.network_id = any(%s))", cast: "uuid[]", unsorted: true},
}

// Agents lists agents.
func (s *Store) Agents(ctx context.Context, q Listing) ([]network.Agent, error) {
	l := listing{columns: agentColumns, table: "agent", args: []any{network.AgentDownTime}}
	q.Project = ""
	clauses, err := l.clauses(q, "")
	if err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, agentSelect+clauses, l.args...)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	agents, err := pgx.CollectRows(rows, scanAgent)
	return page(agents, q), err
}

// Agent reads one agent.
func (s *Store) Agent(ctx context.Context, id uuid.UUID) (network.Agent, error) {
	return agentByID(ctx, s.pool, id)
}

func agentByID(ctx context.Context, q querier, id uuid.UUID) (network.Agent, error) {
	return one(ctx, q, scanAgent, missingAgent(id), agentSelect+` where id = $2`, network.AgentDownTime, id)
}

func missingAgent(id uuid.UUID) error {
	return missing(network.Missing(network.AgentNotFound, "Agent", id))
}

// UpdateAgent changes what an operator may change of an agent.
func (s *Store) UpdateAgent(ctx context.Context, id uuid.UUID, c network.AgentChange) (network.Agent, error) {
	var a network.Agent
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update agent
			set admin_up = coalesce($2, admin_up), description = coalesce($3, description)
			where id = $1`, id, c.AdminUp, c.Description)
		if err != nil {
			return fmt.Errorf("update agent: %w", err)
		}
		a, err = agentByID(ctx, tx, id)
		return err
	})
	return a, err
}

// ReportState is an agent's heartbeat: its first one registers it. It answers what that made of the agent. Ports
// on the host of an Open vSwitch agent that could not be bound for the lack of one are bound now.
func (s *Store) ReportState(ctx context.Context, st network.State) (string, error) {
	var result string
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var err error
		if result, err = heartbeat(ctx, tx, st); err != nil {
			return fmt.Errorf("heartbeat of %s on %s: %w", st.Type, st.Host, err)
		}
		if st.Type != network.OVSAgent {
			return nil
		}
		return lookAt(ctx, tx, `
			select id
			from port
			where host = $1 and vif = 'binding_failed'
			order by id`, st.Host)
	})
	return result, err
}

func heartbeat(ctx context.Context, tx pgx.Tx, st network.State) (string, error) {
	var registered, alive bool
	err := tx.QueryRow(ctx, `
		insert into agent as a (id, agent_type, host, binary_name, topic, configurations, heartbeat_at)
		values ($1, $2, $3, $4, $5, $6, clock_timestamp())
		on conflict on constraint agent_identity do nothing
		returning true`,
		uuid.New(), st.Type, st.Host, st.Binary, st.Topic, st.Configurations).Scan(&registered)
	if err == nil {
		return network.AgentNew, nil
	}
	if !none(err) {
		return "", err
	}
	if err := tx.QueryRow(ctx, `
		select heartbeat_at > clock_timestamp() - $3::interval
		from agent
		where agent_type = $1 and host = $2
		for no key update`, st.Type, st.Host, network.AgentDownTime).Scan(&alive); err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, `
		update agent
		set binary_name = $3, topic = $4, configurations = $5, heartbeat_at = clock_timestamp(),
			started_at = case when $6 then started_at else clock_timestamp() end
		where agent_type = $1 and host = $2`, st.Type, st.Host, st.Binary, st.Topic, st.Configurations, alive); err != nil {
		return "", err
	}
	if alive {
		return network.AgentAlive, nil
	}
	return network.AgentRevived, nil
}

// DeleteAgent forgets an agent and the networks that it hosted; no port waits for it any more.
func (s *Store) DeleteAgent(ctx context.Context, id uuid.UUID) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from agent where id = $1 for update`, id); err != nil {
			return fmt.Errorf("lock agent: %w", err)
		}
		if _, err := agentByID(ctx, tx, id); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			select n.id
			from network n
			join dhcp_binding d on d.network_id = n.id
			where d.agent_id = $1
			order by n.id
			for no key update of n`, id)
		if err != nil {
			return fmt.Errorf("delete agent: %w", err)
		}
		hosted, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return fmt.Errorf("delete agent: %w", err)
		}
		if _, err := tx.Exec(ctx, `delete from agent where id = $1`, id); err != nil {
			return fmt.Errorf("delete agent: %w", err)
		}
		for _, n := range hosted {
			if err := review(ctx, tx, n); err != nil {
				return err
			}
		}
		return nil
	})
}
