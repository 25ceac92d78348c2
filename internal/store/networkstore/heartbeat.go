package networkstore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/notificationstore"
)

// FailedBinding is the SQL condition that the binding of a port has failed, and that the agent wires the
// ports on the port's host, so that the agent's heartbeat binds the port again.
var FailedBinding = `(port.host = agent.host and port.vif = 'binding_failed' and agent.admin_up and agent.agent_type in ` + L2Agents + `)`

// ReportsPortReady returns the SQL condition that a DHCP agent with these configurations, an SQL expression,
// reports ready ports.
func ReportsPortReady(configurations string) string {
	return `(` + configurations + ` -> 'notifies_port_ready' is distinct from 'false')`
}

const (
	// heartbeatIsRecent is the SQL condition that an agent counts as alive.
	heartbeatIsRecent = `heartbeat_at > clock_timestamp() - @down_time::interval`
	// someDHCPAgentIsDown is the SQL condition that a DHCP agent is down, so that the others may take its
	// networks over. A DHCP agent that comes back is itself one that is down.
	someDHCPAgentIsDown = `
		exists (
			select from agent other
			where other.agent_type = '` + network.DHCPAgent + `' and other.heartbeat_at <= clock_timestamp() - @down_time::interval)`
	// setHeartbeat is the part of an update that writes a heartbeat.
	setHeartbeat = `
		set binary_name = @binary_name, topic = @topic, availability_zone = coalesce(nullif(@zone, ''), availability_zone),
			configurations = @configurations, heartbeat_at = clock_timestamp(), versions = coalesce(@versions::jsonb, versions)`
)

// heartbeatArgs returns the arguments of the statements that write a heartbeat.
func heartbeatArgs(st network.AgentState) pgx.NamedArgs {
	args := pgx.NamedArgs{
		"agent_type":     st.Type,
		"host":           st.Host,
		"binary_name":    st.Binary,
		"topic":          st.Topic,
		"zone":           st.Zone,
		"configurations": st.Configurations,
		"down_time":      network.AgentDownTime,
	}
	if st.ResourceVersions != nil {
		args["versions"] = db.EncodeJSON(st.ResourceVersions)
	}
	return args
}

// renewHeartbeat writes the heartbeat of an agent, and requests a replay, if nothing else follows from the
// heartbeat. Its result has a row then, which says whether the agent was alive before. Two heartbeats of one
// silent agent at once may both find that it was not.
var renewHeartbeat = `
		with renewed as (
			update agent` + setHeartbeat + `, started_at = case when before.alive then started_at else clock_timestamp() end
			from (
				select id, heartbeat_at, ` + heartbeatIsRecent + ` as alive
				from agent
				where agent_type = @agent_type and host = @host) before
			where agent.id = before.id
				and not exists (select from port where ` + FailedBinding + `)
				and (agent_type <> '` + network.DHCPAgent + `' or ` + ReportsPortReady(`@configurations::jsonb`) + ` and not ` + someDHCPAgentIsDown + `)
			returning before.alive, clock_timestamp() - before.heartbeat_at + @down_time::interval as within
		), requested as (
			` + notificationstore.ReplayRequest(`renewed where not alive and @misses_notifications::boolean`) + `)
		select alive from renewed`

// RenewHeartbeat writes the heartbeat of an agent in one statement, if nothing follows from the heartbeat but
// a replay of notifications: no port is bound again, and no network gets another DHCP agent. This is so for
// nearly all heartbeats of agents that are alive. It is also so for most agents that come back, so that all
// of them can come back at once. RenewHeartbeat returns AgentAlive or AgentRevived. Its result is empty, and
// it writes nothing, if more may follow. RecordHeartbeat is for every heartbeat.
func (s *Store) RenewHeartbeat(ctx context.Context, st network.AgentState) (result string, err error) {
	args := heartbeatArgs(st)
	args["misses_notifications"] = s.config.NotifyAgents && missesNotifications(st)
	err = s.db.InBatch(ctx, func(batch *pgx.Batch) {
		batch.Queue(renewHeartbeat, args).QueryRow(func(row pgx.Row) error {
			var alive bool
			if err := row.Scan(&alive); err != nil {
				return err
			}
			result = resultOf(alive)
			return nil
		})
	})
	if db.NoRows(err) {
		return "", nil
	}
	return result, wrapHeartbeat(st, err)
}

// missesNotifications reports whether an agent that comes back with this state needs the notifications that
// it has missed. An agent sends its ResourceVersions only when it starts, and then synchronizes all its
// state. So does a DHCP agent that was down.
func missesNotifications(st network.AgentState) bool {
	return st.ResourceVersions == nil && st.Type != network.DHCPAgent
}

// resultOf returns the result of a heartbeat of an agent that exists, which was alive before, or not.
func resultOf(alive bool) string {
	if alive {
		return network.AgentAlive
	}
	return network.AgentRevived
}

// RecordHeartbeat writes the heartbeat and returns the resulting agent state. An agent gets the notifications
// that it missed, and a DHCP agent the networks that need one.
func RecordHeartbeat(ctx context.Context, tx *Transaction, st network.AgentState) (string, error) {
	h, err := writeHeartbeat(ctx, tx, st)
	if err != nil {
		return "", wrapHeartbeat(st, err)
	}
	switch {
	case h.result == network.AgentRevived && missesNotifications(st):
		requestReplay(tx, h.silent+network.AgentDownTime)
		return h.result, nil
	case st.Type == network.DHCPAgent:
		return h.result, assignNetworksToAgent(ctx, tx, st.Host, h)
	default:
		return h.result, nil
	}
}

// wrapHeartbeat adds to an error whose heartbeat has failed.
func wrapHeartbeat(st network.AgentState, err error) error {
	if err != nil {
		err = fmt.Errorf("record the heartbeat of the %s on host %s: %w", st.Type, st.Host, err)
	}
	return err
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
	args := heartbeatArgs(st)
	err = tx.QueryRow(ctx, `
		select `+heartbeatIsRecent+`, clock_timestamp() - heartbeat_at, agent_type = '`+network.DHCPAgent+`' and `+someDHCPAgentIsDown+`
		from agent
		where agent_type = @agent_type and host = @host
		for no key update`, args).Scan(&alive, &h.silent, &h.someDown)
	if db.NoRows(err) {
		if registered, err := registerAgent(ctx, tx, st, args); registered || err != nil {
			return heartbeat{result: network.AgentNew, someDown: true}, err
		}
		return writeHeartbeat(ctx, tx, st) // a concurrent heartbeat has registered the agent
	}
	args["alive"], h.result = alive, resultOf(alive)
	if err == nil {
		_, err = tx.Exec(ctx, `
			update agent`+setHeartbeat+`, started_at = case when @alive then started_at else clock_timestamp() end
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
	args["id"], args["admin_up"] = uuid.New(), !tx.config.DisableNewAgents
	tag, err := tx.Exec(ctx, `
		insert into agent (id, agent_type, host, binary_name, topic, availability_zone, configurations, admin_up, versions, heartbeat_at)
		values (@id, @agent_type, @host, @binary_name, @topic, @zone, @configurations, @admin_up, coalesce(@versions::jsonb, '{}'), clock_timestamp())
		on conflict on constraint agent_identity do nothing`, args)
	return tag.RowsAffected() == 1, err
}
