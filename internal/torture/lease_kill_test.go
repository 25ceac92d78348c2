package torture

import (
	"fmt"
	"testing"
	"time"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/workflows"
)

// createHostLease makes a lease over the only host, from then to then.
func createHostLease(c *servertest.Worker, start, end time.Duration) servertest.Object {
	c.T.Helper()
	provider := c.Must("POST", "/placement/resource_providers", servertest.Object{"name": "node-1"})
	c.Must("PUT", fmt.Sprint("/placement/resource_providers/", provider["uuid"], "/inventories"), servertest.Object{
		"resource_provider_generation": provider["generation"], "inventories": servertest.Object{"VCPU": servertest.Object{"total": 8}}})
	c.Must("POST", "/reservation/v1/os-hosts", servertest.Object{"name": "node-1"})
	return c.Must("POST", "/reservation/v1/leases", servertest.Object{"name": "night", "start_date": second(start), "end_date": second(end),
		"events": []servertest.Object{}, "reservations": []servertest.Object{{"resource_type": "physical:host", "min": 1, "max": 1,
			"resource_properties": "", "hypervisor_properties": ""}}})["lease"].(servertest.Object)
}

// second is an instant from now on, to the second.
func second(in time.Duration) string { return time.Now().Add(in).UTC().Format(time.RFC3339) }

func TestLease_StartsAndEndsThoughWorkerKilled(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	api, victim := s.StartWorker("api"), s.StartWorker("relay,temporal")
	lease := createHostLease(api, time.Hour, 2*time.Hour)
	path := fmt.Sprint("/reservation/v1/leases/", lease["id"])
	reservation := lease["reservations"].([]any)[0].(servertest.Object)
	becomes := func(status string) {
		t.Helper()
		s.Await("the lease is "+status, func() string {
			if got := api.Must("GET", path, nil)["lease"].(servertest.Object)["status"]; got != status {
				return fmt.Sprint("it is ", got)
			}
			return ""
		})
	}
	held := func() int {
		t.Helper()
		return len(api.Must("GET", fmt.Sprint("/placement/allocations/", reservation["id"]), nil)["allocations"].(servertest.Object))
	}
	tx, err := storetest.Connect(t, s.Database).Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `select from provider for update`) // nobody can allocate
	}
	if err != nil {
		t.Fatal(err)
	}

	api.Must("PUT", path, servertest.Object{"start_date": second(2 * time.Second)})
	becomes("STARTING")
	victim.Kill()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := held(); n != 0 {
		t.Fatalf("the kill missed its moment: %d allocations", n)
	}
	victim = s.StartWorker("relay,temporal")
	becomes("ACTIVE")
	if n := held(); n != 1 {
		t.Errorf("an ACTIVE lease holds %d providers", n)
	}

	victim.Kill()
	end := time.Now().Add(2 * time.Second)
	api.Must("PUT", path, servertest.Object{"end_date": end.UTC().Format(time.RFC3339)})
	s.Await("the end is over", func() string {
		if left := time.Until(end); left > 0 {
			return fmt.Sprint(left, " are left")
		}
		return ""
	})
	becomes("ACTIVE") // nobody is there to end it
	s.StartWorker("relay,temporal")
	becomes("TERMINATED")
	if n := held(); n != 0 {
		t.Errorf("a TERMINATED lease holds %d providers", n)
	}
	s.Same("what became of its events and of its reservation", []string{"end_lease DONE", "reservation deleted", "start_lease DONE"}, s.Rows(`
		select event_type || ' ' || status from event where event_type <> 'before_end_lease'
		union all select 'reservation ' || status from reservation
		order by 1`))
}

// TestLease_StartsAfterRowsAreUnlocked lets a start wait for longer than one attempt at it lasts.
func TestLease_StartsAfterRowsAreUnlocked(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	api := s.StartWorker("api,relay,temporal")
	lease := createHostLease(api, time.Hour, 2*time.Hour)
	path := fmt.Sprint("/reservation/v1/leases/", lease["id"])
	status := func(want string) func() string {
		return func() string {
			if got := api.Must("GET", path, nil)["lease"].(servertest.Object)["status"]; got != want {
				return fmt.Sprint("it is ", got)
			}
			return ""
		}
	}
	tx, err := storetest.Connect(t, s.Database).Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `select from provider for update`) // nobody can allocate
	}
	if err != nil {
		t.Fatal(err)
	}

	api.Must("PUT", path, servertest.Object{"start_date": second(time.Second)})
	s.Await("the lease is STARTING", status("STARTING"))
	held := time.Now()
	s.Await("an attempt is over", func() string {
		if still := status("STARTING")(); still != "" {
			t.Fatal("while its rows are held, ", still)
		}
		if left := workflows.LocalDatabaseTimeout + 3*time.Second - time.Since(held); left > 0 {
			return fmt.Sprint(left, " are left")
		}
		return ""
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	s.Await("the lease is ACTIVE", status("ACTIVE"))
}
