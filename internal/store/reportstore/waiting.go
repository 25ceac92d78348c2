package reportstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/network"
	"berth/internal/store/db"
)

// WaitingGroup is a number of objects that wait for the same party.
type WaitingGroup struct {
	Party   Party
	Name    string // name of the entity or the service; empty if the kind of party says enough
	Host    string // host of the party; empty: any
	Objects string // kind of the waiting objects: port, trunk, journal entry, lease, …
	Count   int64
	Oldest  *time.Time // since when the first of the objects waits
	// Longest is the object that waits the longest, or its workflow, as `starter why` names it: port/ID,
	// trunk/ID, journal/SEQ, agent-notifications/NETWORK, ….
	Longest string
	// more objects may wait, because the report counts at most MaxCounted objects from each table
	AtLeast     bool
	LongestName string // name of the port, trunk or lease in Longest; empty: it has none
	// SilentSince is the last heartbeat of the agents on Host if none of them can report because all of them
	// are silent; nil: an agent is alive, or the party is not an agent of one host.
	SilentSince *time.Time
}

// MaxCounted is the maximum number of waiting objects that Waiting counts in each table.
const MaxCounted = 5000

// MaxGroups is the maximum number of groups that Waiting returns.
const MaxGroups = 200

// waitingSQL counts the waiting objects of each table. Each subquery reads at most $1 rows: a table that
// contains only waiting objects in any order, all other tables with a partial index on the waiting rows.
var waitingSQL = `
	select 'agent', entity, host, object_type, count(*), min(since), object_type || '/' || (array_agg(object_id order by since))[1]
	from (select entity, host, object_type, object_id, since from block limit $1) s
	group by entity, host, object_type
	union all
	select 'host', '', host, 'port', count(*), min(updated_at), 'port/' || (array_agg(id order by updated_at))[1]
	from (select id, host, updated_at from port where vif = '` + network.VIFFailed + `' limit $1) s
	group by host
	union all
	select case when state = 'failed' then 'administrator' when blocked then 'entry' else 'controller' end, '', '', 'journal entry', count(*), min(created_at),
		'journal/' || min(seq)
	from (
		select e.seq, e.state, e.created_at, exists (select from journal_dep d where d.entry = e.seq) as blocked
		from journal_entry e
		where e.finished_at is null
		order by e.seq
		limit $1) s
	group by 1
	union all
	select 'service', party, '', 'reservation', count(*), min(since),
		'lease/' || (select lease_id from reservation where id = (array_agg(reservation_id order by since))[1])
	from (select reservation_id, party, since from reservation_failure limit $1) s
	group by party
	union all
	select 'nova', '', '', 'event', count(*), min(created_at), 'port/' || (array_agg(port_id order by created_at))[1]
	from (select port_id, created_at from nova_event limit $1) s
	union all
	select 'rabbitmq', '', '', 'notification', count(*), min(at), 'agent-notifications/' || (array_agg(network_id order by at))[1]
	from (select network_id, at from agent_notification where sent_at is null order by network_id, id limit $1) s
	union all
	select 'webhook', '', '', 'notification', count(*), min(at), 'webhook/' || (array_agg(object_id order by at))[1]
	from ((select object_id, at from provisioning_notification limit $1) union all (select lease_id, at from lease_notification limit $1)) s
	union all
	select 'temporal', '', '', 'note', count(*), min(created_at), (array_agg(workflow_id order by created_at))[1]
	from (select workflow_id, created_at from note limit $1) s
	union all
	select 'lease', holder, host, 'lease', count(*), min(since), 'lease/' || (array_agg(id order by start_at))[1]
	from (` + lateSQL(nextStartsSQL("$1")) + `) s
	group by holder, host
	union all
	select 'worker', '', '', 'lease', count(*), min(at), 'lease/' || (array_agg(lease_id order by at))[1]
	from (
		select lease_id, at
		from event
		where status = 'UNDONE' and event_type <> 'before_end_lease' and at < now()
		order by at
		limit $1) s`

// longestNameSQL is the name of the object that waits the longest in a group. PostgreSQL evaluates it for the
// groups of the result only.
const longestNameSQL = `
			case when party in ('agent', 'host', 'service', 'nova', 'lease', 'worker') then
				case split_part(longest, '/', 1)
				when 'port' then (select p.name from port p where p.id = split_part(longest, '/', 2)::uuid)
				when 'trunk' then (select t.name from trunk t where t.id = split_part(longest, '/', 2)::uuid)
				when 'lease' then (select l.name from lease l where l.id = split_part(longest, '/', 2)::uuid)
				end
			end`

// silentSQL is the last heartbeat of the agents that wire ports on the host of a group, or null if at least
// one of them is alive.
const silentSQL = `(
				select case when max(a.heartbeat_at) < now() - $3::interval then max(a.heartbeat_at) end
				from agent a
				where a.agent_type = any($4) and a.host = w.host)`

// Waiting returns what waits for whom: the party for which objects wait the longest comes first.
func (s *Store) Waiting(ctx context.Context) ([]WaitingGroup, error) {
	groups, err := db.QueryAll(ctx, s.db, pgx.RowToStructByPos[WaitingGroup], `
		select party, name, host, objects, waiting, oldest, coalesce(longest, ''),
			sum(waiting) over (partition by case when party in ('controller', 'entry', 'administrator') then 'journal' else party end) >= $1,
			coalesce(`+longestNameSQL+`, ''), case when party = 'agent' and name = '`+network.L2+`' then `+silentSQL+` end
		from (`+waitingSQL+`) as w (party, name, host, objects, waiting, oldest, longest)
		where waiting > 0
		order by oldest, party, name, host, objects
		limit $2`, MaxCounted, MaxGroups, network.AgentDownTime, network.L2AgentTypes())
	if err != nil {
		return nil, fmt.Errorf("count what waits: %w", err)
	}
	return groups, nil
}
