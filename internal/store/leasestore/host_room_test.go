package leasestore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// hostOf64 has a host with 64 VCPUs and 64 MiB, and 5,000 instance reservations without slots; the n-th needs
// 1 + n % 3 VCPUs for each slot.
const hostOf64 = `
	set local session_replication_role = replica;
	insert into host (hostname, provider, nested, service_name, vcpus, memory_mb, local_gb)
	values ('h', gen_random_uuid(), gen_random_uuid(), 'h', 64, 64, 0);
	insert into reservation (id, lease_id, "position", resource_type, status, min_hosts, max_hosts, hypervisor_properties, resource_properties,
		before_end, resources)
	select md5(n::text)::uuid, md5(n::text)::uuid, 0, 'virtual:instance', 'pending', 0, 0, '', '', 'default',
		jsonb_build_object('VCPU', 1 + n % 3, 'MEMORY_MB', 1)
	from generate_series(0, 4999) n`

// insertSlots inserts slots of the n-th reservation, from the hour `from` until the hour `to`.
func insertSlots(t *testing.T, c *pgx.Conn, n, slots, from, to int) error {
	t.Helper()
	day := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err := c.Exec(t.Context(), `
		insert into host_allocation (reservation_id, host_id, slots, during)
		select md5($1::text)::uuid, id, $2, tstzrange($3, $4) from host`,
		fmt.Sprint(n), slots, day.Add(time.Duration(from)*time.Hour), day.Add(time.Duration(to)*time.Hour))
	return err
}

// The table accepts slots exactly if the host has room for them at each time.
func TestHostAllocation_TableAcceptsWhatTheHostHasRoomFor(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, hostOf64)
	c := storetest.Connect(t, url)
	const hours, vcpus, memory = 24, 64, 64
	random := rand.New(rand.NewPCG(1, 2))
	var used, instances [hours]int
	accepted := 0
	for n := range 400 {
		from := random.IntN(hours)
		to, slots := from+1+random.IntN(hours-from), 1+random.IntN(12)
		fits := true
		for at := from; at < to; at++ {
			fits = fits && used[at]+slots*(1+n%3) <= vcpus && instances[at]+slots <= memory
		}
		switch err := insertSlots(t, c, n, slots, from, to); {
		case fits && err != nil, !fits && !db.Violates(err, "host_allocation_room"):
			t.Fatalf("%d slots of reservation %d from %d to %d: got error %v; the host has room: %t; VCPUs used by hour: %v",
				slots, n, from, to, err, fits, used)
		case fits:
			accepted++
			for at := from; at < to; at++ {
				used[at] += slots * (1 + n%3)
				instances[at] += slots
			}
		}
	}
	if accepted < 20 || accepted > 200 {
		t.Errorf("accepted reservations: got %d of 400, want some and not all", accepted)
	}
}

// The work to check the room of a host grows with the number of reservations on the host, and not with its
// square.
func TestHostAllocation_RoomIsSummedOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	const others = 4000
	storetest.ExecScript(t, url, hostOf64+fmt.Sprintf(`;
		update host set vcpus = 1000000, memory_mb = 1000000;
		insert into host_allocation (reservation_id, host_id, slots, during)
		select md5(n::text)::uuid, 1, 1, tstzrange('2100-01-01T00:00Z'::timestamptz + n * interval '1 second', '2100-01-02T00:00Z')
		from generate_series(0, %d - 1) n`, others))
	c := storetest.Connect(t, url)
	var before, after int64
	const read = `
		select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint
		from pg_stat_xact_user_tables
		where relname in ('host_allocation', 'reservation')`
	for _, sql := range []string{`vacuum analyze host_allocation`, `vacuum analyze reservation`, `begin`} {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.QueryRow(t.Context(), read).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if err := insertSlots(t, c, 4999, 1, 0, 24); err != nil {
		t.Fatal(err)
	}
	if err := c.QueryRow(t.Context(), read).Scan(&after); err != nil {
		t.Fatal(err)
	}
	if rows := after - before; rows < others || rows > 5*others {
		t.Errorf("rows that the check of one of %d reservations reads: got %d, want at most five for each reservation", others, rows)
	}
}
