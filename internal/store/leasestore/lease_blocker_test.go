package leasestore_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// blockerQuery is a query for the blockers of leases, with arguments.
type blockerQuery struct {
	name, sql string
	args      []any
}

// blockerQueries are the queries that look for the blockers of the given leases.
func blockerQueries(all []uuid.UUID) []blockerQuery {
	return []blockerQuery{
		{"read one lease", leasestore.DueBlockersSQL, []any{all[len(all)-1:], lease.ClockSkew, 10}},
		{"read all leases", leasestore.DueBlockersSQL, []any{all, lease.ClockSkew, 10}},
		{"begin all leases", leasestore.LockDueSQL, []any{all, 50}},
		{"expire all leases", leasestore.BlockedPastEndSQL, []any{50}},
		{"nudge the next leases", leasestore.FollowersSQL, []any{all[:1], lease.ClockSkew}},
	}
}

// The search for the blockers of leases processes each allocation of the hosts of these leases a few times,
// and not once for each reservation on the same host.
func TestBlockers_WorkIsThatOfTheAllocations(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, storetest.CrowdedHosts)
	storetest.FixPlans(t, url)
	c := storetest.Connect(t, url)
	if _, err := c.Exec(t.Context(), `set jit = off; set random_page_cost = 1.1`); err != nil { // as berth does
		t.Fatal(err)
	}
	const allocations = 15 * 64 * 50
	var all []uuid.UUID
	if err := c.QueryRow(t.Context(), `select array_agg(id order by start_at) from lease`).Scan(&all); err != nil {
		t.Fatal(err)
	}
	for _, q := range blockerQueries(all) {
		if rows := storetest.ExplainAnalyze(t, c, q.sql, q.args...).Processed(); rows < allocations || rows > 25*allocations {
			t.Errorf("%s: got %.0f rows processed for %d allocations, want at most 25 for each", q.name, rows, allocations)
		}
	}
	s := storetest.Open(t, url)
	last, err := s.Lease.Lease(t.Context(), all[len(all)-1])
	if err != nil {
		t.Fatal(err)
	}
	var hosts, want []string
	for i, b := range last.Blockers {
		want = append(want, fmt.Sprintf("h%d", i+1))
		if hosts = append(hosts, b.Host); b.ID != all[0] || b.Stuck {
			t.Errorf("blocker of the last lease: got %+v, want the first lease, which is not stuck", b)
		}
	}
	if len(hosts) != 10 || !slices.Equal(hosts, want) {
		t.Errorf("hosts for which the last lease waits: got %v, want the first ten", hosts)
	}
}

// The search for the blockers of leases reads no whole table of leases.
func TestBlockers_ReadsOnlyTheHostsOfTheLeases(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, yearsOfLeases+`;
		insert into event (id, lease_id, event_type, at, status)
		select gen_random_uuid(), id, typ, at, 'UNDONE'
		from lease, lateral (values ('start_lease', start_at), ('end_lease', end_at)) as e (typ, at)
		where status = 'PENDING'`)
	storetest.FixPlans(t, url)
	c := storetest.Connect(t, url)
	var all []uuid.UUID
	if err := c.QueryRow(t.Context(), `select array_agg(id) from (select id from lease where status = 'PENDING' order by start_at limit 100) l`).Scan(&all); err != nil {
		t.Fatal(err)
	}
	for _, q := range blockerQueries(all) {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			if _, err := c.Exec(t.Context(), `set plan_cache_mode = `+mode); err != nil {
				t.Fatal(err)
			}
			rows, err := c.Query(t.Context(), `explain `+q.sql, q.args...)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			plan := strings.Join(lines, "\n")
			if scan := regexp.MustCompile(`Seq Scan on (lease|reservation|host_allocation|event)\b`).FindString(plan); scan != "" {
				t.Errorf("%s, %s: got %q, want index scans:\n%s", q.name, mode, scan, plan)
			}
		}
	}
}

// fourHosts has four hosts and four devices.
const fourHosts = `
	set local session_replication_role = replica;
	insert into host (hostname, provider, nested, service_name, vcpus, memory_mb, local_gb)
	select 'h' || n, gen_random_uuid(), gen_random_uuid(), 'h' || n, 64, 262144, 2000 from generate_series(1, 4) n;
	insert into reservable_resource (id, resource_type, attributes)
	select md5('resource' || n)::uuid, 'device', jsonb_build_object('name', n) from generate_series(1, 4) n`

// blockersByDefinition selects the blockers of all PENDING leases whose start is due, one row for each
// resource. It is the definition of a blocker, without regard to its costs.
func blockersByDefinition() string {
	stuck := func(of string) string {
		return `(exists (select from event e where e.lease_id = ` + of + `.id and e.event_type = 'end_lease' and e.status = 'ERROR')
			or exists (select from reservation s join reservation_failure f on f.reservation_id = s.id
				where s.lease_id = ` + of + `.id and f.since <= now() - interval '1 minute'))`
	}
	tables := [][]any{
		{"host_allocation", "host_id", "owner", `(select hostname from host where id = mine.host_id)`},
		{"resource_allocation", "resource_id", "reservation_id", `'device'`},
	}
	var waits, all []string
	for _, table := range tables {
		waits = append(waits, fmt.Sprintf(`exists (
			select from reservation waits
			join %[1]s needed on needed.reservation_id = waits.id
			join %[1]s held on held.%[2]s = needed.%[2]s and upper(held.during) <= lower(needed.during)
			join reservation x on x.id = held.reservation_id
			join lease third on third.id = x.lease_id
			where waits.lease_id = before.id and third.status <> 'PENDING' and needed.%[3]s <> held.%[3]s and `, table...)+stuck("third")+`)`)
	}
	for _, table := range tables {
		all = append(all, fmt.Sprintf(`
			select l.id, before.id, %[4]s as resource, before.end_at,
				bool_or(before.status <> 'PENDING' and (lower(theirs.during) >= upper(mine.during) or `+stuck("before")+`))
			from lease l
			join reservation r on r.lease_id = l.id
			join %[1]s mine on mine.reservation_id = r.id
			join %[1]s theirs on theirs.%[2]s = mine.%[2]s
			join reservation b on b.id = theirs.reservation_id
			join lease before on before.id = b.lease_id
			where l.status = 'PENDING' and l.start_at <= now() and before.id <> l.id
				and (upper(theirs.during) <= lower(mine.during) and not (mine.%[3]s = theirs.%[3]s
						and (before.status = 'ERROR'
							or before.status in ('TERMINATING', 'DELETING') and upper(theirs.during) <= now() - interval '1 minute'
							or before.status <> 'PENDING' and `+stuck("before")+`))
					or lower(theirs.during) >= upper(mine.during) and before.status <> 'PENDING' and mine.%[3]s <> theirs.%[3]s)
				and (before.status <> 'PENDING' or not (`+strings.Join(waits, " or ")+`))
			group by l.id, before.id, before.end_at, mine.%[2]s`, table...))
	}
	return strings.Join(all, " union all ")
}

// insertRandomLease inserts the n-th lease with random dates, status, reservations and failures.
func insertRandomLease(t *testing.T, c *pgx.Conn, random *rand.Rand, n int) {
	t.Helper()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	statuses := []string{"PENDING", "PENDING", "PENDING", "STARTING", "ACTIVE", "TERMINATING", "DELETING", "ERROR"}
	id, status := uuid.New(), statuses[random.IntN(len(statuses))]
	from := time.Duration(random.IntN(20)-20) * 30 * time.Second
	to := from + time.Duration(1+random.IntN(4))*30*time.Second
	endStatus := "UNDONE"
	if status != "PENDING" && random.IntN(5) == 0 {
		endStatus = "ERROR"
	}
	// the end differs by a microsecond for each lease, so that the order of blockers is that of their ends
	exec(`insert into lease (id, name, user_id, project_id, status, start_at, end_at, delete_requested_at)
		values ($1, 'l', 'u', 'p', $2, now() + $3::interval, now() + $4::interval + $5 * interval '1 microsecond', now())`, id, status, from, to, n)
	exec(`insert into event (id, lease_id, event_type, at, status) values (gen_random_uuid(), $1, 'end_lease', now() + $2::interval, $3)`,
		id, to, endStatus)
	for position := range 1 + random.IntN(3) {
		kind := []string{"physical:host", "virtual:instance", "virtual:instance", "device"}[random.IntN(4)]
		r, whole, resources := uuid.New(), 0, `{}`
		switch kind {
		case "virtual:instance":
			resources = `{"VCPU": 1}`
		default:
			whole = 1
		}
		exec(`insert into reservation (id, lease_id, "position", resource_type, status, min_hosts, max_hosts, hypervisor_properties,
				resource_properties, before_end, resources)
			values ($1, $2, $3, $4, 'pending', $5, $5, '', '', 'default', $6)`, r, id, position, kind, whole, resources)
		for resource := range 4 {
			switch {
			case random.IntN(2) == 0:
			case kind == "device":
				exec(`insert into resource_allocation (reservation_id, resource_id, during)
					select $1, md5('resource' || $2::int)::uuid, tstzrange(now() + $3::interval, now() + $4::interval) on conflict do nothing`,
					r, resource+1, from, to)
			default:
				exec(`insert into host_allocation (reservation_id, host_id, during, owner)
					select $1::uuid, $2, tstzrange(now() + $3::interval, now() + $4::interval), case $5::int when 1 then $1::uuid else '00000000-0000-0000-0000-000000000000' end
					on conflict do nothing`, r, resource+1, from, to, whole)
			}
		}
		if status != "PENDING" && random.IntN(8) == 0 {
			exec(`insert into reservation_failure (reservation_id, party, call, error, since)
				values ($1, 'nova', 'DELETE', 'e', now() - $2 * interval '40 seconds')`, r, random.IntN(4))
		}
	}
}

// The search for the blockers of leases finds exactly the blockers of the definition, the ones with the
// earliest ends first.
func TestBlockers_AreThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, fourHosts)
	c := storetest.Connect(t, url)
	random, stuck, total := rand.New(rand.NewPCG(1, 2)), 0, 0
	for round := range 40 {
		if _, err := c.Exec(t.Context(), `begin`); err != nil { // now() is the same in all statements
			t.Fatal(err)
		}
		if _, err := c.Exec(t.Context(), `set local session_replication_role = replica`); err != nil {
			t.Fatal(err)
		}
		for n := range 12 {
			insertRandomLease(t, c, random, n)
		}
		var want, got []string
		rows, err := c.Query(t.Context(), `
			select *
			from (`+blockersByDefinition()+`) b
			order by 1, 4, nullif(resource, 'device') nulls first`)
		want = collectBlockers(t, rows, err)
		var ids []uuid.UUID
		if err := c.QueryRow(t.Context(), `select array_agg(id) from lease`).Scan(&ids); err != nil {
			t.Fatal(err)
		}
		rows, err = c.Query(t.Context(), `
			select waiting_id, id, hostname || resource_type, end_at, stuck
			from (`+leasestore.DueBlockersSQL+`) b (waiting_id, id, name, project_id, user_id, hostname, resource_type, end_at, stuck)`,
			ids, time.Duration(0), 1000)
		got = collectBlockers(t, rows, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("round %d: blockers of random leases (-definition +query):\n%s", round, d)
		}
		total += len(got)
		for _, b := range got {
			if strings.HasSuffix(b, "true") {
				stuck++
			}
		}
		if _, err := c.Exec(t.Context(), `rollback`); err != nil {
			t.Fatal(err)
		}
	}
	if total < 200 || stuck < 20 || stuck > total-20 {
		t.Errorf("blockers of random leases: got %d, of which %d are stuck; want many of both kinds", total, stuck)
	}
}

// collectBlockers returns a text for each row of a query for blockers.
func collectBlockers(t *testing.T, rows pgx.Rows, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var waiting, before uuid.UUID
		var resource string
		var end time.Time
		var stuck bool
		err := row.Scan(&waiting, &before, &resource, &end, &stuck)
		return fmt.Sprint(waiting, " ", before, " ", resource, " ", stuck), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
