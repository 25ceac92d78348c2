package networkstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// ChooseDHCPAgent assigns a network that no DHCP agent serves to a DHCP agent: of the live, enabled agents in
// the availability zones that the network requests, it chooses the one that serves the fewest networks. It
// never chooses the agent `besides`. An advisory lock serializes concurrent calls to ChooseDHCPAgent for one
// network.
func ChooseDHCPAgent(ctx context.Context, tx *Transaction, id, besides uuid.UUID) error {
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

// RescheduleNetwork assigns another DHCP agent to a network that the agent `from` no longer hosts, if a
// subnet of the network has DHCP enabled. The caller of RescheduleNetwork must hold the network's row lock.
func RescheduleNetwork(ctx context.Context, tx *Transaction, id, from uuid.UUID) error {
	var served bool
	if err := tx.QueryRow(ctx, `select exists (select from subnet where network_id = $1 and dhcp)`, id).Scan(&served); err != nil {
		return fmt.Errorf("schedule network: %w", err)
	}
	if !served {
		return nil
	}
	return ChooseDHCPAgent(ctx, tx, id, from)
}

// AssignUnhostedNetworks assigns all networks that have DHCP but no DHCP agent to the DHCP agent on the host,
// if the agent is in an availability zone that the network requests.
func AssignUnhostedNetworks(ctx context.Context, tx *Transaction, host string) error {
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
// live DHCP agents, rounded up. takeOverNetworks runs with each heartbeat of a DHCP agent while a DHCP agent
// is down, because its cost grows with the number of networks. takeOverNetworks sends no notification to the
// agents that are down, because a revived DHCP agent synchronizes all its networks.
func takeOverNetworks(ctx context.Context, tx *Transaction, host string) error {
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
	return s.inTx(ctx, func(tx *Transaction) error {
		a, err := agentByID(ctx, tx, agent)
		if err != nil {
			return err
		}
		if a.Type != network.DHCPAgent || !a.AdminUp {
			return network.Faultf(network.InvalidDHCPAgent,
				"Agent %s is not a valid DHCP Agent or has been disabled", agent)
		}
		if _, err := LockNetwork(ctx, tx, id, LockForChange); err != nil {
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

// UnscheduleNetwork locks a network, removes it from a DHCP agent, and assigns it to another DHCP agent.
func UnscheduleNetwork(ctx context.Context, tx *Transaction, agent, id uuid.UUID) error {
	if _, err := agentByID(ctx, tx, agent); err != nil {
		return err
	}
	if _, err := LockNetwork(ctx, tx, id, LockForChange); err != nil {
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
	return RescheduleNetwork(ctx, tx, id, agent)
}

// DHCPHosts lists the hosts of the DHCP agents that serve a network.
func (s *Store) DHCPHosts(ctx context.Context, id uuid.UUID) ([]string, error) {
	return db.QueryAll(ctx, s.db, pgx.RowTo[string], `
		select a.host
		from dhcp_binding d
		join agent a on a.id = d.agent_id
		where d.network_id = $1
		order by a.host`, id)
}
