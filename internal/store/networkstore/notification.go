package networkstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/outbox"
)

// announce leaves announcements in the caller's transaction, if agents are told of anything, and nudges who brings them out.
func announce(ctx context.Context, tx *transaction, all ...network.AgentNotification) error {
	if !tx.config.NotifyAgents || len(all) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	var nudges []contract.Nudge
	for _, a := range all {
		if a.Data == nil {
			a.Data = json.RawMessage(`null`)
		}
		batch.Queue(`
			insert into announcement (network_id, kind, event, object_id, data)
			values ($1, $2, $3, $4, $5)`, a.Network, a.Resource, a.Event, a.ResourceID, a.Data)
		n := announcementNudge(a.Network)
		if !slices.ContainsFunc(nudges, func(o contract.Nudge) bool { return o.ID == n.ID }) {
			nudges = append(nudges, n)
		}
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}

// announceChanges announces what is recorded for the controller too. Updates of ports are announced where they are written.
func announceChanges(ctx context.Context, tx *transaction, changes []journal.Change) error {
	if !tx.config.NotifyAgents {
		return nil
	}
	events := map[journal.Operation]string{journal.Create: network.EventCreated, journal.Update: network.EventUpdated, journal.Delete: network.EventDeleted}
	kinds := []string{network.ResourceNetwork, network.ResourceSubnet, network.ResourcePort, network.ResourceSecurityGroup, network.ResourceSecurityGroupRule}
	var all []network.AgentNotification
	for _, c := range changes {
		id, err := uuid.Parse(c.Object.ID)
		if err != nil || !slices.Contains(kinds, c.Object.Type) || c.Object.Type == network.ResourcePort && c.Operation == journal.Update {
			continue
		}
		var on struct {
			Network uuid.UUID `json:"network_id"`
		}
		if err := json.Unmarshal(c.Data, &on); err != nil {
			return fmt.Errorf("announce: %w", err)
		}
		a := network.AgentNotification{Network: on.Network, Resource: c.Object.Type, Event: events[c.Operation], ResourceID: id}
		if a.Resource == network.ResourceNetwork {
			a.Network = id
		}
		if a.Event == network.EventDeleted {
			a.Data = c.Data
		}
		all = append(all, a)
	}
	return announce(ctx, tx, all...)
}

// announcePort announces what became of a port.
func announcePort(ctx context.Context, tx *transaction, before, after network.Port) error {
	return announce(ctx, tx, ofPort(before, after))
}

func ofPort(before, after network.Port) network.AgentNotification {
	event := network.EventUpdated
	if before.MAC != after.MAC || !slices.Equal(before.Addresses, after.Addresses) || !same(before.DHCPOptions, after.DHCPOptions) {
		event = network.EventDHCPUpdated
	}
	return network.AgentNotification{Network: after.Network, Resource: network.ResourcePort, Event: event, ResourceID: after.ID,
		Data: encoded(network.SideEffectsOf(before, after))}
}

// announceHosting announces that DHCP agents host networks, or host them no longer. The statement returns pairs of the two.
func announceHosting(ctx context.Context, tx *transaction, event, statement string, args ...any) (int, error) {
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (network.AgentNotification, error) {
		a := network.AgentNotification{Resource: network.ResourceDHCPHosting, Event: event}
		var at network.DHCPAgentHost
		err := row.Scan(&a.Network, &at.Host)
		a.ResourceID, a.Data = a.Network, encoded(at)
		return a, err
	})
	if err != nil {
		return 0, err
	}
	return len(all), announce(ctx, tx, all...)
}

// announceAgent tells a DHCP agent that an operator has enabled or disabled it, upon which it looks at all its networks.
func announceAgent(ctx context.Context, tx *transaction, a network.Agent) error {
	if a.Type != network.DHCPAgent {
		return nil
	}
	return announce(ctx, tx, network.AgentNotification{Resource: network.ResourceDHCPAgent, Event: network.EventUpdated, ResourceID: a.ID,
		Data: encoded(network.DHCPAgentHost{Host: a.Host, AdminUp: a.AdminUp})})
}

// Announcements lists what agents shall be told of a network, oldest first, at most so many.
func (s *Store) Announcements(ctx context.Context, id uuid.UUID, limit int) ([]network.AgentNotification, error) {
	rows, err := s.db.Query(ctx, `
		select id, network_id, kind, event, object_id, data, clock_timestamp() - at
		from announcement
		where network_id = $1 and told_at is null
		order by id
		limit $2`, id, limit)
	if err != nil {
		return nil, fmt.Errorf("announcements of network %s: %w", id, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[network.AgentNotification])
	if err != nil {
		return nil, fmt.Errorf("announcements of network %s: %w", id, err)
	}
	return all, nil
}

// ObjectVersions tells in which versions agents want each type of object.
func (s *Store) ObjectVersions(ctx context.Context) (map[string][]string, error) {
	rows, err := s.db.Query(ctx, `
		select v.key, array_agg(distinct v.value)
		from agent, jsonb_each_text(versions) as v
		group by v.key`)
	if err != nil {
		return nil, fmt.Errorf("versions of objects: %w", err)
	}
	versions := map[string][]string{}
	var kind string
	var wanted []string
	_, err = pgx.ForEachRow(rows, []any{&kind, &wanted}, func() error {
		versions[kind] = slices.Clone(wanted)
		return nil
	})
	return versions, err
}
