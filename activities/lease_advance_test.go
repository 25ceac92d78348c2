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
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// skewed is a store on a database whose clock is that much ahead of ours.
func skewed(t *testing.T, by time.Duration) (*store.Store, string) {
	t.Helper()
	at := storetest.URL(t)
	interval := fmt.Sprintf("interval '%d milliseconds'", by.Milliseconds())
	storetest.Exec(t, at, `drop function check_generation() cascade`) // the tests' own guard, which believes in one clock
	storetest.Exec(t, at, `create schema skew`)
	storetest.Exec(t, at, `create function skew.now() returns timestamptz language sql stable as $$ select pg_catalog.now() + `+interval+` $$`)
	storetest.Exec(t, at, `create function skew.clock_timestamp() returns timestamptz language sql volatile as $$ select pg_catalog.clock_timestamp() + `+interval+` $$`)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", "skew,pg_catalog,public")
	u.RawQuery = query.Encode()
	s, err := store.Open(t.Context(), u.String(), store.Config{Lease: leasestore.Config{Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var ahead bool
	if err := storetest.Connect(t, u.String()).QueryRow(t.Context(), `select clock_timestamp() > pg_catalog.clock_timestamp() + interval '1 second'`).Scan(&ahead); err != nil ||
		ahead != (by > 0) {
		t.Fatalf("its clock is ahead: %t, %v", ahead, err)
	}
	return s, at
}

// leaseAt makes a lease that starts then.
func leaseAt(t *testing.T, s *store.Store, at time.Time) lease.Lease {
	t.Helper()
	if _, err := s.Inventory.CreateProvider(t.Context(), inventory.ProviderDraft{UUID: hostUUIDs["cmp-1"], Name: "cmp-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lease.RegisterHost(t.Context(), "cmp-1", nil); err != nil {
		t.Fatal(err)
	}
	l, err := s.Lease.CreateLease(t.Context(), lease.Draft{Name: "l", User: "u", Project: "p", Start: lease.RequestedDate{At: at}, End: lease.RequestedDate{At: at.Add(time.Hour)},
		Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: 1, Max: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Whoever's clock is behind decides: a lease never starts before its time by either clock, and then at once, so it is late
// by no more than the two differ.
func TestLeaseStartsWhenBothClocksSaySo(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-2 * time.Second, 0, 2 * time.Second} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			s, _ := skewed(t, by)
			at := time.Now().Add(time.Second + by.Abs())
			l := leaseAt(t, s, at)
			acts := activities.New(activities.Options{Store: s})

			n, err := acts.AdvanceLeases(t.Context(), at)

			if n != 1 || err != nil {
				t.Errorf("%d started, %v", n, err)
			}
			l, err = s.Lease.Lease(t.Context(), l.ID)
			if err != nil || l.Status != lease.Active {
				t.Fatalf("%+v, %v", l, err)
			}
			if now := time.Now(); now.Before(at) {
				t.Errorf("by our clock it is early by %s", at.Sub(now))
			}
			if l.UpdatedAt.Before(at) {
				t.Errorf("by the database's clock it is early by %s", at.Sub(*l.UpdatedAt))
			}
		})
	}
}

// A step that somebody with a clock ahead of the database's begins is taken, within reason.
func TestStepThatIsALittleEarlyIsTaken(t *testing.T) {
	t.Parallel()
	s, at := skewed(t, 0)
	l := leaseAt(t, s, time.Now().Add(time.Hour))
	acts := activities.New(activities.Options{Store: s})
	move := func(in time.Duration) {
		t.Helper()
		storetest.Exec(t, at, `update event set at = clock_timestamp() + $2::interval where lease_id = $1 and event_type = 'start_lease'`, l.ID, in)
	}
	move(lease.ClockSkew + time.Minute)
	var app *temporal.ApplicationError
	if _, err := acts.BeginLease(t.Context(), l.ID, lease.StepStart); !errors.As(err, &app) || app.Type() != activities.Conflict {
		t.Errorf("far too early: %v", err)
	}
	move(lease.ClockSkew - time.Second)
	if got, err := acts.BeginLease(t.Context(), l.ID, lease.StepStart); err != nil || got.Status != lease.Starting {
		t.Errorf("%+v, %v", got, err)
	}
}
