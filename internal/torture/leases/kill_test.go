package leases

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
	"berth/workflows"
)

// TestLease_StartsAndEndsThoughWorkerKilled checks that each step is completed once, not how soon.
func TestLease_StartsAndEndsThoughWorkerKilled(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	useLimitsOfBerth(s)
	api, victim := s.StartWorker("api"), s.StartWorker("relay,temporal")
	lease := harness.CreateHostLease(api, time.Hour, 2*time.Hour)
	path := fmt.Sprint("/reservation/v1/leases/", lease["id"])
	reservation := lease["reservations"].([]any)[0].(servertest.Object)
	awaitStatus := func(status string) {
		t.Helper()
		s.Await("the lease is "+status, harness.LeaseStatusIs(api, path, status))
	}
	allocations := func() int {
		t.Helper()
		return len(
			api.Must("GET", fmt.Sprint("/placement/allocations/", reservation["id"]), nil)["allocations"].(servertest.Object),
		)
	}
	tx, err := storetest.Connect(t, s.Database).Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `select from provider for update`) // blocks allocations
	}
	if err != nil {
		t.Fatal(err)
	}

	setDatesSoon(api, path, time.Hour)
	awaitStatus("STARTING")
	victim.Kill()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := allocations(); n != 0 {
		t.Fatalf(
			"kill the worker during the start of a lease: got %d providers with allocations of the lease, want 0",
			n,
		)
	}
	victim = s.StartWorker("relay,temporal")
	awaitStatus("ACTIVE")
	if n := allocations(); n != 1 {
		t.Errorf("allocations of the ACTIVE lease: got them on %d providers, want 1", n)
	}

	victim.Kill()
	harness.SetDateToNow(api, path, "end_date")
	awaitStatus("ACTIVE") // no worker runs that could end the lease
	s.StartWorker("relay,temporal")
	awaitStatus("TERMINATED")
	if n := allocations(); n != 0 {
		t.Errorf("allocations of the TERMINATED lease: got them on %d providers, want 0", n)
	}
	s.Same(
		"statuses of the events and of the reservation",
		[]string{"end_lease DONE", "reservation deleted", "start_lease DONE"},
		s.Rows(`
		select event_type || ' ' || status from event where event_type <> 'before_end_lease'
		union all select 'reservation ' || status from reservation
		order by 1`),
	)
}

// TestLease_StartsAfterRowsAreUnlocked keeps provider rows locked for longer than one attempt to start a
// lease may last.
func TestLease_StartsAfterRowsAreUnlocked(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	useLimitsOfBerth(s)
	api := s.StartWorker("api,relay,temporal")
	lease := harness.CreateHostLease(api, time.Hour, 2*time.Hour)
	path := fmt.Sprint("/reservation/v1/leases/", lease["id"])
	tx, err := storetest.Connect(t, s.Database).Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `select from provider for update`) // blocks allocations
	}
	if err != nil {
		t.Fatal(err)
	}

	setDatesSoon(api, path, time.Hour)
	s.Await("the lease is STARTING", harness.LeaseStatusIs(api, path, "STARTING"))
	starting := time.Now()
	s.Await("the first attempt has timed out", func() string {
		if wrong := harness.LeaseStatusIs(api, path, "STARTING")(); wrong != "" {
			t.Fatal("read the lease while the provider rows are locked, want it to stay STARTING: ", wrong)
		}
		left := workflows.LocalDatabaseTimeout + 3*time.Second - time.Since(starting)
		return harness.WaitingFor(fmt.Sprint(left, " left"), left <= 0)
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	s.Await("the lease is ACTIVE", harness.LeaseStatusIs(api, path, "ACTIVE"))
}

// useLimitsOfBerth makes the processes wait for a lock only as long as berth's own limits allow, because the
// test keeps rows locked.
func useLimitsOfBerth(s *servertest.Deployment) {
	s.Helper()
	u, err := url.Parse(s.Database)
	if err != nil {
		s.Fatal(err)
	}
	query := u.Query()
	for _, limit := range []string{"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"} {
		query.Del(limit)
	}
	u.RawQuery = query.Encode()
	s.Settings = append(s.Settings, "BERTH_DATABASE_URL="+u.String())
}
