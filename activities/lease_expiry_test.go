package activities_test

import (
	"testing"
	"time"

	"berth/activities"
	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// An overdue lease that cannot be expired in time, here because another transaction has locked its event,
// does not keep the leases of other projects from starting.
func TestAdvanceLeases_SlowExpiryDelaysNoOtherLease(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	acts := newActivities(activities.Options{Store: s})
	acts.Timeouts.Expire = 100 * time.Millisecond
	for _, host := range []string{"cmp-1", "cmp-2"} {
		if _, err := s.Inventory.CreateProvider(t.Context(), inventory.ProviderDraft{UUID: hostUUIDs[host], Name: host}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: host}, nil); err != nil {
			t.Fatal(err)
		}
	}
	on := func(host, project string, hours int) lease.Lease {
		return createOneHourLease(t, s, "l", project, time.Now().Add(time.Duration(hours)*time.Hour), lease.ReservationDraft{
			Type:                 lease.PhysicalHost,
			Min:                  1,
			Max:                  1,
			HypervisorProperties: `["==", "$hypervisor_hostname", "` + host + `"]`,
		})
	}
	stuck, overdue, other := on("cmp-1", "p", 2), on("cmp-1", "p", 4), on("cmp-2", "q", 2)
	move := func(l lease.Lease, from, to string) {
		t.Helper()
		storetest.Exec(t, url, `update lease set start_at = now() + $2::interval, end_at = now() + $3::interval where id = $1`, l.ID, from, to)
		storetest.Exec(t, url, `
			update event set at = now() + case event_type when 'start_lease' then $2::interval else $3::interval end
			where lease_id = $1 and event_type <> 'before_end_lease'`, l.ID, from, to)
		storetest.Exec(t, url, `
			update host_allocation set during = tstzrange(now() + $2::interval, now() + $3::interval)
			where reservation_id = $1`, l.Reservations[0].ID, from, to)
	}
	move(stuck, "-3 hours", "-2 hours")
	move(overdue, "-2 hours", "-1 hour")
	move(other, "-1 hour", "1 hour")
	storetest.ExecScript(t, url, `
		set local session_replication_role = replica;
		update lease set status = 'ERROR' where id = '`+stuck.ID.String()+`';
		update event set status = case event_type when 'end_lease' then 'ERROR' else 'DONE' end where lease_id = '`+stuck.ID.String()+`'`)
	blocking := storetest.Connect(t, url)
	for _, sql := range []string{`begin`, `select from event where lease_id = '` + overdue.ID.String() + `' for update`} {
		if _, err := blocking.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := acts.AdvanceLeases(t.Context(), time.Now()); err != nil {
		t.Errorf("advance the leases while the expiry of a lease waits: got error %v, want none", err)
	}

	expectLeaseStatus(t, s, other, lease.Active)
	expectLeaseStatus(t, s, overdue, lease.Pending)
	if _, err := blocking.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if _, err := newActivities(activities.Options{Store: s}).AdvanceLeases(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	expectLeaseStatus(t, s, overdue, lease.Error)
}

// expectLeaseStatus checks the status of a lease in the database.
func expectLeaseStatus(t *testing.T, s *store.Store, l lease.Lease, want lease.Status) {
	t.Helper()
	got, err := s.Lease.Lease(t.Context(), l.ID)
	if err != nil || got.Status != want {
		t.Errorf("status of lease %s of project %s: got %s, error %v; want %s", l.ID, l.Project, got.Status, err, want)
	}
}
