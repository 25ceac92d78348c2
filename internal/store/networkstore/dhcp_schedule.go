package networkstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
)

// scheduleNetwork assigns a network that no DHCP agent serves to a DHCP agent: of the live, enabled agents in
// the availability zones that the network requests, it chooses the one that serves the fewest networks. It
// never chooses the agent `besides`. An advisory lock serializes concurrent calls to scheduleNetwork for one
// network.
func scheduleNetwork(ctx context.Context, tx *transaction, id, besides uuid.UUID) error {
	if tx.config.NoDHCP {
		return nil
	}
	var due bool
	if err := tx.QueryRow(ctx, `select not exists (select from dhcp_binding where network_id = $1)`, id).Scan(&due); err != nil {
		return fmt.Errorf("schedule network: %w", err)
	}
	if !due {
		return nil
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dhcp ' || $1::text, 0))`, id.String()); err != nil {
		return fmt.Errorf("schedule network: %w", err)
	}
	if _, err := enqueueHostingNotifications(ctx, tx, network.EventCreated, `
		insert into dhcp_binding (network_id, agent_id)
		select $1, a.id
		from agent a, network n
		where n.id = $1 and a.agent_type = $2 and a.admin_up and a.heartbeat_at > clock_timestamp() - $3::interval and a.id <> $4
			and `+mayHost("a", "n", "$5")+`
			and not exists (select from dhcp_binding where network_id = $1)
		order by (select count(*) from dhcp_binding d where d.agent_id = a.id), a.id
		limit 1
		on conflict do nothing
		returning network_id, (select host from agent where id = agent_id)`, id, network.DHCPAgent, network.AgentDownTime, besides, tx.config.DefaultZones); err != nil {
		return fmt.Errorf("schedule network: %w", err)
	}
	return nil
}

// rescheduleNetwork assigns another DHCP agent to a network that the agent `from` no longer hosts, if a
// subnet of the network has DHCP enabled. The caller of rescheduleNetwork must hold the network's row lock.
func rescheduleNetwork(ctx context.Context, tx *transaction, id, from uuid.UUID) error {
	var served bool
	if err := tx.QueryRow(ctx, `select exists (select from subnet where network_id = $1 and dhcp)`, id).Scan(&served); err != nil {
		return fmt.Errorf("schedule network: %w", err)
	}
	if !served {
		return nil
	}
	return scheduleNetwork(ctx, tx, id, from)
}

// assignUnhostedNetworks assigns all networks that have DHCP but no DHCP agent to the DHCP agent on the host,
// if the agent is in an availability zone that the network requests.
func assignUnhostedNetworks(ctx context.Context, tx *transaction, host string) error {
	if tx.config.NoDHCP {
		return nil
	}
	if _, err := enqueueHostingNotifications(ctx, tx, network.EventCreated, `
		insert into dhcp_binding (network_id, agent_id)
		select n.id, a.id
		from network n, agent a
		where a.agent_type = $1 and a.host = $2 and a.admin_up and `+mayHost("a", "n", "$3")+`
			and exists (select from subnet s where s.network_id = n.id and s.dhcp)
			and not exists (select from dhcp_binding d where d.network_id = n.id)
		order by n.id
		on conflict do nothing
		returning network_id, (select host from agent where id = agent_id)`, network.DHCPAgent, host, tx.config.DefaultZones); err != nil {
		return fmt.Errorf("assign unhosted networks: %w", err)
	}
	return nil
}

// takeOverNetworks assigns a share of the networks whose DHCP agents are all down to the DHCP agent on the
// host. The agent's share is the number of networks whose DHCP agents are all down, divided by the number of
// live DHCP agents, rounded up. takeOverNetworks runs with each heartbeat of a DHCP agent. takeOverNetworks
// sends no notification to the agents that are down, because a revived DHCP agent synchronizes all its
// networks.
func takeOverNetworks(ctx context.Context, tx *transaction, host string) error {
	if tx.config.NoDHCP {
		return nil
	}
	if _, err := enqueueHostingNotifications(ctx, tx, network.EventCreated, `
		with living as materialized (
			select id, host, availability_zone
			from agent
			where agent_type = $1 and admin_up and heartbeat_at > clock_timestamp() - $3::interval),
		left_behind as (
			select d.network_id, d.agent_id
			from dhcp_binding d
			join agent a on a.id = d.agent_id
			join network n on n.id = d.network_id
			where a.heartbeat_at <= clock_timestamp() - $3::interval
				and exists (select from living where living.host = $2 and `+mayHost("living", "n", "$4")+`)
				and not exists (
					select from dhcp_binding o
					join agent l on l.id = o.agent_id
					where o.network_id = d.network_id and l.heartbeat_at > clock_timestamp() - $3::interval)
			for update of d skip locked),
		share as (
			select network_id
			from left_behind
			group by network_id
			order by network_id
			limit (select ceil(count(distinct network_id)::numeric / (select greatest(count(*), 1) from living)) from left_behind)),
		gone as (
			delete from dhcp_binding d
			using left_behind b
			where d.network_id = b.network_id and d.agent_id = b.agent_id and d.network_id in (select network_id from share))
		insert into dhcp_binding (network_id, agent_id)
		select share.network_id, living.id
		from share, living
		where living.host = $2
		on conflict do nothing
		returning network_id, $2`, network.DHCPAgent, host, network.AgentDownTime, tx.config.DefaultZones); err != nil {
		return fmt.Errorf("take over networks of down agents: %w", err)
	}
	return nil
}

// recheckNonReportingAgentPorts does nothing if the DHCP agent on the host reports ready ports. If the agent
// is configured not to report ready ports, recheckNonReportingAgentPorts rechecks the ports that wait for
// this agent. Ports wait for an agent that does not report if the agent has changed its configuration, or has
// taken over the network of the ports. A port that is created during the recheck is rechecked with the
// agent's next heartbeat.
func recheckNonReportingAgentPorts(ctx context.Context, tx *transaction, host string) error {
	return recheckPorts(ctx, tx, `
		select p.id
		from agent a
		join dhcp_binding d on d.agent_id = a.id
		join port p on p.network_id = d.network_id
		join block b on b.object_id = p.id and b.entity = $3
		where a.agent_type = $1 and a.host = $2 and not `+reportsPortReady("a")+`
		order by p.id`, network.DHCPAgent, host, network.DHCP)
}

// reportsPortReady is the SQL condition that a DHCP agent reports ready ports.
func reportsPortReady(agent string) string {
	return `(` + agent + `.configurations -> 'notifies_port_ready' is distinct from 'false')`
}

// HostedNetworks lists the networks that a DHCP agent hosts.
func (s *Store) HostedNetworks(ctx context.Context, agent uuid.UUID) ([]network.Network, error) {
	if _, err := s.Agent(ctx, agent); err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, networkSelect+`
		where id in (select network_id from dhcp_binding where agent_id = $1)
		order by id`, agent)
	if err != nil {
		return nil, fmt.Errorf("list hosted networks: %w", err)
	}
	return pgx.CollectRows(rows, scanNetwork)
}

// ScheduleNetwork assigns a network to a DHCP agent.
func (s *Store) ScheduleNetwork(ctx context.Context, agent, id uuid.UUID) error {
	return s.inTx(ctx, func(tx *transaction) error {
		a, err := agentByID(ctx, tx, agent)
		if err != nil {
			return err
		}
		if a.Type != network.DHCPAgent || !a.AdminUp {
			return network.Faultf(network.InvalidDHCPAgent,
				"Agent %s is not a valid DHCP Agent or has been disabled", agent)
		}
		if _, err := lockNetwork(ctx, tx, id, lockForChange); err != nil {
			return err
		}
		hosted, err := enqueueHostingNotifications(ctx, tx, network.EventCreated, `
			insert into dhcp_binding (network_id, agent_id)
			values ($1, $2)
			on conflict do nothing
			returning network_id, (select host from agent where id = agent_id)`, id, agent)
		if err != nil {
			return fmt.Errorf("schedule network: %w", err)
		}
		if hosted == 0 {
			return network.Faultf(network.NetworkHostedByDHCPAgent,
				"The network %s has been already hosted by the DHCP Agent %s.", id, agent)
		}
		return nil
	})
}

// UnscheduleNetwork removes a network from a DHCP agent and assigns the network to another DHCP agent. If no
// other DHCP agent can serve the network, the ports of the network no longer wait for DHCP.
func (s *Store) UnscheduleNetwork(ctx context.Context, agent, id uuid.UUID) error {
	return s.inTx(ctx, func(tx *transaction) error {
		if err := unscheduleNetwork(ctx, tx, agent, id); err != nil {
			return err
		}
		return recheckDHCPPorts(ctx, tx, id)
	})
}

// unscheduleNetwork locks a network, removes it from a DHCP agent, and assigns it to another DHCP agent.
func unscheduleNetwork(ctx context.Context, tx *transaction, agent, id uuid.UUID) error {
	if _, err := agentByID(ctx, tx, agent); err != nil {
		return err
	}
	if _, err := lockNetwork(ctx, tx, id, lockForChange); err != nil {
		return err
	}
	left, err := enqueueHostingNotifications(ctx, tx, network.EventDeleted, `
		delete from dhcp_binding
		where network_id = $1 and agent_id = $2
		returning network_id, (select host from agent where id = agent_id)`, id, agent)
	if err != nil {
		return fmt.Errorf("unschedule network: %w", err)
	}
	if left == 0 {
		return network.Faultf(network.NetworkNotHostedByDHCPAgent,
			"The network %s is not hosted by the DHCP agent %s.", id, agent)
	}
	return rescheduleNetwork(ctx, tx, id, agent)
}
