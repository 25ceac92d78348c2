package blazar

import (
	"fmt"
	"testing"
	"time"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// calendar fills the tables whose size depends on how long a cloud uses leases: 50 hosts,
// 10,000 past leases, and 5,000 pending leases that begin tomorrow or later. On each host, one pending lease
// follows the other.
const calendar = `
	insert into provider (id, uuid, name, root_id)
	select 1000 + n, md5('host' || n)::uuid::text, 'host-' || n, 1000 + n from generate_series(1, 50) n;
	insert into provider (id, uuid, name, root_id, parent_id)
	select 2000 + n, md5('nested' || n)::uuid::text, 'nested-' || n, 1000 + n, 1000 + n from generate_series(1, 50) n;
	insert into resource_class (name) values ('CUSTOM_PHYSICAL_HOST') on conflict do nothing;
	insert into inventory (provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
	select 2000 + n, c.id, 1, 0, 1, 1, 1, 1 from generate_series(1, 50) n, resource_class c where c.name = 'CUSTOM_PHYSICAL_HOST';
	insert into host (hostname, provider, nested, service_name, hypervisor_type, vcpus, memory_mb, local_gb)
	select 'host-' || n, md5('host' || n)::uuid, md5('nested' || n)::uuid, 'host-' || n, 'QEMU', 64, 262144, 2000
	from generate_series(1, 50) n;
	insert into lease (id, name, user_id, project_id, status, start_at, end_at)
	select md5('past' || n)::uuid, 'past-' || n, 'u', 'project-' || n % 500, 'TERMINATED', b, b + interval '1 hour'
	from generate_series(1, 10000) n, lateral (values (now() - interval '1 day' - n * interval '10 minutes')) v (b);
	insert into lease (id, name, user_id, project_id, status, start_at, end_at)
	select md5('pending' || n)::uuid, 'pending-' || n, 'u', 'project-' || n % 500, 'PENDING', b, b + interval '1 hour'
	from generate_series(1, 5000) n, lateral (values (now() + interval '1 day' + (n / 50) * interval '2 hours')) v (b);
	insert into reservation (id, lease_id, position, resource_type, status, min_hosts, max_hosts, hypervisor_properties, resource_properties, before_end)
	select md5('reservation ' || id)::uuid, id, 0, 'physical:host', case status when 'PENDING' then 'pending' else 'deleted' end, 1, 1, '', '', '' from lease;
	insert into event (id, lease_id, event_type, at, status)
	select gen_random_uuid(), l.id, e.kind, e.at, case l.status when 'PENDING' then 'UNDONE' else 'DONE' end
	from lease l
	cross join lateral (values ('start_lease', l.start_at), ('end_lease', l.end_at)) as e (kind, at);
	insert into host_allocation (reservation_id, host_id, during, owner)
	select md5('reservation ' || l.id)::uuid, h.id, tstzrange(l.start_at, l.end_at), md5('reservation ' || l.id)::uuid
	from generate_series(1, 5000) n
	join lease l on l.id = md5('pending' || n)::uuid
	join host h on h.hostname = 'host-' || 1 + n % 50`

// calendarTables lists the tables of `calendar` that grow with the leases.
var calendarTables = []string{"lease", "reservation", "event", "host_allocation"}

// TestPlan_RoutesOfLeasesReadFewRowsOfGrowingTables fails if a route reads a whole table whose size depends
// on the number of leases, or counts or adds up its rows.
func TestPlan_RoutesOfLeasesReadFewRowsOfGrowingTables(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, calendar)
	storetest.FixPlans(t, url)
	watch := storetest.Connect(t, url)
	leaseID := func(kind string, n int) (id string) {
		if err := watch.QueryRow(t.Context(), `select md5($1)::uuid::text`, fmt.Sprint(kind, n)).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	for name, call := range map[string]func(s *service, n int){
		"POST /leases": func(s *service, n int) {
			s.expect(201, "POST", "/v1/leases", leaseBody(fmt.Sprint("new-", n), 1, 2))
		},
		"GET /leases/{id}": func(s *service, n int) { s.expect(200, "GET", "/v1/leases/"+leaseID("past", 100+n), "") },
		"GET /leases page": func(s *service, n int) {
			s.expect(200, "GET", "/v1/leases?limit=50&marker="+leaseID("past", 5000+n), "")
		},
		"PUT /leases/{id}": func(s *service, n int) {
			s.expect(200, "PUT", "/v1/leases/"+leaseID("pending", 100+n), `{"name":"renamed"}`)
		},
		"GET /os-hosts":      func(s *service, _ int) { s.expect(200, "GET", "/v1/os-hosts", "") },
		"GET /os-hosts/{id}": func(s *service, n int) { s.expect(200, "GET", fmt.Sprint("/v1/os-hosts/", 1+n), "") },
	} {
		storetest.ExpectFewReads(t, watch, name, calendarTables, func() {
			s := &service{T: t, db: url, store: storetest.Open(t, url)}
			defer s.store.Close()
			s.serve(10 * time.Minute)
			for n := range storetest.PlanRepeats {
				call(s, n)
			}
		})
	}
}

// A project can have many more leases than its quota allows, if it had none before.
func TestPlan_QuotaCountsNoMoreLeasesThanItAllows(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, calendar)
	storetest.ExecScript(t, url, `update lease set project_id = 'crowded' where status = 'PENDING'`)
	storetest.FixPlans(t, url)
	storetest.ExpectFewReads(t, storetest.Connect(t, url), "POST /leases", calendarTables, func() {
		s := &service{T: t, db: url, store: storetest.Open(t, url)}
		defer s.store.Close()
		s.store.Lease = leasestore.New(s.store.DB, leasestore.Config{Quota: lease.Quota{Limits: map[string]int64{lease.QuotaLeases: 100}}})
		s.serve(10 * time.Minute)
		for range storetest.PlanRepeats {
			if a := s.as("ann:crowded", "POST", "/v1/leases", leaseBody("one more", 1, 2)); a.status != 403 {
				t.Errorf("a lease of a project that has used its quota: got %d %s, want 403", a.status, a.raw)
			}
		}
	})
}
