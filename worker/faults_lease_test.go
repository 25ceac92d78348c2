package main

import (
	"fmt"
	"testing"
	"time"

	"berth/internal/store/storetest"
	"berth/workflows"
)

// lease makes a lease over the only host, from then to then.
func (c *child) lease(start, end time.Duration) object {
	c.t.Helper()
	provider := c.must("POST", "/placement/resource_providers", object{"name": "node-1"})
	c.must("PUT", fmt.Sprint("/placement/resource_providers/", provider["uuid"], "/inventories"), object{
		"resource_provider_generation": provider["generation"], "inventories": object{"VCPU": object{"total": 8}}})
	c.must("POST", "/reservation/v1/os-hosts", object{"name": "node-1"})
	return c.must("POST", "/reservation/v1/leases", object{"name": "night", "start_date": second(start), "end_date": second(end),
		"events": []object{}, "reservations": []object{{"resource_type": "physical:host", "min": 1, "max": 1,
			"resource_properties": "", "hypervisor_properties": ""}}})["lease"].(object)
}

// second is an instant from now on, to the second.
func second(in time.Duration) string { return time.Now().Add(in).UTC().Format(time.RFC3339) }

func TestLeaseStartsAndEndsThoughItsWorkerIsKilled(t *testing.T) {
	t.Parallel()
	s, _ := sharedSite(t)
	api, victim := s.start("api"), s.start("relay,temporal")
	lease := api.lease(time.Hour, 2*time.Hour)
	path := fmt.Sprint("/reservation/v1/leases/", lease["id"])
	reservation := lease["reservations"].([]any)[0].(object)
	becomes := func(status string) {
		t.Helper()
		s.until("the lease is "+status, func() string {
			if got := api.must("GET", path, nil)["lease"].(object)["status"]; got != status {
				return fmt.Sprint("it is ", got)
			}
			return ""
		})
	}
	held := func() int {
		t.Helper()
		return len(api.must("GET", fmt.Sprint("/placement/allocations/", reservation["id"]), nil)["allocations"].(object))
	}
	tx, err := storetest.Connect(t, s.db).Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `select from provider for update`) // nobody can allocate
	}
	if err != nil {
		t.Fatal(err)
	}

	api.must("PUT", path, object{"start_date": second(2 * time.Second)})
	becomes("STARTING")
	victim.kill()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := held(); n != 0 {
		t.Fatalf("the kill missed its moment: %d allocations", n)
	}
	victim = s.start("relay,temporal")
	becomes("ACTIVE")
	if n := held(); n != 1 {
		t.Errorf("an ACTIVE lease holds %d providers", n)
	}

	victim.kill()
	end := time.Now().Add(2 * time.Second)
	api.must("PUT", path, object{"end_date": end.UTC().Format(time.RFC3339)})
	s.until("the end is over", func() string {
		if left := time.Until(end); left > 0 {
			return fmt.Sprint(left, " are left")
		}
		return ""
	})
	becomes("ACTIVE") // nobody is there to end it
	s.start("relay,temporal")
	becomes("TERMINATED")
	if n := held(); n != 0 {
		t.Errorf("a TERMINATED lease holds %d providers", n)
	}
	s.same("what became of its events and of its reservation", []string{"end_lease DONE", "reservation deleted", "start_lease DONE"}, s.rows(`
		select event_type || ' ' || status from event where event_type <> 'before_end_lease'
		union all select 'reservation ' || status from reservation
		order by 1`))
}

// TestLeaseWaitsForRowsThatSomebodyHolds lets a start wait for longer than one attempt at it lasts.
func TestLeaseWaitsForRowsThatSomebodyHolds(t *testing.T) {
	t.Parallel()
	s, _ := sharedSite(t)
	api := s.start("api,relay,temporal")
	lease := api.lease(time.Hour, 2*time.Hour)
	path := fmt.Sprint("/reservation/v1/leases/", lease["id"])
	status := func(want string) func() string {
		return func() string {
			if got := api.must("GET", path, nil)["lease"].(object)["status"]; got != want {
				return fmt.Sprint("it is ", got)
			}
			return ""
		}
	}
	tx, err := storetest.Connect(t, s.db).Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `select from provider for update`) // nobody can allocate
	}
	if err != nil {
		t.Fatal(err)
	}

	api.must("PUT", path, object{"start_date": second(time.Second)})
	s.until("the lease is STARTING", status("STARTING"))
	held := time.Now()
	s.until("an attempt is over", func() string {
		if still := status("STARTING")(); still != "" {
			t.Fatal("while its rows are held, ", still)
		}
		if left := workflows.QuickAttempt + 3*time.Second - time.Since(held); left > 0 {
			return fmt.Sprint(left, " are left")
		}
		return ""
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	s.until("the lease is ACTIVE", status("ACTIVE"))
}
