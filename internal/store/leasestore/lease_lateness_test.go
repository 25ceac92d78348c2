package leasestore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

func TestLateness_ReportedOncePerFinishedStartAndEnd(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 2)
	var got []string
	e.Lease = leasestore.New(e.DB, leasestore.Config{OnFinished: func(step lease.Step, late time.Duration) {
		got = append(got, string(step)+" "+late.Truncate(time.Hour).String())
	}})
	batched, single := e.createLease(hostsDraft(1, 2, 1, 1)), e.createLease(hostsDraft(1, 2, 1, 1))
	for _, l := range []lease.Lease{batched, single} {
		storetest.Exec(
			t,
			e.url,
			`update lease set start_at = now() - interval '3 hours', end_at = now() - interval '2 hours' where id = $1`,
			l.ID,
		)
	}
	storetest.Exec(t, e.url, `update event set at = now() where lease_id = $1`, batched.ID)
	e.advance(2) // the start and the end
	storetest.Exec(t, e.url,
		`update event set at = now() where lease_id = $1 and event_type = 'start_lease'`, single.ID)
	e.beginStep(single.ID, lease.StepStart)
	e.addToInventory(single)
	for range 2 {
		e.finishStep(single.ID, lease.StepStart, nil)
	}

	slices.Sort(got)
	if d := cmp.Diff([]string{"end 2h0m0s", "start 3h0m0s", "start 3h0m0s"}, got); d != "" {
		t.Errorf("reported lateness by step (-want +got):\n%s", d)
	}
}
