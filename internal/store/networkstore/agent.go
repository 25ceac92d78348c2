package networkstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// L2Agents are the agent types that wire ports, as an SQL list.
var L2Agents = "('" + strings.Join(network.L2AgentTypes(), "', '") + "')"

var agentSelect = `
	select id, agent_type as type, host, binary_name as binary, topic, description, admin_up, availability_zone as zone,
		heartbeat_at > clock_timestamp() - $1::interval as alive,
		configurations, created_at, started_at, heartbeat_at,
		case
			when agent_type = '` + network.DHCPAgent + `' then (select count(*) from dhcp_binding d where d.agent_id = agent.id)
			when agent_type in ` + L2Agents + ` then (select count(*) from port p where p.host = agent.host and p.vif not in ('unbound', 'binding_failed'))
			else 0 end as served_count,
		case
			when agent_type = '` + network.DHCPAgent + `' then (
				select count(*)
				from dhcp_binding d
				join port p on p.network_id = d.network_id
				join block b on b.object_id = p.id and b.entity = 'DHCP'
				where d.agent_id = agent.id)
			when agent_type in ` + L2Agents + ` then (
				select count(*)
				from port p
				join block b on b.object_id = p.id and b.entity = 'L2'
				where p.host = agent.host and b.host = agent.host)
			else 0 end as awaiting_ports
	from agent`

func scanAgent(row pgx.CollectableRow) (network.Agent, error) {
	return pgx.RowToStructByName[network.Agent](row)
}

var agentColumns = map[string]db.Column{
	"id": {Expr: "agent.id", Cast: "uuid[]"},
	"type": {
		Expr: "agent.agent_type",
		Test: "lower(agent.agent_type) = any(select lower(name) from unnest(%s) as name)",
		Cast: "text[]",
	},
	"host":        {Expr: "agent.host", Cast: "text[]"},
	"binary":      {Expr: "agent.binary_name", Cast: "text[]"},
	"topic":       {Expr: "agent.topic", Cast: "text[]"},
	"description": {Expr: "agent.description", Cast: "text[]"},
	"admin_up":    {Expr: "agent.admin_up", Cast: "boolean[]"},
	"zone":        {Expr: "agent.availability_zone", Cast: "text[]"},
	"alive":       {Expr: "(heartbeat_at > clock_timestamp() - $1::interval)", Cast: "boolean[]"},
	"network": {
		Test:     "exists (select from dhcp_binding d where d.agent_id = agent.id and d.network_id = any(%s))",
		Cast:     "uuid[]",
		Unsorted: true,
	},
}

// Agents lists agents. Unless the listing needs the field `configurations`, Agents does not read it.
func (s *Store) Agents(ctx context.Context, q db.Listing) ([]network.Agent, error) {
	l := db.ListQuery{Columns: agentColumns, Table: "agent", Args: []any{network.AgentDownTime}}
	q.Project = ""
	clauses, err := l.Clauses(q)
	if err != nil {
		return nil, err
	}
	columns := agentSelect
	if !q.Needs("configurations") {
		columns = strings.Replace(columns, "configurations,", "null::jsonb as configurations,", 1)
	}
	agents, err := db.QueryAll(ctx, s.db, scanAgent, columns+clauses, l.Args...)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	return db.Page(agents, q), nil
}

// Agent reads one agent.
func (s *Store) Agent(ctx context.Context, id uuid.UUID) (network.Agent, error) {
	return agentByID(ctx, s.db, id)
}

func agentByID(ctx context.Context, q db.Querier, id uuid.UUID) (network.Agent, error) {
	return db.QueryOne(ctx, q, scanAgent, agentNotFound(id),
		agentSelect+` where id = $2`, network.AgentDownTime, id)
}

func agentNotFound(id uuid.UUID) error {
	return NotFound(network.NotFound(network.AgentNotFound, "Agent", id))
}

// UpdateAgent changes an agent, and notifies the agent if the change sets the admin state.
func UpdateAgent(
	ctx context.Context,
	tx *Transaction,
	id uuid.UUID,
	c network.AgentChange,
) (network.Agent, error) {
	_, err := tx.Exec(ctx, `
		update agent
		set admin_up = coalesce($2, admin_up), description = coalesce($3, description)
		where id = $1`, id, c.AdminUp, c.Description)
	if err != nil {
		return network.Agent{}, fmt.Errorf("update agent: %w", err)
	}
	a, err := agentByID(ctx, tx, id)
	if err != nil || c.AdminUp == nil {
		return a, err
	}
	return a, enqueueAgentNotification(ctx, tx, a)
}

// DeleteAgent deletes an agent. DeleteAgent returns the agent, and the networks that the agent served as a
// DHCP agent, after it has locked the rows of these networks.
func DeleteAgent(
	ctx context.Context,
	tx *Transaction,
	id uuid.UUID,
) (a network.Agent, hosted []uuid.UUID, err error) {
	if _, err := tx.Exec(ctx, `select from agent where id = $1 for update`, id); err != nil {
		return a, nil, fmt.Errorf("lock agent: %w", err)
	}
	if a, err = agentByID(ctx, tx, id); err != nil {
		return a, nil, err
	}
	hosted, err = db.QueryAll(ctx, tx, pgx.RowTo[uuid.UUID], `
		select n.id
		from network n
		join dhcp_binding d on d.network_id = n.id
		where d.agent_id = $1
		order by n.id
		for no key update of n`, id)
	if err != nil {
		return a, nil, fmt.Errorf("delete agent: %w", err)
	}
	if _, err := tx.Exec(ctx, `delete from agent where id = $1`, id); err != nil {
		return a, nil, fmt.Errorf("delete agent: %w", err)
	}
	return a, hosted, nil
}
