// Package notificationstore stores the notifications to Neutron's agents, the events for Nova, and the
// provisioning notifications for the webhook. The package also stores which of them are unsent and which of
// these a process is sending now. The package keeps sent notifications to agents for some time so that they
// can be sent again, because RabbitMQ or an agent may lose them.
package notificationstore

import (
	"context"
	"encoding/json"
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

// retention is how long sent notifications are kept. An agent that was disconnected for longer does not
// receive the notifications that it missed.
const retention = time.Hour

// Store reads and writes notifications.
type Store struct{ db *db.DB }

// New returns a Store on a database.
func New(d *db.DB) *Store { return &Store{d} }

// withoutNetwork is the summary of a workflow that publishes notifications about no network.
const withoutNetwork = "agent notifications about the security groups of a project, tunnels or agents"

// Workflows lists the SQL queries for the networks, ports and trunks whose notifications are unsent.
var Workflows = []outbox.Source{
	{Workflow: contract.AgentNotifications, Rows: `
		select distinct 'agent-notifications/' || network_id,
			case when substr(network_id::text, 15, 1) = '5' then '` + withoutNetwork + `' else 'agent notifications about network ' || network_id end,
			jsonb_build_object('resource', 'agent-notification')
		from agent_notification
		where sent_at is null`},
	{Workflow: contract.Webhook, Rows: `
		select distinct on (object_id) 'webhook/' || object_id, 'webhooks of ' || (notification->>'object_type') || ' ' || object_id,
			jsonb_build_object('resource', 'webhook', 'project', notification->>'project_id')
		from provisioning_notification`},
}

// appendSQL inserts a notification in the place of the equal ones that are unsent. The claimed ones stay:
// only the process that sends them may send more of this network, so that an older state is never sent last.
// The statement skips locked rows, so that it waits for no other transaction; a notification may then be sent
// twice.
const appendSQL = `
	with equal as (
		select id, at, claimed_until
		from agent_notification
		where object_id = $4 and network_id = $1 and kind = $2 and event = $3 and data = $5 and sent_at is null
		for update skip locked),
	merged as (
		delete from agent_notification
		where id in (select id from equal where claimed_until is null or claimed_until < clock_timestamp()))
	insert into agent_notification (network_id, kind, event, object_id, data, at)
	values ($1, $2, $3, $4, $5, coalesce((select min(at) from equal), clock_timestamp()))`

// Append records notifications in the caller's transaction, and enqueues notes for the workflows that publish
// them. Append merges equal unsent notifications into one, because the messages of a notification contain the
// state of the object when they are sent: an agent that changes one object again and again would otherwise
// delay the notifications about all others. The merged notification gets a new ID, so that a process that is
// sending the old one, perhaps with the old state, does not mark the new one as sent. The merged notification
// is as old as the oldest one.
func Append(ctx context.Context, tx db.Tx, all ...network.AgentNotification) error {
	if len(all) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	var nudges []contract.Nudge
	for _, a := range all {
		if a.Data == nil {
			a.Data = json.RawMessage(`null`)
		}
		batch.Queue(appendSQL, a.Network, a.Resource, a.Event, a.ResourceID, a.Data)
		n := nudge(a.Network, a.Project)
		if !slices.ContainsFunc(nudges, func(o contract.Nudge) bool { return o.ID == n.ID }) {
			nudges = append(nudges, n)
		}
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("record notifications: %w", err)
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}

// nudge returns the nudge for the workflow that publishes the notifications of a network, or of a queue of
// network.NotificationQueue. The parameter `project` is the project of the security groups, if it is known.
func nudge(id uuid.UUID, project string) contract.Nudge {
	return contract.Nudge{
		Workflow:   contract.AgentNotifications,
		ID:         contract.AgentNotificationsID(id.String()),
		Summary:    "agent notifications about " + network.NotificationSubject(id.String(), project),
		Attributes: contract.Attributes{Project: project, Resource: "agent-notification"},
	}
}

const unsentSelect = `
	select id, network_id as network, '' as project, kind as resource, event, object_id as resource_id, data, clock_timestamp() - at as age,
		coalesce(claimed_until > clock_timestamp(), false) as claimed
	from agent_notification
	where network_id = $1 and sent_at is null
	order by id
	limit $2`

// Unsent lists at most `limit` unsent notifications of a network, oldest first.
func (s *Store) Unsent(ctx context.Context, id uuid.UUID, limit int) ([]network.AgentNotification, error) {
	return unsent(ctx, s.db, unsentSelect, id, limit)
}

func unsent(
	ctx context.Context,
	q db.Querier,
	sql string,
	id uuid.UUID,
	limit int,
) ([]network.AgentNotification, error) {
	all, err := db.QueryAll(ctx, q, pgx.RowToStructByName[network.AgentNotification], sql, id, limit)
	if err != nil {
		return nil, fmt.Errorf("list notifications of network %s: %w", id, err)
	}
	return all, nil
}

// Claim lists at most `limit` unsent notifications of a network, oldest first. If none of the listed
// notifications is claimed, Claim claims all of them for the duration `claim`; otherwise it claims none.
func (s *Store) Claim(
	ctx context.Context,
	id uuid.UUID,
	claim time.Duration,
	limit int,
) (all []network.AgentNotification, err error) {
	err = s.db.InTx(ctx, func(tx db.Tx) error {
		all, err = unsent(ctx, tx, unsentSelect+` for update`, id, limit)
		if err != nil ||
			slices.ContainsFunc(all, func(a network.AgentNotification) bool { return a.Claimed }) {
			return err
		}
		ids := make([]int64, len(all))
		for i, a := range all {
			ids[i] = a.ID
		}
		_, err = tx.Exec(
			ctx,
			`update agent_notification set claimed_until = clock_timestamp() + $2::interval where id = any($1)`,
			ids,
			claim,
		)
		return err
	})
	return all, err
}

// LateNetworks lists at most `limit` networks that have unsent, unclaimed notifications older than `age`, and
// whose workflow has a note that Temporal has not accepted yet. The network with the oldest notification
// comes first.
func (s *Store) LateNetworks(ctx context.Context, age time.Duration, limit int) ([]uuid.UUID, error) {
	all, err := db.QueryAll(ctx, s.db, pgx.RowTo[uuid.UUID], `
		select network_id
		from agent_notification
		where sent_at is null and at < clock_timestamp() - $1::interval and (claimed_until is null or claimed_until < clock_timestamp())
			and `+outbox.Exists(`'agent-notifications/' || network_id`)+`
		group by network_id
		order by min(id)
		limit $2`, age, limit)
	if err != nil {
		return nil, fmt.Errorf("list networks with late notifications: %w", err)
	}
	return all, nil
}

// MarkSent marks notifications as sent. Sent notifications are kept for `retention`, so that they can be
// replayed. While another transaction keeps some of the notifications locked, MarkSent waits for these, but
// has already marked the others.
func (s *Store) MarkSent(ctx context.Context, ids []int64) error {
	err := s.writeUnlockedFirst(ctx, "agent_notification", `
		update agent_notification
		set sent_at = clock_timestamp(), first_sent_at = coalesce(first_sent_at, clock_timestamp())`, ids)
	if err != nil {
		return fmt.Errorf("mark notifications sent: %w", err)
	}
	return nil
}

// writeUnlockedFirst runs the statement `write` for the rows of a table with the given IDs: first for the
// rows that no other transaction has locked, and then, with the usual wait for locks, for the others. If this
// wait ends without the locks, only the messages of the locked rows are sent again.
func (s *Store) writeUnlockedFirst(ctx context.Context, table, write string, ids []int64) error {
	write += ` where id in (select id from ` + table + ` where id = any($1) order by id for update`
	done, err := db.QueryAll(ctx, s.db, pgx.RowTo[int64], write+` skip locked) returning id`, ids)
	if err != nil || len(done) == len(ids) {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return slices.Contains(done, id) })
	_, err = s.db.ExecInTx(ctx, write+`)`, left)
	return err
}

// Trim deletes at most `limit` notifications that were sent longer than `retention` ago.
func (s *Store) Trim(ctx context.Context, limit int) (int64, error) {
	tag, err := s.db.Exec(ctx, `
		delete from agent_notification
		where id in (
			select id
			from agent_notification
			where sent_at < clock_timestamp() - $1::interval
			limit $2
			for update skip locked)`, retention, limit)
	if err != nil {
		return 0, fmt.Errorf("trim notifications: %w", err)
	}
	return tag.RowsAffected(), nil
}
