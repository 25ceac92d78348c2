package reportstore_test

import (
	"crypto/md5"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/store/storetest"
)

// overdueRows inserts overdue objects of each kind, and beside each of them an object of the kind that is not
// overdue.
const overdueRows = `
	set local session_replication_role = replica;
	insert into block (object_id, entity, host, since, deadline, object_type)
	select md5(i::text)::uuid, e, 'cmp-1', now() - interval '1 hour', now() - i * interval '10 minutes', case i when 7 then 'trunk' else 'port' end
	from generate_series(1, 7) i, unnest(array['L2', 'DHCP']) e;
	insert into block (object_id, entity, host, since, deadline) values
		(md5('later')::uuid, 'L2', 'cmp-1', now(), now() + interval '1 minute'), (md5('ever')::uuid, 'L2', 'cmp-1', now() - interval '1 year', null);
	insert into agent (id, agent_type, host, binary_name, topic, admin_up, configurations, heartbeat_at) values
		(md5('silent')::uuid, 'DHCP agent', 'net-1', 'b', 't', true, '{}', now() - interval '10 minutes'),
		(md5('disabled')::uuid, 'DHCP agent', 'net-2', 'b', 't', false, '{}', now() - interval '10 minutes'),
		(md5('alive')::uuid, 'DHCP agent', 'net-3', 'b', 't', true, '{}', now() - interval '1 minute');
	insert into event (id, lease_id, event_type, at, status) values
		(gen_random_uuid(), md5('late')::uuid, 'start_lease', now() - interval '10 minutes', 'UNDONE'),
		(gen_random_uuid(), md5('late')::uuid, 'before_end_lease', now() - interval '10 minutes', 'UNDONE'),
		(gen_random_uuid(), md5('done')::uuid, 'start_lease', now() - interval '10 minutes', 'DONE'),
		(gen_random_uuid(), md5('due')::uuid, 'end_lease', now() - interval '1 second', 'UNDONE');
	insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, created_at, last_error, finished_at) values
		('port', 'a', 'create', '{}', '{}', 'p', '', 'pending', now() - interval '15 minutes', 'connection refused', null),
		('port', 'b', 'create', '{}', '{}', 'p', '', 'failed', now() - interval '15 minutes', '409', null),
		('port', 'c', 'create', '{}', '{}', 'p', '', 'completed', now() - interval '15 minutes', '', now()),
		('port', 'd', 'create', '{}', '{}', 'p', '', 'pending', now() - interval '1 minute', '', null);
	insert into mirror_run (kind, actor, reason, note, updated_at) values
		('full-sync', 'a', 'r', 'controller unavailable', now() - interval '20 minutes'), ('audit', 'a', 'r', '', now() - interval '1 minute');
	insert into note (workflow_id, workflow, fresh, summary, attributes, due_at, first_due_at, last_error, set_aside_at) values
		('port/w', 'Port', true, '', '{}', now() - interval '9 minutes', null, '', null),
		('port/x', 'Port', true, '', '{}', now() + interval '1 minute', now() - interval '10 minutes', 'deadline exceeded', null),
		('port/y', 'Port', true, '', '{}', now() - interval '10 minutes', null, 'invalid', now()),
		('port/z', 'Port', true, '', '{}', now(), null, '', null),
		('port/new', 'Port', true, '', '{}', now() + interval '1 minute', now() - interval '1 second', 'deadline exceeded', null);`

// idOf returns the ID that overdueRows makes from a word.
func idOf(word string) string { return uuid.UUID(md5.Sum([]byte(word))).String() }

func TestOverdue_NamesTheWorstObjectsOfEachKind(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	if none, err := s.Report.Overdue(t.Context()); err != nil || len(none) > 0 {
		t.Fatalf("empty database: got %v, error %v, want nothing overdue", none, err)
	}
	storetest.ExecScript(t, url, overdueRows)
	type row struct {
		Kind, Object, Reason string
		Minutes              int
		Count                int64
	}
	read := func() (rows []row) {
		t.Helper()
		found, err := s.Report.Overdue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range found {
			rows = append(
				rows,
				row{o.Kind, o.Object, o.Reason, int(o.For.Truncate(time.Minute) / time.Minute), o.Count},
			)
		}
		return rows
	}
	port := func(i string, minutes int) row {
		return row{"port", "port/" + idOf(i), "it waits for DHCP on cmp-1 and L2 on cmp-1", minutes, 6}
	}
	blocked := []row{port("6", 60), port("5", 50), port("4", 40), port("3", 30), port("2", 20),
		{"trunk", "trunk/" + idOf("7"), "it waits for DHCP on cmp-1 and L2 on cmp-1", 70, 1},
		{"agent", "DHCP agent on net-1", "it sends no heartbeat", 8, 1},
		{"lease", "lease/" + idOf("late"), "start_lease", 10, 1}}
	journal := []row{
		{"entry", "journal/1", "connection refused", 10, 1},
		{"run", "odl/full-sync", "controller unavailable", 10, 1},
	}
	notes := []row{{"note", "port/x", "deadline exceeded", 10, 2}, {"note", "port/w", "", 9, 2}}
	if d := cmp.Diff(slices.Concat(blocked, journal, notes), read()); d != "" {
		t.Errorf("what is overdue (-want +got):\n%s", d)
	}

	storetest.ExecScript(t, url, `insert into journal_pause (actor, reason) values ('a', 'maintenance')`)

	if d := cmp.Diff(slices.Concat(blocked, notes), read()); d != "" {
		t.Errorf("what is overdue while the journal is paused (-want +got):\n%s", d)
	}
}
