package networkstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/notificationstore"
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

// RecordHeartbeat writes the heartbeat and returns the resulting agent state. An agent gets the notifications
// that it missed, and a DHCP agent the networks that need one.
func RecordHeartbeat(ctx context.Context, tx *Transaction, st network.AgentState) (string, error) {
	h, err := writeHeartbeat(ctx, tx, st)
	if err != nil {
		return "", fmt.Errorf("record the heartbeat of the %s on host %s: %w", st.Type, st.Host, err)
	}
	switch {
	case h.result == network.AgentRevived && st.ResourceVersions == nil && st.Type != network.DHCPAgent:
		// An agent sends its ResourceVersions only when it starts. This agent has not restarted while it
		// counted as down, so it does not synchronize all its state, and needs the notifications that it
		// missed.
		return h.result, notificationstore.Replay(ctx, tx, h.silent+network.AgentDownTime)
	case st.Type == network.DHCPAgent:
		return h.result, assignNetworksToAgent(ctx, tx, st.Host, h)
	default:
		return h.result, nil
	}
}

// assignNetworksToAgent assigns networks that need a DHCP agent to the DHCP agent on the host.
func assignNetworksToAgent(ctx context.Context, tx *Transaction, host string, h heartbeat) error {
	if h.result != network.AgentAlive {
		if err := AssignUnhostedNetworks(ctx, tx, host); err != nil {
			return err
		}
	}
	if !h.someDown {
		return nil
	}
	return takeOverNetworks(ctx, tx, host)
}

// heartbeat is what a heartbeat has found.
type heartbeat struct {
	result   string        // the resulting agent state
	silent   time.Duration // since the previous heartbeat; 0 for a new agent
	someDown bool          // a DHCP agent may be down; only for a DHCP agent
}

// writeHeartbeat writes the heartbeat.
func writeHeartbeat(ctx context.Context, tx *Transaction, st network.AgentState) (h heartbeat, err error) {
	var alive bool
	args := pgx.NamedArgs{
		"id":             uuid.New(),
		"agent_type":     st.Type,
		"host":           st.Host,
		"binary_name":    st.Binary,
		"topic":          st.Topic,
		"zone":           st.Zone,
		"configurations": st.Configurations,
		"admin_up":       !tx.config.DisableNewAgents,
		"down_time":      network.AgentDownTime,
		"is_dhcp":        st.Type == network.DHCPAgent,
	}
	if st.ResourceVersions != nil {
		args["versions"] = db.EncodeJSON(st.ResourceVersions)
	}
	err = tx.QueryRow(ctx, `
		select heartbeat_at > clock_timestamp() - @down_time::interval, clock_timestamp() - heartbeat_at,
			@is_dhcp and exists (
				select from agent other
				where other.agent_type = @agent_type and other.heartbeat_at <= clock_timestamp() - @down_time::interval)
		from agent
		where agent_type = @agent_type and host = @host
		for no key update`, args).Scan(&alive, &h.silent, &h.someDown)
	if db.NoRows(err) {
		if registered, err := registerAgent(ctx, tx, st, args); registered || err != nil {
			return heartbeat{result: network.AgentNew, someDown: true}, err
		}
		return writeHeartbeat(ctx, tx, st) // a concurrent heartbeat has registered the agent
	}
	args["alive"], h.result = alive, network.AgentRevived
	if alive {
		h.result = network.AgentAlive
	}
	if err == nil {
		_, err = tx.Exec(ctx, `
			update agent
			set binary_name = @binary_name, topic = @topic, availability_zone = coalesce(nullif(@zone, ''), availability_zone), configurations = @configurations, heartbeat_at = clock_timestamp(),
				started_at = case when @alive then started_at else clock_timestamp() end, versions = coalesce(@versions::jsonb, versions)
			where agent_type = @agent_type and host = @host`, args)
	}
	return h, err
}

// registerAgent inserts a new agent, unless the host has network.MaxAgentsOfHost agents. The result is false
// if the agent exists.
func registerAgent(
	ctx context.Context,
	tx *Transaction,
	st network.AgentState,
	args pgx.NamedArgs,
) (registered bool, err error) {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('agents of ' || @host::text, 0))`, args); err != nil {
		return false, err
	}
	var count int
	if err := tx.QueryRow(ctx, `select count(*) from agent where host = @host and agent_type <> @agent_type`, args).Scan(&count); err != nil {
		return false, err
	}
	if count >= network.MaxAgentsOfHost {
		return false, network.TooManyAgents(st.Host)
	}
	tag, err := tx.Exec(ctx, `
		insert into agent (id, agent_type, host, binary_name, topic, availability_zone, configurations, admin_up, versions, heartbeat_at)
		values (@id, @agent_type, @host, @binary_name, @topic, @zone, @configurations, @admin_up, coalesce(@versions::jsonb, '{}'), clock_timestamp())
		on conflict on constraint agent_identity do nothing`, args)
	return tag.RowsAffected() == 1, err
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
