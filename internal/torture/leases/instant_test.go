package leases

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
)

// TestLeases_ManyAtOneInstantOnSlowTemporalAreAllFinal lets 250 leases start at one instant. At that instant,
// clients delete a third of the leases and change the end dates of another third. Meanwhile, each answer of
// Temporal takes 200 to 400 ms.
func TestLeases_ManyAtOneInstantOnSlowTemporalAreAllFinal(t *testing.T) {
	t.Parallel()
	_, settings := servertest.NewNamespace(t)
	address, _ := strings.CutPrefix(settings[0], "TEMPORAL_ADDRESS=")
	temporal := harness.NewLink(t, address)
	s := servertest.NewDeployment(t, storetest.URL(t), "TEMPORAL_ADDRESS="+temporal.Listen, settings[1])
	s.Settings = append(s.Settings, "BERTH_NOVA_URL="+servertest.Serve(t, s.Nova))
	api := s.StartWorker("api")
	s.StartWorker("relay,temporal")
	leases := make([]string, 250)
	begin := time.Now()
	eachOf(t, leases, func(i int) error {
		leases[i] = harness.CreateLeaseOf(api, fmt.Sprint("node-", i), time.Hour, 24*time.Hour)
		return nil
	})
	creation := time.Since(begin)
	if err := temporal.Slow(200); err != nil {
		t.Fatal(err)
	}

	instant := time.Now().Add(creation + 5*time.Second)
	// all changes are done before this instant, because a change of a lease takes less time than its
	// creation
	eachOf(t, leases, func(i int) error {
		return accepted(api, http.MethodPut, leases[i],
			func() any { return servertest.Object{"start_date": instant.UTC().Format(time.RFC3339)} })
	})
	time.Sleep(time.Until(instant)) // the instant of the starts is an input of the test
	eachOf(t, leases, func(i int) error {
		switch i % 3 {
		case 0:
			return accepted(api, http.MethodDelete, leases[i], func() any { return nil })
		case 1:
			return accepted(api, http.MethodPut, leases[i],
				func() any { return servertest.Object{"end_date": harness.TimeIn(10 * time.Second)} })
		}
		return nil
	})

	changed := time.Now()
	s.Await("all leases are final", func() string {
		count := strings.Join(
			s.Rows(`select status || ' ' || count(*) from lease group by status order by status`),
			", ",
		)
		return harness.WaitingFor(count, count == "ACTIVE 83, TERMINATED 83")
	})
	harness.LogTime(t, changed,
		"bringing 250 leases to their final status, including 10 s until the changed end dates,")
	s.Same("hosts with allocations", []string{"83"},
		s.Rows(`select count(distinct provider_id)::text from allocation`))
	s.Same("events that are not done", []string{"before_end_lease UNDONE 83", "end_lease UNDONE 83"}, s.Rows(`
		select event_type || ' ' || status || ' ' || count(*) from event where status <> 'DONE' group by event_type, status order by 1`))
}

// eachOf calls f for the index of each element, eight at a time.
func eachOf(t *testing.T, all []string, f func(i int) error) {
	t.Helper()
	var calls errgroup.Group
	calls.SetLimit(8)
	for i := range all {
		calls.Go(func() error { return f(i) })
	}
	if err := calls.Wait(); err != nil {
		t.Fatal(err)
	}
}

// accepted sends a request until the API accepts it. The API answers 409 to a change of a lease while the
// start or the end of the lease is in progress. The function `body` returns the body of each attempt, because
// a body can contain a date that depends on the present time.
func accepted(c *servertest.Worker, method, path string, body func() any) error {
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		code, answer, err := c.Do(method, path, body())
		if err == nil && code < http.StatusMultipleChoices {
			return nil
		}
		again := err != nil ||
			slices.Contains([]int{http.StatusConflict, http.StatusServiceUnavailable}, code)
		if !again || time.Since(begin) > 10*time.Minute {
			return fmt.Errorf("%s %s: got %d %v, error %w; want success", method, path, code, answer, err)
		}
	}
}
