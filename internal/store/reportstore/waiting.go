package reportstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// Party is the kind of party that objects wait for.
type Party string

// The kinds of parties.
const (
	// the agents of an entity, on one host or on any host that serves a network
	Agent         Party = "agent"
	Host          Party = "host"          // a host on which no agent can bind the port
	Controller    Party = "controller"    // OpenDaylight
	EarlierEntry  Party = "entry"         // an earlier journal entry
	Administrator Party = "administrator" // an operator who must retry or skip failed journal entries
	Service       Party = "service"       // a service that berth calls for a reservation: Nova, Neutron, …
	Nova          Party = "nova"          // Nova, which has not got the event of a port yet
	RabbitMQ      Party = "rabbitmq"      // RabbitMQ, which has not got a notification for the agents yet
	Webhook       Party = "webhook"       // the webhook
	Temporal      Party = "temporal"      // Temporal, which has not got a note of the outbox yet
	// a worker that takes the overdue step of a lease, or the lease that holds the host
	Worker Party = "worker"
)

// WaitingGroup is a number of objects that wait for the same party.
type WaitingGroup struct {
	Party   Party
	Name    string // name of the entity or the service; empty if the kind of party says enough
	Host    string // host of the party; empty: any
	Objects string // kind of the waiting objects: port, trunk, journal entry, lease, …
	Count   int64
	Oldest  *time.Time // since when the first of the objects waits
	// more objects may wait, because the report counts at most MaxCounted objects from each table
	AtLeast bool
}

// MaxCounted is the maximum number of waiting objects that Waiting counts in each table.
const MaxCounted = 5000

// MaxGroups is the maximum number of groups that Waiting returns.
const MaxGroups = 200

// waitingSQL counts the waiting objects of each table. Each subquery reads at most $1 rows: a table that
// contains only waiting objects in any order, all other tables with a partial index on the waiting rows.
var waitingSQL = `
	select 'agent', entity, host, object_type, count(*), min(since)
	from (select entity, host, object_type, since from block limit $1) s
	group by entity, host, object_type
	union all
	select 'host', '', host, 'port', count(*), min(updated_at)
	from (select host, updated_at from port where vif = '` + network.VIFFailed + `' limit $1) s
	group by host
	union all
	select case when state = 'failed' then 'administrator' when blocked then 'entry' else 'controller' end, '', '', 'journal entry', count(*), min(created_at)
	from (
		select e.state, e.created_at, exists (select from journal_dep d where d.entry = e.seq) as blocked
		from journal_entry e
		where e.finished_at is null
		order by e.seq
		limit $1) s
	group by 1
	union all
	select 'service', party, '', 'reservation', count(*), min(since)
	from (select party, since from reservation_failure limit $1) s
	group by party
	union all
	select 'nova', '', '', 'event', count(*), min(created_at)
	from (select created_at from nova_event limit $1) s
	union all
	select 'rabbitmq', '', '', 'notification', count(*), min(at)
	from (select at from agent_notification where sent_at is null order by network_id, id limit $1) s
	union all
	select 'webhook', '', '', 'notification', count(*), min(at)
	from ((select at from provisioning_notification limit $1) union all (select at from lease_notification limit $1)) s
	union all
	select 'temporal', '', '', 'note', count(*), min(created_at)
	from (select created_at from note limit $1) s
	union all
	select 'worker', '', '', 'lease', count(*), min(at)
	from (
		select at
		from event
		where status = 'UNDONE' and event_type <> 'before_end_lease' and at < now()
		order by at
		limit $1) s`

// Waiting returns what waits for whom: the party for which objects wait the longest comes first.
func (s *Store) Waiting(ctx context.Context) ([]WaitingGroup, error) {
	groups, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[WaitingGroup], `
		select party, name, host, objects, waiting, oldest,
			sum(waiting) over (partition by case when party in ('controller', 'entry', 'administrator') then 'journal' else party end) >= $1
		from (`+waitingSQL+`) as w (party, name, host, objects, waiting, oldest)
		where waiting > 0
		order by oldest, party, name, host, objects
		limit $2`, MaxCounted, MaxGroups)
	if err != nil {
		return nil, fmt.Errorf("count what waits: %w", err)
	}
	return groups, nil
}
