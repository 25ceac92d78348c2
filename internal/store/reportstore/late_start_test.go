package reportstore_test

import (
	"crypto/md5"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/store/reportstore"
	"berth/internal/store/storetest"
)

// leaseRows inserts hosts with two or three leases each: an earlier one, whose end was eight minutes ago
// except on the host on-time, and later ones. On the hosts shared, mixed and unreleased, the leases have
// instances, except the last one on mixed.
const leaseRows = `
	set local session_replication_role = replica;
	insert into host (hostname, provider, nested, service_name, vcpus, memory_mb, local_gb)
	select h, md5(h)::uuid, md5(h)::uuid, h, 1, 1, 1 from unnest(array['held', 'on-time', 'later', 'unstarted', 'failed', 'shared', 'mixed', 'unreleased']) h;
	insert into lease (id, name, user_id, project_id, status, start_at, end_at)
	select md5(l || h)::uuid, l || ' on ' || h, 'u', 'p',
		case when l <> 'first' or h = 'unstarted' then 'PENDING' when h in ('failed', 'shared', 'mixed') then 'ERROR' else 'TERMINATING' end,
		case when l = 'first' then now() - interval '1 day' else now() + "from" end,
		case when l = 'first' and h = 'on-time' then now() + interval '1 minute' when l = 'first' then now() - interval '8 minutes' else now() + "from" + interval '1 hour' end
	from unnest(array['held', 'on-time', 'later', 'unstarted', 'failed', 'shared', 'mixed', 'unreleased']) h
	join (values ('first', interval '0'), ('next', interval '40 minutes'), ('last', interval '3 hours')) as v (l, "from") on true;
	update lease set start_at = start_at + interval '2 days', end_at = end_at + interval '2 days' where name in ('next on later', 'last on later');
	insert into reservation (id, lease_id, position, resource_type, status, min_hosts, max_hosts, hypervisor_properties, resource_properties, before_end)
	select id, id, 0, 'physical:host', 'pending', 1, 1, '', '', '' from lease;
	insert into event (id, lease_id, event_type, at, status)
	select gen_random_uuid(), id, 'start_lease', start_at, case when name like 'first%' then 'DONE' else 'UNDONE' end from lease;
	insert into host_allocation (reservation_id, host_id, during, owner)
	select l.id, h.id, tstzrange(l.start_at, l.end_at), case when h.hostname in ('shared', 'unreleased') or l.name in ('first on mixed', 'next on mixed') then '00000000-0000-0000-0000-000000000000'::uuid else l.id end
	from lease l join host h on l.name like '% on ' || h.hostname;`

func TestWaiting_NamesTheLeaseThatMakesTheNextOneLate(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.ExecScript(t, url, leaseRows)
	groups, err := s.Report.Waiting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range groups {
		if g.Party != reportstore.Lease {
			continue
		}
		got = append(got, strings.Join([]string{g.Party.Label(g.Name, g.Host), g.LongestName, g.Longest}, ": "))
		if since := time.Since(*g.Oldest).Round(time.Minute); since != 8*time.Minute || g.Count != 1 {
			t.Errorf("group %+v: got %d leases that wait for %s, want 1 for 8 minutes", g, g.Count, since)
		}
	}
	next := func(host string) uuid.UUID { return md5.Sum([]byte("next" + host)) }
	last := uuid.UUID(md5.Sum([]byte("lastmixed")))
	want := []string{
		"first on failed to leave failed: next on failed: lease/" + next("failed").String(),
		"first on held to leave held: next on held: lease/" + next("held").String(),
		"first on mixed to leave mixed: last on mixed: lease/" + last.String(),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("leases that others wait for (-want +got):\n%s", d)
	}

	page, more, err := s.Report.WaitingObjects(t.Context(), reportstore.WaitingQuery{
		Party: reportstore.Lease,
		Name:  "first on held",
		Host:  "held",
		Limit: 50,
	})
	if err != nil || more != uuid.Nil || len(page) != 1 || page[0].ID != next("held") ||
		time.Until(*page[0].Deadline).Round(time.Minute) != 40*time.Minute {
		t.Errorf("page of the leases that wait: got %+v, next %s, error %v; want only the next lease and its start",
			page, more, err)
	}
	for host, want := range map[string]string{"held": "first on held", "on-time": "", "later": "first on later"} {
		held, err := s.Report.HeldHosts(t.Context(), next(host))
		if err != nil || want == "" && len(held) > 0 ||
			want != "" && (len(held) != 1 || held[0].HolderName != want || held[0].Host != host) {
			t.Errorf("hosts of the next lease of %s that others still have: got %+v, error %v; want one of %q",
				host, held, err, want)
		}
	}
}

// crowdedLeases makes each reservation of storetest.CrowdedHosts a lease of its own, with other dates. The
// leases of the first half still have their hosts, and those of the second half are PENDING.
const crowdedLeases = `;
	insert into lease (id, name, user_id, project_id, status, start_at, end_at)
	select r.id, l.name || '-' || r.position, 'u', 'p', case when l.end_at < now() - interval '70 minutes' then 'STARTING' else 'PENDING' end,
		l.start_at + r.position * interval '1 second', l.end_at + r.position * interval '1 second'
	from reservation r join lease l on l.id = r.lease_id;
	update reservation set lease_id = id;
	update host_allocation a set during = tstzrange(l.start_at, l.end_at) from lease l where l.id = a.reservation_id;
	insert into event (id, lease_id, event_type, at, status)
	select l.id, l.id, 'start_lease', l.start_at, 'UNDONE' from lease l join reservation r on r.lease_id = l.id where l.status = 'PENDING'`

// The search for leases that start late processes each allocation of the hosts of these leases a few times,
// and not once for each reservation, or for each lease, with the same host.
func TestLateStarts_WorkIsThatOfTheAllocations(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]string{
		"many reservations": storetest.CrowdedHosts,
		"many leases":       storetest.CrowdedHosts + crowdedLeases,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			storetest.ExecScript(t, url, rows)
			storetest.FixPlans(t, url)
			c := storetest.Connect(t, url)
			if _, err := c.Exec(t.Context(), `set jit = off; set random_page_cost = 1.1`); err != nil { // as berth does
				t.Fatal(err)
			}
			const allocations = 15 * 64 * 50
			var last uuid.UUID
			err := c.QueryRow(t.Context(), `select lease_id from reservation order by (select start_at from lease where id = lease_id) desc limit 1`).Scan(&last)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range []struct {
				name, sql string
				args      []any
			}{
				{"all parties", reportstore.WaitingSQL, []any{reportstore.MaxCounted}},
				{"one party", reportstore.WaitingObjectSQL[reportstore.Lease], []any{"l1", "h1", uuid.Nil, reportstore.MaxCounted}},
				{"one lease", reportstore.HeldHostsSQL, []any{last, 10}},
			} {
				rows := storetest.ExplainAnalyze(t, c, q.sql, q.args...).Processed()
				if rows < 64*50 || rows > 50*allocations {
					t.Errorf("%s: got %.0f rows processed for %d allocations, want at most 50 for each", q.name, rows, allocations)
				}
			}
		})
	}
}

func TestWaiting_SaysThatTheAgentsOfAHostAreSilent(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.ExecScript(t, url, `
		insert into agent (id, agent_type, host, binary_name, topic, configurations, heartbeat_at)
		select gen_random_uuid(), type, host, '', '', '{}', now() - silent
		from (values ('Open vSwitch agent', 'silent', interval '9 minutes'), ('DHCP agent', 'silent', '0'),
			('Open vSwitch agent', 'alive', '0'), ('Open vSwitch agent', 'partly', '9 minutes'), ('NIC Switch agent', 'partly', '0')) as v (type, host, silent);
		insert into block (object_id, entity, host, since) select gen_random_uuid(), 'L2', host, now() from unnest(array['silent', 'alive', 'partly', 'none']) host;
		insert into block (object_id, entity, host, since) select gen_random_uuid(), 'DHCP', '', now();`)
	groups, err := s.Report.Waiting(t.Context())
	if err != nil || len(groups) != 5 {
		t.Fatalf("got %d groups, error %v, want 5", len(groups), err)
	}
	for _, g := range groups {
		if silent := g.SilentSince != nil; silent != (g.Host == "silent") {
			t.Errorf("%s: got the last heartbeat %v, want it only if all L2 agents of the host are silent",
				g.Party.Label(g.Name, g.Host), g.SilentSince)
		}
	}
}
