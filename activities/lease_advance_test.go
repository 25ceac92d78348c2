package activities_test

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"berth/activities"
	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// skewed returns a store and the URL of the store's database. The clock of this database is ahead of the
// test's clock by the given duration.
func skewed(t *testing.T, by time.Duration) (*store.Store, string) {
	t.Helper()
	at := storetest.URL(t)
	interval := fmt.Sprintf("interval '%d milliseconds'", by.Milliseconds())
	// the tests' own trigger, which assumes that all processes share one clock
	storetest.Exec(t, at, `drop function check_generation() cascade`)
	storetest.Exec(t, at, `create schema skew`)
	storetest.Exec(
		t,
		at,
		`create function skew.now() returns timestamptz language sql stable as $$ select pg_catalog.now() + `+interval+` $$`,
	)
	storetest.Exec(
		t,
		at,
		`create function skew.clock_timestamp() returns timestamptz language sql volatile as $$ select pg_catalog.clock_timestamp() + `+interval+` $$`,
	)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", "skew,pg_catalog,public")
	u.RawQuery = query.Encode()
	s, err := store.Open(t.Context(), u.String(), storetest.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var ahead bool
	if err := storetest.Connect(t, u.String()).QueryRow(t.Context(), `select clock_timestamp() > pg_catalog.clock_timestamp() + interval '1 second'`).Scan(&ahead); err != nil ||
		ahead != (by > 0) {
		t.Fatalf(
			"whether the database's clock is ahead of the test's clock: got %t, error %v; want true only for a positive difference",
			ahead,
			err,
		)
	}
	return s, at
}

// createLease creates a lease that starts in an hour.
func createLease(t *testing.T, s *store.Store) lease.Lease {
	t.Helper()
	if _, err := s.Inventory.CreateProvider(t.Context(), inventory.ProviderDraft{UUID: hostUUIDs["cmp-1"], Name: "cmp-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: "cmp-1"}, nil); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(time.Hour)
	l := createOneHourLease(t, s, "l", "p", at, lease.ReservationDraft{Type: lease.PhysicalHost, Min: 1, Max: 1})
	return l
}

// A lease starts when both the worker's clock and the database's clock have reached the lease's start time;
// so the slower clock decides. The lease starts immediately after the slower clock has reached the start
// time, so the delay is at most the difference between the two clocks.
func TestLeaseStartsWhenBothClocksSaySo(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-2 * time.Second, 0, 2 * time.Second} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			s, url := skewed(t, by)
			l := createLease(t, s)
			acts := newActivities(activities.Options{Store: s})
			// only now, because the creation of a lease takes long on a slow machine
			at := time.Now().Add(time.Second + by.Abs())
			storetest.Exec(t, url,
				`update event set at = $2 where lease_id = $1 and event_type = 'start_lease'`, l.ID, at)

			n, err := acts.AdvanceLeases(t.Context(), at)

			if n != 1 || err != nil {
				t.Errorf("advance the leases at their start: got %d advanced, error %v; want 1", n, err)
			}
			l, err = s.Lease.Lease(t.Context(), l.ID)
			if err != nil || l.Status != lease.Active {
				t.Fatalf("read the lease after its start: got %+v, error %v; want ACTIVE", l, err)
			}
			if now := time.Now(); now.Before(at) {
				t.Errorf(
					"start of the lease by the worker's clock: got it %s before its time, want it not before its time",
					at.Sub(now),
				)
			}
			if l.UpdatedAt.Before(at) {
				t.Errorf(
					"start of the lease by the database's clock: got it %s before its time, want it not before its time",
					at.Sub(*l.UpdatedAt),
				)
			}
		})
	}
}

// The database accepts a step of a lease that begins at most lease.ClockSkew before its time, because a
// worker's clock may be ahead of the database's clock.
func TestStepThatIsALittleEarlyIsTaken(t *testing.T) {
	t.Parallel()
	s, at := skewed(t, 0)
	l := createLease(t, s)
	acts := newActivities(activities.Options{Store: s})
	move := func(in time.Duration) {
		t.Helper()
		storetest.Exec(
			t, at,
			`update event set at = clock_timestamp() + $2::interval where lease_id = $1 and event_type = 'start_lease'`,
			l.ID, in,
		)
	}
	move(lease.ClockSkew + time.Minute)
	var app *temporal.ApplicationError
	if _, err := acts.BeginLease(t.Context(), l.ID, lease.StepStart); !errors.As(err, &app) ||
		app.Type() != activities.Conflict {
		t.Errorf("begin a step a minute more than ClockSkew too early: got error %v, want Conflict", err)
	}
	move(lease.ClockSkew - time.Second)
	if got, err := acts.BeginLease(t.Context(), l.ID, lease.StepStart); err != nil ||
		got.Status != lease.Starting {
		t.Errorf(
			"begin a step a second less than ClockSkew too early: got %+v, error %v; want STARTING",
			got,
			err,
		)
	}
}
