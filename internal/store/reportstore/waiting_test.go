package reportstore_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/store/db"
	"berth/internal/store/reportstore"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// waitingRows inserts one object for each kind of party, and objects that wait for no party.
const waitingRows = `
	insert into block (object_id, entity, host, since) select md5(i::text)::uuid, 'L2', 'cmp-1', now() - interval '9 minutes' from generate_series(1, 120) i;
	insert into block (object_id, entity, host, since) select md5(i::text)::uuid, 'DHCP', '', now() - interval '8 minutes' from generate_series(1, 3) i;
	insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, attempt, taken_at, finished_at)
	select 'port', i::text, 'create', '{}', '{}', 'p', '', s, 1, now(), case s when 'completed' then now() end
	from unnest(array['pending', 'pending', 'processing', 'failed', 'completed', 'completed']) with ordinality as e (s, i);
	insert into journal_dep (entry, waits_for) select max(seq) filter (where object_id = '2'), max(seq) filter (where object_id = '1') from journal_entry;
	insert into note (workflow_id, workflow, fresh, summary, attributes, due_at) values ('port/x', 'Port', true, '', '{}', now());
	insert into nova_event (port_id, server, name, status, tag) select md5('port')::uuid, 's', 'network-vif-plugged', 'completed', '' from generate_series(1, 2);
	insert into agent_notification (network_id, kind, event, object_id, data, sent_at)
	select md5('net')::uuid, 'port', 'updated', md5('port')::uuid, '{}', case i when 1 then null else now() end from generate_series(1, 3) i;
	insert into provisioning_notification (object_id, notification) values (md5('port')::uuid, '{}');`

// longest matches the names of the objects of waitingRows.
var longest = regexp.MustCompile(`^((port|agent-notifications|webhook)/[0-9a-f-]{36}|journal/[0-9]+|port/x)$`)

func TestWaiting_GroupsObjectsByTheirParty(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.ExecScript(t, url, waitingRows)
	groups, err := s.Report.Waiting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for i, g := range groups {
		got[strings.Join([]string{string(g.Party), g.Name, g.Host, g.Objects}, "/")] = g.Count
		if g.Oldest == nil || g.AtLeast || !longest.MatchString(g.Longest) || i == 0 && g.Name != "L2" {
			t.Errorf(
				"group %d: got %+v, want since when the first object waits and its name, an exact count, and the longest wait first",
				i,
				g,
			)
		}
	}
	want := map[string]int64{
		"agent/L2/cmp-1/port":           120,
		"agent/DHCP//port":              3,
		"controller///journal entry":    2,
		"entry///journal entry":         1,
		"administrator///journal entry": 1,
		"temporal///note":               1,
		"nova///event":                  2,
		"rabbitmq///notification":       1,
		"webhook///notification":        1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what waits (-want +got):\n%s", d)
	}
}

func TestWaitingObjects_PagesHaveEachObjectOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.ExecScript(t, url, waitingRows)
	for party, want := range map[reportstore.Party]int{
		reportstore.Agent:   120,
		reportstore.Nova:    1,
		reportstore.Host:    0,
		reportstore.Lease:   0,
		reportstore.Service: 0,
		reportstore.Worker:  0,
	} {
		q := reportstore.WaitingQuery{Party: party, Limit: 50}
		if party == reportstore.Agent {
			q.Name, q.Host = "L2", "cmp-1"
		}
		seen, pages := map[uuid.UUID]int{}, 0
		for {
			page, next, err := s.Report.WaitingObjects(t.Context(), q)
			if err != nil || len(page) > q.Limit {
				t.Fatalf("page %d of what waits for %s: got %d objects, error %v",
					pages, party, len(page), err)
			}
			for _, o := range page {
				seen[o.ID]++
			}
			if pages++; next == uuid.Nil {
				break
			}
			q.After = next
		}
		if len(seen) != want || pages != (want+49)/50 && want > 0 {
			t.Errorf("what waits for %s: got %d objects on %d pages, want %d", party, len(seen), pages, want)
		}
	}
	_, _, err := s.Report.WaitingObjects(t.Context(), reportstore.WaitingQuery{Party: "nobody", Limit: 1})
	if !errors.Is(err, db.ErrNotFound) {
		t.Errorf("what waits for an unknown party: got the error %v, want db.ErrNotFound", err)
	}
}

// manyRows inserts, into each large table, rows that wait for no party, and more waiting rows than a report
// counts.
const manyRows = `
	insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, finished_at)
	select 'port', i::text, 'create', '{}', '{}', 'p', '', 'completed', now() from generate_series(1, 30000) i;
	insert into agent_notification (network_id, kind, event, object_id, data, sent_at)
	select md5('net')::uuid, 'port', 'updated', md5('port')::uuid, '{}', now() from generate_series(1, 30000) i;
	insert into lease (id, name, user_id, project_id, status, start_at, end_at)
	select md5('ended' || i)::uuid, 'l', 'u', 'p', 'TERMINATED', now() - interval '1 hour' - i * interval '10 minutes', now() - i * interval '10 minutes' from generate_series(1, 50000) i;
	insert into lease (id, name, user_id, project_id, status, start_at, end_at)
	select md5(i::text)::uuid, 'l', 'u', 'p', 'PENDING', now() + interval '1 day' + i / 500 * interval '2 hours', now() + interval '1 day' + i / 500 * interval '2 hours' + interval '1 hour' from generate_series(1, 8000) i;
	insert into event (id, lease_id, event_type, at, status)
	select gen_random_uuid(), id, 'start_lease', start_at, case status when 'PENDING' then 'UNDONE' else 'DONE' end from lease union all
	select gen_random_uuid(), id, 'before_end_lease', start_at, case status when 'PENDING' then 'UNDONE' else 'DONE' end from lease union all
	select gen_random_uuid(), id, 'end_lease', end_at, case status when 'PENDING' then 'UNDONE' else 'DONE' end from lease;
	insert into reservation (id, lease_id, position, resource_type, status, min_hosts, max_hosts, hypervisor_properties, resource_properties, before_end)
	select id, id, 0, 'physical:host', 'pending', 1, 1, '', '', 'default' from lease;
	insert into host (hostname, provider, nested, service_name, vcpus, memory_mb, local_gb)
	select 'cmp-' || i, gen_random_uuid(), gen_random_uuid(), 'cmp-' || i, 64, 262144, 2000 from generate_series(1, 500) i;
	insert into host_allocation (reservation_id, host_id, during, owner)
	select l.id, 1 + i % 500, tstzrange(l.start_at, l.end_at), l.id from generate_series(1, 8000) i join lease l on l.id = md5(i::text)::uuid;
	insert into block (object_id, entity, host, since) select md5(i::text)::uuid, 'L2', 'cmp-' || i % 300, now() from generate_series(1, 30000) i`

func TestWaiting_ReadsABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.ExecScript(t, url, `set local session_replication_role = replica;`+manyRows)
	storetest.FixPlans(t, url)
	c := storetest.Connect(t, url)
	read := storetest.ExplainAnalyze(t, c, reportstore.WaitingSQL, reportstore.MaxCounted).Read()
	if limit := reportstore.MaxCounted + 100.0; read > limit {
		t.Errorf(
			"the report of what waits reads %.0f rows, want at most %.0f: 5000 blocks, and no row of other tables that does not wait",
			read,
			limit,
		)
	}
	for party, sql := range reportstore.WaitingObjectSQL {
		read := storetest.ExplainAnalyze(t, c, sql+" limit 51", "L2", "cmp-7", uuid.Nil, 5000).Read()
		if read > 2*5000+200 {
			t.Errorf("a page of what waits for %s reads %.0f rows, want at most 10200", party, read)
		}
	}
	groups, err := s.Report.Waiting(t.Context())
	if err != nil || len(groups) == 0 || len(groups) > 200 || !groups[0].AtLeast {
		t.Errorf(
			"more than 5000 waiting objects of 300 parties: got %d groups, error %v; want at most 200, each with at least its count",
			len(groups),
			err,
		)
	}
}
