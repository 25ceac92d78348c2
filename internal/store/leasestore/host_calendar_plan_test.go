package leasestore_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// yearsOfLeases has 500 hosts, 100,000 past leases, and 5,000 leases in the next 90 days.
const yearsOfLeases = `
	set local session_replication_role = replica;
	insert into host (hostname, provider, nested, service_name, vcpus, memory_mb, local_gb)
	select 'h' || n, gen_random_uuid(), gen_random_uuid(), 'h' || n, 64, 262144, 2000 from generate_series(1, 500) n;
	insert into lease (id, name, user_id, project_id, status, start_at, end_at)
	select md5(n::text)::uuid, 'past', 'u', 'p', 'TERMINATED', now() - n * interval '10 minutes', now() - n * interval '9 minutes' from generate_series(1, 100000) n;
	insert into lease (id, name, user_id, project_id, status, start_at, end_at)
	select md5('new' || n)::uuid, 'new', 'u', 'p', 'PENDING', now() + n / 500 * interval '9 days', now() + n / 500 * interval '9 days' + interval '5 days' from generate_series(0, 4999) n;
	insert into reservation (id, lease_id, "position", resource_type, status, min_hosts, max_hosts, hypervisor_properties, resource_properties, before_end)
	select id, id, 0, 'physical:host', 'pending', 1, 1, '', '', 'default' from lease;
	insert into host_allocation (reservation_id, host_id, during, owner)
	select l.id, 1 + n % 500, tstzrange(l.start_at, l.end_at), l.id from generate_series(0, 4999) n join lease l on l.id = md5('new' || n)::uuid`

// The calendar of many hosts for a long time reads no past lease, with a plan for its parameters and with a
// generic plan.
func TestHostCalendar_ReadsNoPastLease(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, yearsOfLeases)
	storetest.FixPlans(t, url)
	c := storetest.Connect(t, url)
	literals := strings.NewReplacer("$1", "0", "$2", "0", "$3", "501", "$4", "now()", "$5", "now() + interval '90 days'", "$6", "51")
	for name, explain := range map[string][]string{
		"custom plan": {`explain (analyze, buffers) ` + literals.Replace(leasestore.CalendarSQL)},
		"generic plan": {
			`set plan_cache_mode = force_generic_plan`,
			`prepare calendar (bigint, bigint, bigint, timestamptz, timestamptz, bigint) as ` + leasestore.CalendarSQL,
			`explain (analyze, buffers) execute calendar (0, 0, 501, now(), now() + interval '90 days', 51)`,
		},
	} {
		var lines []string
		for _, sql := range explain {
			results, err := c.PgConn().Exec(t.Context(), sql).ReadAll()
			if err != nil {
				t.Fatal(fmt.Errorf("%w: %s", err, sql))
			}
			lines = lines[:0]
			for _, row := range results[0].Rows {
				lines = append(lines, string(row[0]))
			}
		}
		plan := strings.Join(lines, "\n")
		if scan := regexp.MustCompile(`Seq Scan on (lease|reservation|host_allocation|event)`).FindString(plan); scan != "" || !strings.Contains(plan, "host_allocation") {
			t.Errorf("%s: got %q, want an index scan for each host:\n%s", name, scan, plan)
		}
	}
	s := storetest.Open(t, url)
	begin := time.Now()
	hosts, err := s.Lease.HostCalendar(t.Context(), leasestore.Calendar{Limit: 500, From: begin, To: begin.Add(90 * 24 * time.Hour)})
	bookings := 0
	for _, h := range hosts {
		bookings += len(h.Bookings)
	}
	if err != nil || len(hosts) != 500 || bookings < 4500 {
		t.Errorf("500 hosts for 90 days: got %d hosts with %d bookings, error %v", len(hosts), bookings, err)
	}
}
