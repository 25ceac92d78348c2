package networkstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/notificationstore"
)

// EnqueueNotifications records agent notifications in the caller's transaction. A notification without a
// network gets the queue of its resource. EnqueueNotifications does nothing if the configuration disables
// agent notifications.
func EnqueueNotifications(ctx context.Context, tx *Transaction, all ...network.AgentNotification) error {
	if !tx.config.NotifyAgents {
		return nil
	}
	for i, a := range all {
		if a.Network == uuid.Nil {
			all[i].Network = network.NotificationQueue(a.Resource, "")
		}
	}
	return notificationstore.Append(ctx, tx, all...)
}

// requestReplay requests that the notifications of the last `within` are sent again. requestReplay does
// nothing if the configuration disables agent notifications.
func requestReplay(tx *Transaction, within time.Duration) {
	if tx.config.NotifyAgents {
		notificationstore.RequestReplay(tx, within)
	}
}

// enqueueChangeNotifications enqueues agent notifications about the objects of journal changes, except for
// ports: what follows from the write of a port includes its notification.
func enqueueChangeNotifications(ctx context.Context, tx *Transaction, changes []journal.Change) error {
	if !tx.config.NotifyAgents {
		return nil
	}
	events := map[journal.Operation]string{
		journal.Create: network.EventCreated,
		journal.Update: network.EventUpdated,
		journal.Delete: network.EventDeleted,
	}
	kinds := []string{
		network.ResourceNetwork,
		network.ResourceSubnet,
		network.ResourceSecurityGroup,
		network.ResourceSecurityGroupRule,
	}
	var all []network.AgentNotification
	for _, c := range changes {
		id, err := uuid.Parse(c.Object.ID)
		if err != nil || !slices.Contains(kinds, c.Object.Type) {
			continue
		}
		var parent struct {
			Network uuid.UUID `json:"network_id"`
		}
		if err := json.Unmarshal(c.Data, &parent); err != nil {
			return fmt.Errorf("enqueue notifications: %w", err)
		}
		a := network.AgentNotification{
			Network:    parent.Network,
			Resource:   c.Object.Type,
			Event:      events[c.Operation],
			ResourceID: id,
		}
		switch a.Resource {
		case network.ResourceNetwork:
			a.Network = id
		case network.ResourceSecurityGroup, network.ResourceSecurityGroupRule:
			a.Network, a.Project = network.NotificationQueue(a.Resource, c.Project), c.Project
		}
		if a.Event == network.EventDeleted {
			a.Data = c.Data
		}
		all = append(all, a)
	}
	return EnqueueNotifications(ctx, tx, all...)
}

// enqueueHostingNotifications runs a statement that changes DHCP bindings, and enqueues a notification for
// each changed binding. The statement must return a row with the network ID and the agent's host for each
// changed binding. enqueueHostingNotifications returns the number of changed bindings.
func enqueueHostingNotifications(
	ctx context.Context,
	tx *Transaction,
	event, statement string,
	args ...any,
) (int, error) {
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (network.AgentNotification, error) {
		a := network.AgentNotification{Resource: network.ResourceDHCPHosting, Event: event}
		var hosting network.DHCPAgentHost
		err := row.Scan(&a.Network, &hosting.Host)
		a.ResourceID, a.Data = a.Network, db.EncodeJSON(hosting)
		return a, err
	})
	if err != nil {
		return 0, err
	}
	return len(all), EnqueueNotifications(ctx, tx, all...)
}

// enqueueAgentNotification enqueues a notification that tells a DHCP agent that an operator has enabled or
// disabled the agent. The DHCP agent then synchronizes all its networks.
func enqueueAgentNotification(ctx context.Context, tx *Transaction, a network.Agent) error {
	if a.Type != network.DHCPAgent {
		return nil
	}
	return EnqueueNotifications(ctx, tx, network.AgentNotification{
		Resource:   network.ResourceDHCPAgent,
		Event:      network.EventUpdated,
		ResourceID: a.ID,
		Data:       db.EncodeJSON(network.DHCPAgentHost{Host: a.Host, AdminUp: a.AdminUp}),
	})
}

// versionsDownTime is how old the last heartbeat of an agent may be while the versions of the agent count. As
// in Neutron, it is twice AgentDownTime. When the agent is alive again, the notifications are repeated.
const versionsDownTime = 2 * network.AgentDownTime

// ObjectVersions returns, by object type, the versions of the object type that agents accept. An agent counts
// if it is enabled and its last heartbeat is hardly older than the newest one of all agents: while no
// heartbeats are stored at all, the same agents count as before.
func (s *Store) ObjectVersions(ctx context.Context) (map[string][]string, error) {
	rows, err := s.db.Query(ctx, `
		select v.key, array_agg(distinct v.value)
		from agent, jsonb_each_text(versions) as v
		where admin_up and heartbeat_at >= (
			select least(max(heartbeat_at), clock_timestamp()) - $1::interval
			from agent)
		group by v.key`, versionsDownTime)
	if err != nil {
		return nil, fmt.Errorf("read object versions: %w", err)
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

// ObjectVersion is a version of an object type that the agents of a host accept.
type ObjectVersion struct{ Host, Type, Version string }

// ObjectVersionsOnHosts returns the versions that the agents of the hosts have registered.
func (s *Store) ObjectVersionsOnHosts(ctx context.Context, hosts []string) ([]ObjectVersion, error) {
	versions, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[ObjectVersion], `
		select distinct host, v.key, v.value
		from agent, jsonb_each_text(versions) as v
		where host = any($1)`, hosts)
	if err != nil {
		return nil, fmt.Errorf("read object versions: %w", err)
	}
	return versions, nil
}
