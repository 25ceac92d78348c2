package leasestore_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// The tests of this file keep the order of locks that docs/locks.md describes. A second writer holds the lock
// that a transaction must acquire first. While the transaction waits for this lock, it must not hold the lock
// that comes later in the order.

// lock returns the SQL statement that locks a row; `more` may be "nowait".
func lock(table string, id any, more string) string {
	return fmt.Sprintf(`select from %s where id = '%v' for no key update %s`, table, id, more)
}

// lockNested returns the SQL statement that locks the nested provider of a host.
func lockNested(h lease.Host, more string) string {
	return fmt.Sprintf(`select from provider where uuid = '%s' for no key update %s`, h.NestedProvider, more)
}

func TestLockOrder_LeasesByID(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	lower, higher := e.createLease(hostsDraft(1, 2, 1, 1)), e.createLease(hostsDraft(1, 2, 1, 1))
	if bytes.Compare(lower.ID[:], higher.ID[:]) > 0 {
		lower, higher = higher, lower
	}

	err := storetest.NewRival(t, e.url).RunAgainst(func() error {
		started := []leasestore.StartedStep{{Lease: higher}, {Lease: lower}}
		_, _, err := e.Lease.FinishStartedLeases(t.Context(), started, nil)
		return err
	}, lock("lease", lower.ID, ""), lock("lease", higher.ID, "nowait"))

	if err != nil {
		t.Error(err)
	}
}

func TestLockOrder_LeaseBeforeItsReservation(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	l := e.createActive(addressesDraft(e.registerAddresses(1), 1, 2, 1))
	r := l.Reservations[0].ID

	err := storetest.NewRival(t, e.url).RunAgainst(func() error {
		return e.Lease.SaveNeutronIDs(t.Context(), lease.CloudReservation{Reservation: lease.Reservation{ID: r}}, leasestore.NeutronIDs{CreatedFloatingIPs: []string{"a"}})
	}, lock("lease", l.ID, ""), lock("reservation", r, "nowait"))

	if err != nil {
		t.Error(err)
	}
}

func TestLockOrder_LeaseBeforeHostBeforeProvider(t *testing.T) {
	t.Parallel()
	longer := func(e *fixture, l lease.Lease) error {
		end := lease.RequestedDate{At: hour(5)}
		_, err := e.Lease.UpdateLease(t.Context(), l.ID, lease.Change{End: &end})
		return err
	}
	remove := func(e *fixture, _ lease.Lease) error { return e.Lease.DeleteHost(t.Context(), e.hosts[0].ID) }
	for name, tt := range map[string]struct {
		change        func(e *fixture, l lease.Lease) error
		first, second func(e *fixture, l lease.Lease, more string) string
		free          bool // the lease does not have the host
	}{
		"new dates of a lease": {change: longer, first: lockLease, second: lockFirstHost},
		"deletion of a host": {
			change: remove,
			first:  lockFirstHost,
			second: lockFirstNested,
			free:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFixture(t, 1)
			var l lease.Lease
			if !tt.free {
				l = e.createLease(hostsDraft(1, 2, 1, 1))
			}

			err := storetest.NewRival(t, e.url).RunAgainst(func() error { return tt.change(e, l) },
				tt.first(e, l, ""), tt.second(e, l, "nowait"))

			if err != nil {
				t.Error(err)
			}
		})
	}
}

func lockLease(_ *fixture, l lease.Lease, more string) string  { return lock("lease", l.ID, more) }
func lockFirstHost(e *fixture, _ lease.Lease, m string) string { return lock("host", e.hosts[0].ID, m) }
func lockFirstNested(e *fixture, _ lease.Lease, m string) string {
	return lockNested(e.hosts[0], m)
}

func TestLockOrder_HostsOfAReservationByID(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)

	err := storetest.NewRival(t, e.url).RunAgainst(func() error {
		_, err := e.Lease.CreateLease(t.Context(), hostsDraft(1, 2, 2, 2))
		return err
	}, lock("host", e.hosts[0].ID, ""), lock("host", e.hosts[1].ID, "nowait"))

	if err != nil {
		t.Error(err)
	}
}

func TestLockOrder_RegisteredResourcesByID(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	var ids []uuid.UUID
	for i := range 2 {
		name := fmt.Sprint("iot-", i)
		values := map[string]string{"name": name, "device_type": "container", "device_driver": "zun"}
		r, err := e.Lease.RegisterResource(t.Context(), lease.Device, values)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	d := hostsDraft(1, 2, 1, 1)
	d.Reservations = []lease.ReservationDraft{{
		Type:      lease.Device,
		Min:       2,
		Max:       2,
		BeforeEnd: "default",
	}}

	err := storetest.NewRival(t, e.url).RunAgainst(func() error {
		_, err := e.Lease.CreateLease(t.Context(), d)
		return err
	}, lock("reservable_resource", ids[0], ""), lock("reservable_resource", ids[1], "nowait"))

	if err != nil {
		t.Error(err)
	}
}

// The reservation of instances is the first one of the lease, but the start of the lease locks the provider
// of the whole host first.
func TestLockOrder_WholeHostsBeforeInstances(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	d := instancesDraft(1, 2, 1)
	d.Reservations = append(slices.Clone(d.Reservations), hostsDraft(1, 2, 1, 1).Reservations...)
	l := e.createLease(d)
	e.startDue(l)
	var instances, whole lease.Host
	for _, h := range e.hosts {
		if slices.Contains(l.Reservations[0].Hosts, h.ID) {
			instances = h
		} else {
			whole = h
		}
	}

	err := storetest.NewRival(t, e.url).RunAgainst(func() error {
		got, err := e.advanceOnce(nil)
		if got.finished != 1 {
			t.Errorf("start a lease with instances and a host: got %d finished steps, want 1", got.finished)
		}
		return err
	}, lockNested(whole, ""), lockNested(instances, "nowait"))

	if err != nil {
		t.Error(err)
	}
}

func TestLockedLeases_AreSkippedByTheSweep(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	locked, free := e.createLease(hostsDraft(1, 2, 1, 1)), e.createLease(hostsDraft(1, 2, 1, 1))
	for _, l := range []lease.Lease{locked, free} {
		e.startDue(l)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	rival := storetest.NewRival(t, e.url)
	rival.Do(`begin`)
	rival.Do(lock("lease", locked.ID, ""))

	started, _, err := e.Lease.BeginDueLeases(ctx, false)

	rival.Do(`rollback`)
	if err != nil || len(started) != 1 || started[0].ID != free.ID {
		t.Errorf("begin due leases while one is locked: got %+v, error %v; want the other one", started, err)
	}
}
