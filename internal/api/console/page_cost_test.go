package console_test

import (
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/storetest"
)

// manyPorts adds 100,000 ports with their journal entries, devices and allocations: 60,000 of the project
// big, and 200 of each of 200 other projects. 120 ports of the project big and 2,000 of the other projects
// wait for an agent.
const manyPorts = `
	set local session_replication_role = replica;
	insert into network (id, project, name, description, admin_up, shared, external, port_security, mtu, type)
	select md5('net')::uuid, 'big', 'net', '', true, false, false, true, 1500, 'local';
	insert into port (id, network_id, project, name, description, admin_up, mac, device_id, device_owner, status, host, vnic, profile, vif, port_security)
	select md5('port' || n)::uuid, md5('net')::uuid, case when n <= 60000 then 'big' else 'p' || n % 200 end, '', '', true, ('02' || lpad(to_hex(n), 10, '0'))::macaddr,
		md5('device' || n)::uuid, 'compute:nova', case when n % 500 = 0 or n > 60000 and n % 20 = 0 then 'DOWN' else 'ACTIVE' end, 'h' || n % 500, 'normal', '{}', 'ovs', true
	from generate_series(1, 100000) n;
	insert into port_address (subnet_id, address, port_id, position)
	select md5('subnet')::uuid, '10.0.0.0'::inet + n, md5('port' || n)::uuid, 0 from generate_series(1, 100000) n;
	insert into block (object_id, entity, host, since)
	select id, 'L2', host, now() from port where status = 'DOWN' and name = '';
	insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, finished_at)
	select 'port', md5('port' || n)::uuid, 'create', '{}', '{}', 'big', '', 'completed', now() from generate_series(1, 100000) n;
	insert into consumer (uuid, project, user_id, type) select md5('device' || n)::uuid, 'big', 'u', 'INSTANCE' from generate_series(1, 100000) n;
	insert into generation_change (actor, cause, consumer, consumer_to)
	select 'nova', 'allocations', md5('device' || n)::uuid, 1 from generate_series(1, 100000) n`

const (
	// maxRowsOfAPage is the maximum number of rows of each table except block that one request for a page
	// reads.
	maxRowsOfAPage = 300
	// maxBlocksOfAPage is the maximum number of rows of the table block that one request for a page reads: a
	// page may read the blocks of all ports that wait twice.
	maxBlocksOfAPage = 5000
)

// No page reads a number of rows that grows with the number of ports.
func TestPages_ReadFewRowsOfManyPorts(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	storetest.ExecScript(t, e.url, manyPorts)
	storetest.FixPlans(t, e.url)
	e.Close()
	var port string
	c := storetest.Connect(t, e.url)
	e.check(c.QueryRow(t.Context(), `select md5('port2000')::uuid::text`).Scan(&port))
	callers := tokens{
		"root":  {User: "root", Project: "admin", Roles: []string{"admin"}},
		"big":   {User: "ann", Project: "big", Roles: []string{"member", "reader"}},
		"small": {User: "eve", Project: "p7", Roles: []string{"member", "reader"}},
	}
	for _, q := range []struct{ token, path string }{
		{"root", "/"}, {"root", "/waiting/agent?name=L2&host=h0"}, {"root", "/ports/" + port},
		{"big", "/"}, {"big", "/ports"}, {"big", "/ports?after=" + port}, {"big", "/?after=" + port}, {"big", "/ports/" + port},
		{"small", "/"}, {"small", "/ports"},
	} {
		t.Run(q.token+" "+q.path, func(t *testing.T) {
			before := rowsFetched(t, c)
			s := storetest.Open(t, e.url)
			own := *e
			own.Store, own.t = s, t
			h := own.console(callers)
			const repetitions = 8 // so many that PostgreSQL considers generic plans
			for range repetitions {
				w, body := own.send(h, request{"GET", "/console" + q.path, "", browser(q.token)})
				if w.StatusCode != http.StatusOK {
					t.Fatalf("got %d %s", w.StatusCode, body)
				}
			}
			s.Close()
			for table, n := range rowsFetched(t, c) {
				most := int64(maxRowsOfAPage)
				if table == "block" {
					most = maxBlocksOfAPage
				}
				if each := (n - before[table]) / repetitions; each > most {
					t.Errorf("the page reads %d rows of the table %s, want at most %d", each, table, most)
				}
			}
		})
	}
}

// rowsFetched returns the number of rows that all closed connections have read from each table.
func rowsFetched(t *testing.T, c *pgx.Conn) map[string]int64 {
	t.Helper()
	for connected := true; connected; { // PostgreSQL publishes what a connection has read when it is closed
		err := c.QueryRow(t.Context(), `
			select exists (
				select from pg_stat_activity
				where datname = current_database() and application_name = 'berth')
			from pg_sleep(0.005)`).Scan(&connected)
		if err != nil {
			t.Fatal(err)
		}
	}
	rows, err := c.Query(t.Context(), `
		select relname::text, seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables`)
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]int64{}
	var table string
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&table, &n}, func() error { read[table] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	return read
}

// A project with many ports finds each port that waits on one of its pages, and no page is short.
func TestProject_WaitingPagesOfManyPortsListEachPortOnce(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	storetest.ExecScript(t, e.url, manyPorts)
	storetest.FixPlans(t, e.url)
	h := e.console(tokens{"big": {User: "ann", Project: "big", Roles: []string{"member", "reader"}}})
	found := map[string]int{}
	pages := e.follow(h, "/console/", "big")
	for _, page := range pages {
		for _, name := range page {
			found[name]++
		}
	}
	if len(found) != 120 || len(pages) != 3 {
		t.Errorf("the pages of 60,000 ports: got %d ports on %d pages, want 120 on 3", len(found), len(pages))
	}
}
