package reportstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/network"
	"berth/internal/store/db"
)

// The times after which an object that makes no progress is overdue; lease.OverdueAfter is that of leases.
const (
	noteGrace  = 30 * time.Second // after the time at which a relay should have delivered a note
	entryGrace = 5 * time.Minute  // after the creation of a journal entry
	runGrace   = 10 * time.Minute // after the last step of a run, for example of a full sync
)

// OverdueKinds are the kinds of objects that can be overdue, in the order of the report.
var OverdueKinds = []string{"port", "trunk", "agent", "lease", "entry", "run", "note"}

// OverdueObject is an object whose time has passed.
type OverdueObject struct {
	Kind string
	// what `starter why` accepts, for example port/ID; for an agent its type and host; for a note its
	// workflow ID
	Object string
	Reason string    // for what the object waits
	DueAt  time.Time // when the object should have made progress, at the latest
	Count  int64     // overdue objects of the kind, at most MaxCounted
	For    time.Duration
}

// MaxWorst is the maximum number of objects of each kind that Overdue returns.
const MaxWorst = 5

// overdueSQL reads, for each kind, at most $1 objects that are overdue. Deadlines belong to blocks, so a port
// is overdue if one of its blocks is. While the journal is paused, its entries and runs wait because an
// administrator has decided so, and are not overdue.
var overdueSQL = `
	select object_type as kind, object_type || '/' || object_id as object,
		'it waits for ' || string_agg(entity || case host when '' then '' else ' on ' || host end, ' and ' order by entity) as reason, min(deadline) as due_at
	from (select object_type, object_id, entity, host, deadline from block where deadline < now() limit $1) b
	group by object_type, object_id
	union all
	(select 'agent', agent_type || ' on ' || host, 'it sends no heartbeat', heartbeat_at + $2::interval
	from agent
	where admin_up and heartbeat_at < now() - $2::interval
	limit $1)
	union all
	(select 'lease', 'lease/' || lease_id, event_type, at
	from event
	where status = 'UNDONE' and event_type <> 'before_end_lease' and at < now() - $3::interval
	order by at
	limit $1)
	union all
	(select 'entry', 'journal/' || seq,
		case when last_error <> '' then last_error when exists (select from journal_dep d where d.entry = e.seq) then 'it waits for an earlier entry' else state end,
		created_at + $4::interval
	from journal_entry e
	where finished_at is null and state <> 'failed' and created_at < now() - $4::interval and not exists (select from journal_pause)
	order by seq
	limit $1)
	union all
	(select 'run', 'odl/' || kind, note, updated_at + $5::interval
	from mirror_run
	where finished_at is null and updated_at < now() - $5::interval and not exists (select from journal_pause)
	limit $1)
	union all
	(select 'note', workflow_id, last_error, coalesce(first_due_at, due_at)
	from note
	where set_aside_at is null and coalesce(first_due_at, due_at) < now() - $6::interval
	limit $1)`

// Overdue returns the objects of each kind that are overdue for the longest time, the worst of each kind
// first, and how many objects of the kind are overdue.
func (s *Store) Overdue(ctx context.Context) ([]OverdueObject, error) {
	all, err := db.QueryAll(
		ctx,
		s.db,
		pgx.RowToStructByPos[OverdueObject],
		`
		select kind, object, reason, due_at, total, now() - due_at
		from (
			select kind, object, reason, due_at, count(*) over (partition by kind) as total,
				row_number() over (partition by kind order by due_at, object) as rank
			from (`+overdueSQL+`) as o
		) as ranked
		where rank <= $7
		order by array_position($8::text[], kind), rank`,
		MaxCounted,
		network.AgentDownTime,
		lease.OverdueAfter,
		entryGrace,
		runGrace,
		noteGrace,
		MaxWorst,
		OverdueKinds,
	)
	if err != nil {
		return nil, fmt.Errorf("list what is overdue: %w", err)
	}
	return all, nil
}
