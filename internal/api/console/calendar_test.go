package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"berth/internal/identity"
	"berth/internal/store/storetest"
)

// largeCloud has 500 hosts with 10 pending leases each in the next 90 days.
const largeCloud = `
	insert into host (hostname, provider, nested, service_name, vcpus, memory_mb, local_gb)
	select 'compute-' || n || '.cloud.example.org', gen_random_uuid(), gen_random_uuid(), 'compute-' || n, 64, 262144, 2000
	from generate_series(1, 500) n;
	insert into lease (id, name, user_id, project_id, status, start_at, end_at)
	select md5(n || '/' || i)::uuid, 'experiment-' || n || '-' || i, 'u', 'p', 'PENDING', at, at + interval '7 days'
	from generate_series(1, 500) n, generate_series(0, 9) i, lateral (
		select date_trunc('day', now()) + i * interval '9 days' + (1 + n % 20) * interval '1 hour' as at) w;
	insert into reservation (id, lease_id, "position", resource_type, status, min_hosts, max_hosts, hypervisor_properties, resource_properties, before_end)
	select id, id, 0, 'physical:host', 'pending', 1, 1, '', '', 'default' from lease where user_id = 'u';
	insert into host_allocation (reservation_id, host_id, during, owner)
	select l.id, h.id, tstzrange(l.start_at, l.end_at), l.id
	from generate_series(1, 500) n, generate_series(0, 9) i, lease l, host h
	where l.id = md5(n || '/' || i)::uuid and h.service_name = 'compute-' || n;`

// maxCalendar is the maximum size of a page with 500 hosts and about ten leases of each, in bytes.
const maxCalendar = 1 << 20

func TestCalendar_ShowsFiveHundredHostsFor90Days(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	storetest.ExecScript(t, e.url, `set local session_replication_role = replica;`+largeCloud)
	h := e.console(identity.Noauth{})
	w, body := e.send(h, request{"GET", "/console/calendar?zoom=90+days&hosts=500", "", browser("admin")})
	if w.StatusCode != http.StatusOK || len(body) > maxCalendar {
		t.Errorf("500 hosts for 90 days: got %d with %d bytes, want 200 with at most %d", w.StatusCode, len(body), maxCalendar)
	}
	// four hosts of the estate come first
	rows, bars := strings.Count(body, `<th scope="row">`), strings.Count(body, "v12h-")
	if rows != 500 || bars < 4900 {
		t.Errorf("500 hosts for 90 days: got %d rows and %d bars, want 500 rows, and ten bars of most hosts", rows, bars)
	}
	if !strings.Contains(body, `href="/console/calendar?after=`) || !strings.Contains(body, "Zoom in to 4 weeks") ||
		!strings.Contains(body, "10 PENDING") || !strings.Contains(body, "role=\"img\"") {
		t.Errorf("500 hosts for 90 days: want the next hosts, the nearer zoom and the number of leases:\n%.3000s", body)
	}
}

// The table names the free time of a host, and the next free slot of the window's unit.
func TestCalendar_NamesFreeSlots(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	day := time.Now().UTC().Truncate(24 * time.Hour)
	at := func(days int) string { return day.AddDate(0, 0, days).Format("2006-01-02 15:04") }
	storetest.Exec(t, e.url, `delete from host_allocation`)
	begin := day.AddDate(0, 0, 3)
	for i := range 4 { // one lease of each host
		e.createLease(fmt.Sprintf("slot-%d", i), begin, begin.AddDate(0, 0, 2), 1)
	}
	_, detailed := e.send(h, request{"GET", "/console/calendar?from=" + day.AddDate(0, 0, 2).Format("2006-01-02T15:04"), "", browser("admin")})
	for _, want := range []string{"Next free for a day", "<td>" + at(2) + "</td>",
		"<td>free</td><td></td><td>" + at(2) + ":00</td><td>" + at(3) + ":00</td>",
		"<td>free</td><td></td><td>" + at(5) + ":00</td><td>" + at(9) + ":00</td>"} {
		if strings.Count(detailed, want) < 1 {
			t.Errorf("the week from %s: the page does not contain %q:\n%s", at(2), want, detailed)
		}
	}
	_, overview := e.send(h, request{"GET", "/console/calendar?hosts=100&zoom=4+weeks&from=" + day.AddDate(0, 0, 2).Format("2006-01-02T15:04"), "", browser("admin")})
	want := "<td>" + at(5) + "</td><td>1 PENDING</td><td>" + at(2) + " to " + at(3) + "; " + at(5) + " to " + at(30) + "</td>"
	if strings.Count(overview, want) != 4 {
		t.Errorf("the overview of four weeks: want %q for each of the four hosts:\n%s", want, overview)
	}
	storetest.Exec(t, e.url, `update host set reservable = false where id = $1`, e.host.ID)
	_, overview = e.send(h, request{"GET", "/console/calendar?hosts=100", "", browser("admin")})
	if !strings.Contains(overview, "disabled: no new lease gets it") {
		t.Errorf("the overview does not say that the host is disabled:\n%s", overview)
	}
}

// The database refuses double bookings, so the test removes its constraint.
func TestCalendar_MarksDoubleBookings(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	begin := time.Now().Add(200 * time.Hour).Truncate(time.Hour)
	one, two := e.createLease("one", begin, begin.Add(5*time.Hour), 1), e.createLease("two", begin.Add(time.Hour), begin.Add(6*time.Hour), 1)
	from := "/console/calendar?from=" + begin.UTC().Truncate(24*time.Hour).Format("2006-01-02T15:04")
	if _, body := e.send(h, request{"GET", from, "", browser("admin")}); strings.Contains(strings.ToLower(body), "double") {
		t.Errorf("a calendar without double bookings names one:\n%s", body)
	}
	storetest.Exec(t, e.url, `alter table host_allocation drop constraint host_allocation_once`)
	storetest.Exec(t, e.url, `
		update host_allocation set host_id = $1 where reservation_id = any($2)`,
		e.host.ID, []string{one.Reservations[0].ID.String(), two.Reservations[0].ID.String()})
	for path, want := range map[string][]string{
		from:                {"Double bookings on these hosts", "have the host <a href=", `<rect class="bar double"`, "PENDING, double-booked with two\"", "double-booked with one<"},
		from + "&hosts=500": {"Double bookings on these hosts", "2 double-booked"},
	} {
		_, body := e.send(h, request{"GET", path, "", browser("admin")})
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("GET %s: the page does not contain %q:\n%s", path, text, body)
			}
		}
	}
}

func TestCalendar_RefusesInvalidParameters(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	h := e.console(identity.Noauth{})
	for _, parameter := range []string{"zoom=year", "hosts=26", "hosts=5000", "hosts=x", "from=now", "after=-1"} {
		if w, _ := e.send(h, request{"GET", "/console/calendar?" + parameter, "", browser("admin")}); w.StatusCode != http.StatusBadRequest {
			t.Errorf("the calendar with %s: got %d, want 400", parameter, w.StatusCode)
		}
	}
}
