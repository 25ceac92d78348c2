package leasestore_test

import (
	"testing"
	"time"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// setQuota replaces the fixture's store of leases by one with a quota.
func (t *fixture) setQuota(limits map[string]int64, exempt ...string) {
	t.Lease = leasestore.New(t.DB,
		leasestore.Config{Quota: lease.Quota{Limits: limits, ExemptProjects: exempt}})
}

func TestLeaseQuota_CountsLeasesUntilTheyEnd(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 9)
	exempt, another := hostsDraft(1, 2, 1, 1), hostsDraft(1, 2, 1, 1)
	exempt.Project, another.Project = "lab", "q"
	for _, status := range []lease.Status{lease.Pending, lease.Starting, lease.Active, lease.Terminating, lease.Error, lease.Deleting} {
		t.Run(string(status), func(t *testing.T) {
			e := e.withT(t)
			e.setQuota(map[string]int64{lease.QuotaLeases: 1}, "lab")
			l := e.createInStatus(status)
			e.expectCreateFault(hostsDraft(1, 2, 1, 1), lease.QuotaExceeded)
			_, err := e.Lease.PlanLease(t.Context(), hostsDraft(1, 2, 1, 1), nil)
			if faultKind(err) != lease.QuotaExceeded {
				t.Errorf(
					"plan a lease beyond the quota: got error %v, want a fault of kind QuotaExceeded",
					err,
				)
			}
			_, err = e.Lease.UpdateLease(t.Context(), l.ID, lease.Change{Name: new("new")})
			if faultKind(err) == lease.QuotaExceeded {
				t.Errorf("rename the only lease of a project whose quota is one lease: got error %v", err)
			}
			e.deleteLease(e.createLease(exempt).ID)
			e.deleteLease(e.createLease(another).ID)

			if status != lease.Deleting {
				e.deleteLease(l.ID)
			} else {
				e.release(l)
				if _, err := e.Lease.FinishLease(t.Context(), l.ID, lease.StepDelete, nil); err != nil {
					t.Fatal(err)
				}
			}
			e.deleteLease(e.createLease(hostsDraft(1, 2, 1, 1)).ID)
		})
	}
	t.Run("reservations", func(t *testing.T) {
		e := e.withT(t)
		e.setQuota(map[string]int64{lease.QuotaReservations: 3, lease.QuotaReservationsPerLease: 2})
		two, three := hostsDraft(1, 2, 1, 1), hostsDraft(1, 2, 1, 1)
		two.Reservations = append(two.Reservations, two.Reservations[0])
		three.Reservations = append(three.Reservations, two.Reservations...)
		e.expectCreateFault(three, lease.QuotaExceeded)
		first := e.createLease(two)
		e.expectCreateFault(two, lease.QuotaExceeded)
		e.createLease(hostsDraft(1, 2, 1, 1))
		e.expectCreateFault(hostsDraft(1, 2, 1, 1), lease.QuotaExceeded)
		e.deleteLease(first.ID)
		e.createLease(two)
	})
	t.Run("ended leases", func(t *testing.T) {
		e := newFixture(t, 4)
		e.setQuota(map[string]int64{lease.QuotaLeases: 1, lease.QuotaReservations: 1})
		e.createInStatus(lease.Terminated)
		failed := e.createInStatus(lease.Error)
		e.expectCreateFault(hostsDraft(1, 2, 1, 1), lease.QuotaExceeded) // its end is still to come
		e.beginStep(failed.ID, lease.StepEnd)
		e.finishStep(failed.ID, lease.StepEnd, nil)
		held := e.failEnd(e.createInStatus(lease.Active))
		e.expectCreateFault(hostsDraft(1, 2, 1, 1), lease.QuotaExceeded) // it still has its host
		e.release(held)
		e.finishStep(held.ID, lease.StepClear, nil)
		e.createLease(hostsDraft(1, 2, 1, 1))
	})
}

// Two transactions create a lease at the same time, and neither can commit before both have checked the quota
// or wait for the other.
func TestLeaseQuota_ConcurrentCreationsDoNotExceedIt(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 3)
	e.setQuota(map[string]int64{lease.QuotaLeases: 2, lease.QuotaReservations: 2})
	e.createLease(hostsDraft(1, 2, 1, 1))
	holder, watcher := storetest.Connect(t, e.url), storetest.Connect(t, e.url)
	if _, err := holder.Exec(t.Context(), `begin; lock table reservation in share mode`); err != nil {
		t.Fatal(err)
	}
	const rivals = 2
	made := make(chan error, rivals)
	for range rivals {
		go func() {
			_, err := e.Lease.CreateLease(t.Context(), hostsDraft(1, 2, 1, 1))
			made <- err
		}()
	}
	for waiting := 0; waiting+len(made) < rivals; time.Sleep(time.Millisecond) {
		if err := watcher.QueryRow(t.Context(), `
			select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := holder.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}

	created := 0
	for range rivals {
		switch err := <-made; {
		case err == nil:
			created++
		case faultKind(err) != lease.QuotaExceeded:
			t.Errorf(
				"create a lease beside another one: got error %v, want none or a fault of kind QuotaExceeded",
				err,
			)
		}
	}
	if created != 1 {
		t.Errorf("two concurrent creations of the last lease of a quota: got %d leases, want 1", created)
	}
}
