package networkstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
)

var agentSelect = `
	select id, agent_type, host, binary_name, topic, description, admin_up, heartbeat_at > clock_timestamp() - $1::interval,
		configurations, created_at, started_at, heartbeat_at,
		case
			when agent_type = '` + network.DHCPAgent + `' then (select count(*) from dhcp_binding d where d.agent_id = agent.id)
			when agent_type in ` + l2Agents + ` then (select count(*) from port p where p.host = agent.host and p.vif not in ('unbound', 'binding_failed'))
			else 0 end,
		case
			when agent_type = '` + network.DHCPAgent + `' then (
				select count(*)
				from dhcp_binding d
				join port p on p.network_id = d.network_id
				join block b on b.object_id = p.id and b.entity = 'DHCP'
				where d.agent_id = agent.id)
			when agent_type in ` + l2Agents + ` then (
				select count(*)
				from port p
				join block b on b.object_id = p.id and b.entity = 'L2'
				where p.host = agent.host and b.host = agent.host)
			else 0 end
	from agent`

func scanAgent(row pgx.CollectableRow) (network.Agent, error) {
	var a network.Agent
	err := row.Scan(&a.ID, &a.Type, &a.Host, &a.Binary, &a.Topic, &a.Description, &a.AdminUp, &a.Alive, &a.Configurations,
		&a.CreatedAt, &a.StartedAt, &a.HeartbeatAt, &a.ServedCount, &a.AwaitingPorts)
	return a, err
}

var agentColumns = map[string]db.Column{
	"id":          {Expr: "agent.id", Cast: "uuid[]"},
	"type":        {Expr: "agent.agent_type", Cast: "text[]"},
	"host":        {Expr: "agent.host", Cast: "text[]"},
	"binary":      {Expr: "agent.binary_name", Cast: "text[]"},
	"topic":       {Expr: "agent.topic", Cast: "text[]"},
	"description": {Expr: "agent.description", Cast: "text[]"},
	"admin_up":    {Expr: "agent.admin_up", Cast: "boolean[]"},
	"alive":       {Expr: "(heartbeat_at > clock_timestamp() - $1::interval)", Cast: "boolean[]"},
	"network":     {Test: "exists (select from dhcp_binding d where d.agent_id = agent.id and d.network_id = any(%s))", Cast: "uuid[]", Unsorted: true},
}

// Agents lists agents.
func (s *Store) Agents(ctx context.Context, q db.Listing) ([]network.Agent, error) {
	l := db.ListQuery{Columns: agentColumns, Table: "agent", Args: []any{network.AgentDownTime}}
	q.Project = ""
	clauses, err := l.Clauses(q, "")
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, agentSelect+clauses, l.Args...)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	agents, err := pgx.CollectRows(rows, scanAgent)
	return db.Page(agents, q), err
}

// Agent reads one agent.
func (s *Store) Agent(ctx context.Context, id uuid.UUID) (network.Agent, error) {
	return agentByID(ctx, s.db, id)
}

func agentByID(ctx context.Context, q db.Querier, id uuid.UUID) (network.Agent, error) {
	return db.QueryOne(ctx, q, scanAgent, missingAgent(id), agentSelect+` where id = $2`, network.AgentDownTime, id)
}

func missingAgent(id uuid.UUID) error {
	return missing(network.NotFound(network.AgentNotFound, "Agent", id))
}

// UpdateAgent changes what an operator may change of an agent.
func (s *Store) UpdateAgent(ctx context.Context, id uuid.UUID, c network.AgentChange) (network.Agent, error) {
	var a network.Agent
	err := s.inTx(ctx, func(tx *transaction) error {
		_, err := tx.Exec(ctx, `
			update agent
			set admin_up = coalesce($2, admin_up), description = coalesce($3, description)
			where id = $1`, id, c.AdminUp, c.Description)
		if err != nil {
			return fmt.Errorf("update agent: %w", err)
		}
		if a, err = agentByID(ctx, tx, id); err != nil || c.AdminUp == nil {
			return err
		}
		if err := announceAgent(ctx, tx, a); err != nil {
			return err
		}
		if a.Type == network.DHCPAgent {
			if err := tell(ctx, tx, waitingFor, a.ID); err != nil {
				return err
			}
		}
		if !*c.AdminUp {
			return nil
		}
		if a.Type == network.DHCPAgent {
			return adopt(ctx, tx, a.Host)
		}
		return bindOn(ctx, tx, a.Type, a.Host)
	})
	return a, err
}

// bindOn binds the ports on a host that could not be bound for the lack of an agent that wires them, if that agent is
// one and no operator has disabled it.
func bindOn(ctx context.Context, tx *transaction, kind, host string) error {
	if !slices.Contains(network.L2AgentTypes(), kind) {
		return nil
	}
	return lookAt(ctx, tx, `
		select id
		from port
		where host = $1 and vif = 'binding_failed' and exists (select from agent a where a.agent_type = $2 and a.host = $1 and a.admin_up)
		order by id`, host, kind)
}

// ReportState is an agent's heartbeat: its first one registers it. It answers what that made of the agent. Ports
// on the host of an agent that wires them, and could not be bound for the lack of it, are bound now. A DHCP agent
// that has come, or come back, takes the networks that no agent hosts, and every one its share of those whose agents
// have fallen silent.
func (s *Store) ReportState(ctx context.Context, st network.AgentState) (string, error) {
	var result string
	err := s.inTx(ctx, func(tx *transaction) error {
		var err error
		var silent time.Duration
		if result, silent, err = heartbeat(ctx, tx, st); err != nil {
			return fmt.Errorf("heartbeat of %s on %s: %w", st.Type, st.Host, err)
		}
		switch {
		case result == network.AgentRevived && st.ResourceVersions == nil && st.Type != network.DHCPAgent:
			// It has run all the time and goes on believing what it knows, but for what it is told.
			if err := retell(ctx, tx, silent+network.AgentDownTime); err != nil {
				return err
			}
		case st.Type == network.DHCPAgent:
			return serve(ctx, tx, st.Host, result != network.AgentAlive)
		}
		return bindOn(ctx, tx, st.Type, st.Host)
	})
	return result, err
}

// serve has the DHCP agent on that host take the networks that are left to it, and no port wait for its word if it never
// gives one.
func serve(ctx context.Context, tx *transaction, host string, came bool) error {
	if came {
		if err := adopt(ctx, tx, host); err != nil {
			return err
		}
	}
	if err := inherit(ctx, tx, host); err != nil {
		return err
	}
	return excuse(ctx, tx, host)
}

// heartbeat takes one down, and tells what it makes of the agent, and for how long that has been silent.
func heartbeat(ctx context.Context, tx *transaction, st network.AgentState) (result string, silent time.Duration, err error) {
	var registered, alive bool
	var versions any
	if st.ResourceVersions != nil {
		versions = encoded(st.ResourceVersions)
	}
	err = tx.QueryRow(ctx, `
		insert into agent as a (id, agent_type, host, binary_name, topic, configurations, admin_up, versions, heartbeat_at)
		values ($1, $2, $3, $4, $5, $6, $7, coalesce($8::jsonb, '{}'), clock_timestamp())
		on conflict on constraint agent_identity do nothing
		returning true`,
		uuid.New(), st.Type, st.Host, st.Binary, st.Topic, st.Configurations, !tx.config.DisableNewAgents, versions).Scan(&registered)
	if err == nil {
		return network.AgentNew, 0, nil
	}
	if !db.NoRows(err) {
		return "", 0, err
	}
	if err := tx.QueryRow(ctx, `
		select heartbeat_at > clock_timestamp() - $3::interval, clock_timestamp() - heartbeat_at
		from agent
		where agent_type = $1 and host = $2
		for no key update`, st.Type, st.Host, network.AgentDownTime).Scan(&alive, &silent); err != nil {
		return "", 0, err
	}
	if _, err := tx.Exec(ctx, `
		update agent
		set binary_name = $3, topic = $4, configurations = $5, heartbeat_at = clock_timestamp(),
			started_at = case when $6 then started_at else clock_timestamp() end, versions = coalesce($7::jsonb, versions)
		where agent_type = $1 and host = $2`, st.Type, st.Host, st.Binary, st.Topic, st.Configurations, alive, versions); err != nil {
		return "", 0, err
	}
	if alive {
		return network.AgentAlive, silent, nil
	}
	return network.AgentRevived, silent, nil
}

// DeleteAgent forgets an agent. The networks that it hosted go to others; where there is none, no port waits for DHCP
// any more. A port that waits for it to be wired goes on waiting, and says that nobody is there to do it.
func (s *Store) DeleteAgent(ctx context.Context, id uuid.UUID) error {
	return s.inTx(ctx, func(tx *transaction) error {
		if _, err := tx.Exec(ctx, `select from agent where id = $1 for update`, id); err != nil {
			return fmt.Errorf("lock agent: %w", err)
		}
		a, err := agentByID(ctx, tx, id)
		if err != nil {
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
			if err := rehost(ctx, tx, n, id); err != nil {
				return err
			}
		}
		return tell(ctx, tx, `exists (select from block b where b.object_id = port.id and b.host = $1) and host = $1`, a.Host)
	})
}

// waitingFor are the ports that wait for the DHCP agent with the ID $1.
const waitingFor = `
	network_id in (select network_id from dhcp_binding where agent_id = $1)
		and exists (select from block b where b.object_id = port.id and b.entity = '` + network.DHCP + `')`

// tell has the workflows of those ports look at what they wait for, of which nothing has changed but what is known of who owes it.
func tell(ctx context.Context, tx *transaction, those string, args ...any) error {
	rows, err := tx.Query(ctx, portSelect+portFrom+` where `+those, args...)
	if err != nil {
		return fmt.Errorf("find ports: %w", err)
	}
	ports, err := pgx.CollectRows(rows, scanPort)
	if err != nil {
		return fmt.Errorf("find ports: %w", err)
	}
	nudges := make([]contract.Nudge, len(ports))
	for i, p := range ports {
		nudges[i] = portNudge(p, false)
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}
