package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/network"
)

// schedule gives a network that no DHCP agent hosts to the live one that hosts the fewest, if there is one. The
// advisory lock lets only one of those who create ports on the network do it.
func schedule(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
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
	if _, err := tx.Exec(ctx, `
		insert into dhcp_binding (network_id, agent_id)
		select $1, a.id
		from agent a
		where a.agent_type = $2 and a.admin_up and a.heartbeat_at > clock_timestamp() - $3::interval
			and not exists (select from dhcp_binding where network_id = $1)
		order by (select count(*) from dhcp_binding d where d.agent_id = a.id), a.id
		limit 1
		on conflict do nothing`, id, network.DHCPAgent, network.AgentDownTime); err != nil {
		return fmt.Errorf("schedule network: %w", err)
	}
	return nil
}

// HostedNetworks lists the networks that a DHCP agent hosts.
func (s *Store) HostedNetworks(ctx context.Context, agent uuid.UUID) ([]network.Network, error) {
	if _, err := s.Agent(ctx, agent); err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, networkSelect+`
		where id in (select network_id from dhcp_binding where agent_id = $1)
		order by id`, agent)
	if err != nil {
		return nil, fmt.Errorf("list hosted networks: %w", err)
	}
	return pgx.CollectRows(rows, scanNetwork)
}

// ScheduleNetwork has a DHCP agent host a network.
func (s *Store) ScheduleNetwork(ctx context.Context, agent, id uuid.UUID) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		a, err := agentByID(ctx, tx, agent)
		if err != nil {
			return err
		}
		if a.Type != network.DHCPAgent || !a.AdminUp {
			return network.Faultf(network.NotDHCPAgent, "Agent %s is not a valid DHCP Agent or has been disabled", agent)
		}
		if _, err := lockNetwork(ctx, tx, id, changing); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			insert into dhcp_binding (network_id, agent_id)
			values ($1, $2)
			on conflict do nothing`, id, agent)
		if err != nil {
			return fmt.Errorf("schedule network: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return network.Faultf(network.AlreadyHosted, "The network %s has been already hosted by the DHCP Agent %s.", id, agent)
		}
		return nil
	})
}

// UnscheduleNetwork takes a network from a DHCP agent. Without any, no port of it waits for DHCP.
func (s *Store) UnscheduleNetwork(ctx context.Context, agent, id uuid.UUID) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := agentByID(ctx, tx, agent); err != nil {
			return err
		}
		if _, err := lockNetwork(ctx, tx, id, changing); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `delete from dhcp_binding where network_id = $1 and agent_id = $2`, id, agent)
		if err != nil {
			return fmt.Errorf("unschedule network: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return network.Faultf(network.NotHosted, "The network %s is not hosted by the DHCP agent %s.", id, agent)
		}
		return review(ctx, tx, id)
	})
}
