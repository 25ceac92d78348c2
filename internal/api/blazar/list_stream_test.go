package blazar

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/lease"
	"berth/internal/store/storetest"
)

// insertLargeLeases inserts leases whose list is so long that it does not fit into the buffers between berth
// and a client: 16 MB. The names of the leases are their numbers.
func (s *service) insertLargeLeases() (leases int) {
	s.Helper()
	storetest.Exec(s, s.db, `
		with made as (
			insert into lease (id, name, user_id, project_id, status, start_at, end_at, created_at)
			select gen_random_uuid(), n::text, 'u', 'p', 'PENDING', now(), now(), now() + n * interval '1 second'
			from generate_series(1, 1000) n
			returning id),
		events as (
			insert into event (id, lease_id, event_type, at, status)
			select gen_random_uuid(), id, kind, now(), 'UNDONE' from made, unnest(array['start_lease', 'end_lease']) kind)
		insert into reservation (id, lease_id, position, resource_type, status, min_hosts, max_hosts, hypervisor_properties, resource_properties,
			before_end)
		select gen_random_uuid(), id, n, 'physical:host', 'pending', 1, 1, '["!=","$cpu_info","' || repeat('x', 4000) || '"]', '', 'default'
		from made, generate_series(1, 4) n`)
	return 1000
}

// stalledList requests the list of leases, reads the header of the answer, and waits until berth does nothing
// because the client does not read. Berth must then hold no transaction.
func (s *service) stalledList(watcher *pgx.Conn) (answer *http.Response) {
	s.Helper()
	address, err := url.Parse(s.url)
	if err != nil {
		s.Fatal(err)
	}
	conn, err := net.Dial("tcp", address.Host)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		s.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET %s/v1/leases HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\n\r\n", prefix); err != nil {
		s.Fatal(err)
	}
	if answer, err = http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = answer.Body.Close() })
	const enough = 50
	last, unchanged := "", 0
	for deadline := time.Now().Add(5 * time.Minute); unchanged < enough; time.Sleep(10 * time.Millisecond) {
		var busy int
		var activity string
		if err := watcher.QueryRow(s.Context(), `
			select count(*) filter (where state <> 'idle'), coalesce(max(state_change)::text, '')
			from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid() and application_name = 'berth'`).Scan(&busy, &activity); err != nil {
			s.Fatal(err)
		}
		if time.Now().After(deadline) {
			s.Fatalf(
				"list whose client does not read: %d connections to the database are in use, want none",
				busy,
			)
		}
		if unchanged++; busy > 0 || activity != last {
			last, unchanged = activity, 0
		}
	}
	return answer
}

func TestLeases_ListForASlowClientHoldsNoTransaction(t *testing.T) {
	t.Parallel()
	s := newService(t)
	leases := s.insertLargeLeases()
	watcher := storetest.Connect(t, s.db)
	answer := s.stalledList(watcher)

	// Other clients change the leases, among them the last one that berth has read, before the client reads
	// on.
	storetest.Exec(t, s.db, `delete from lease where name::int between 2 and 900`)
	storetest.Exec(t, s.db, `
		with made as (
			insert into lease (id, name, user_id, project_id, status, start_at, end_at, created_at)
			values (gen_random_uuid(), '1001', 'u', 'p', 'PENDING', now(), now(), now() + interval '1 hour')
			returning id)
		insert into event (id, lease_id, event_type, at, status)
		select gen_random_uuid(), id, kind, now(), 'UNDONE' from made, unnest(array['start_lease', 'end_lease']) kind`)
	var body struct{ Leases []struct{ Name string } }
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		t.Fatalf("list whose client has paused: %v", err)
	}
	var names, want []string
	for _, l := range body.Leases {
		names = append(names, l.Name)
	}
	for n := 1; n <= leases+1; n++ {
		if n == 1 || n > 900 {
			want = append(want, fmt.Sprint(n))
		}
	}
	if len(names) < 2 || len(names) == leases+1 {
		t.Errorf(
			"list whose client has paused: got %d leases, want those that berth had read before the deletion and those that remain",
			len(names),
		)
	}
	late := names[max(0, len(names)-len(want)+1):]
	if d := cmp.Diff(want[1:], late); d != "" || names[0] != "1" {
		t.Errorf(
			"list whose client has paused: the leases that remain are not at its end (-want +got):\n%s",
			d,
		)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			t.Errorf("list whose client has paused: got lease %s twice", name)
		}
		seen[name] = true
	}
}

func TestLeases_ListThatCannotBeReadToItsEndBreaksTheConnection(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.insertLargeLeases()
	answer := s.stalledList(storetest.Connect(t, s.db))
	storetest.Exec(t, s.db, `alter table reservation rename to elsewhere`)

	n, err := io.Copy(io.Discard, answer.Body)

	if !errors.Is(err, io.ErrUnexpectedEOF) || n == 0 {
		t.Errorf(
			"list whose last leases cannot be read: got %d bytes and the error %v, want a broken connection after some bytes",
			n,
			err,
		)
	}
}

// A page of the console shows little of each lease, so its leases must not be in memory together.
func TestLeaseReader_ReadsLargeLeasesAfterTheOnesBeforeThem(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.insertLargeLeases()
	reader := LeaseReader{s.store.Lease, policy.MustOpen(Policy...)}
	const most = 51
	var names []string
	err := reader.List(t.Context(), identity.Caller{User: "u", Project: "p", Roles: []string{"member"}}, uuid.Nil, most,
		func(l lease.Lease) {
			if len(names) == 0 {
				storetest.Exec(t, s.db, `update lease set name = 'renamed' where name = $1`, fmt.Sprint(most))
			}
			names = append(names, l.Name)
		})
	if err != nil || len(names) != most || names[most-2] != fmt.Sprint(most-1) || names[most-1] != "renamed" {
		t.Errorf("list of large leases: got %v, error %v; want %d leases, and the last one with the name that it got meanwhile",
			names, err, most)
	}
}
