package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/lease"
)

func TestLease_StartsAndEndsOnTime(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Hour, 48*time.Hour)

	w.run(t)

	want := []string{
		"1h0m0s: STARTING",
		"1h0m0s: ACTIVE with 1 provisioned",
		"48h0m0s: TERMINATING",
		"48h0m0s: TERMINATED with 0 provisioned",
	}
	w.expectLog(t, want)
}

// The leases with the lowest ranks (the leaders) perform the step for all leases of one instant. The
// workflows of the other leases (the followers) wake up after the common instant, one after another.
func TestLease_FollowersWakeStaggeredByRank(t *testing.T) {
	t.Parallel()
	for rank, want := range map[int]string{
		0:     "1h0m0s",
		3:     "1h0m0s",
		4:     "1h0m6s",
		100:   "1h0m10s",
		1000:  "1h0m29s",
		10000: "1h2m43s",
	} {
		t.Run(fmt.Sprint(rank), func(t *testing.T) {
			t.Parallel()
			w := newSteppedLease(time.Hour, 48*time.Hour)
			w.lease.Rank = rank

			w.run(t)

			if got := w.log[0]; got != want+": STARTING" {
				t.Errorf("first step of the lease: got %s, want STARTING at %s", got, want)
			}
		})
	}
}

func TestLease_ProlongedLeaseEndsAtNewTime(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Hour, 2*time.Hour)
	schedule(w.env, 90*time.Minute, func() {
		w.mu.Lock()
		w.lease.Events = slices.Clone(w.lease.Events)
		w.lease.Events[1].At = w.created.Add(5 * time.Hour)
		w.mu.Unlock()
		w.env.SignalWorkflow(contract.SignalChanged, nil)
	})

	w.run(t)

	want := []string{
		"1h0m0s: STARTING",
		"1h0m0s: ACTIVE with 1 provisioned",
		"5h0m0s: TERMINATING",
		"5h0m0s: TERMINATED with 0 provisioned",
	}
	w.expectLog(t, want)
}

// Temporal cannot store the time of a timer that fires after the year 2262.
func TestLease_EndInTheYear9999NeedsNoTimerOfMoreThanAYear(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Hour, 48*time.Hour)
	end := time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC)
	w.lease.EndAt, w.lease.Events[1].At = end, end
	var longest time.Duration
	w.env.SetOnTimerScheduledListener(func(_ string, d time.Duration) { longest = max(longest, d) })
	const threeYears = 3 * 365 * 24 * time.Hour
	schedule(w.env, threeYears, func() {
		w.mu.Lock()
		w.lease.DeleteRequested = true
		w.mu.Unlock()
		w.env.SignalWorkflow(contract.SignalChanged, nil)
	})

	w.run(t)

	want := []string{
		"1h0m0s: STARTING",
		"1h0m0s: ACTIVE with 1 provisioned",
		"26280h0m0s: DELETING",
		"26280h0m0s: deleted with 0 provisioned",
	}
	w.expectLog(t, want)
	if limit := 366 * 24 * time.Hour; longest > limit {
		t.Errorf("longest timer of a lease that ends in the year 9999: got %s, want at most %s", longest, limit)
	}
}

func TestLease_DeletionInterruptsWaiting(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Hour, 48*time.Hour)
	schedule(w.env, 2*time.Hour, func() {
		w.mu.Lock()
		w.lease.DeleteRequested = true
		w.mu.Unlock()
		w.env.SignalWorkflow(contract.SignalChanged, nil)
	})

	w.run(t)

	want := []string{
		"1h0m0s: STARTING",
		"1h0m0s: ACTIVE with 1 provisioned",
		"2h0m0s: DELETING",
		"2h0m0s: deleted with 0 provisioned",
	}
	w.expectLog(t, want)
}

func TestLease_ResumesInterruptedStart(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(-time.Minute, time.Hour)
	l, err := lease.BeginStep(w.lease, lease.StepStart, w.created)
	if err != nil {
		t.Fatal(err)
	}
	w.lease = l

	w.run(t)

	want := []string{
		"0s: STARTING",
		"0s: ACTIVE with 1 provisioned",
		"1h0m0s: TERMINATING",
		"1h0m0s: TERMINATED with 0 provisioned",
	}
	w.expectLog(t, want)
}

func TestLease_PausesAfterConflict(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Minute, time.Hour)
	w.conflicts = 3

	w.run(t)

	if len(w.log) == 0 || w.log[0] != "1m3s: STARTING" {
		t.Errorf(
			"log of a lease whose start has 3 conflicts: want STARTING 3 s late, after 3 pauses; got %v",
			w.log,
		)
	}
}

func TestLease_FailedReservationEndsInErrorAndReleasesHosts(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Minute, time.Hour)
	w.provisionErr = temporal.NewNonRetryableApplicationError("the provider has no free capacity",
		activities.Conflict, nil)

	w.run(t)

	want := []string{
		"1m0s: STARTING",
		"1m0s: ERROR with 0 provisioned",
		"1h0m0s: TERMINATING",
		"1h0m0s: ERROR with 0 provisioned",
	}
	w.expectLog(t, want)
	if w.lease.Reservations[0].LastError == "" {
		t.Error("the failed reservation has no error text, want one")
	}
}

func TestLease_WhyContainsStartAsDeadline(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Hour, 2*time.Hour)
	schedule(w.env, time.Minute, func() {
		why := queryWhy(t, w.env)
		if why.State != "PENDING" || len(why.Waiting) != 1 ||
			!why.Waiting[0].Deadline.Equal(w.created.Add(time.Hour)) {
			t.Errorf(
				"query \"why\" before the start: want PENDING with the start as the deadline, got %+v",
				why,
			)
		}
	})

	w.run(t)
}

func TestLease_RetriesFailedCloudCalls(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Minute, time.Hour)
	w.cloudFailures = 4

	w.run(t)

	// The first three attempts are followed by pauses of 0.5, 1 and 2 seconds.
	want := []string{
		"1m0s: STARTING",
		"1m4s: ACTIVE with 1 provisioned",
		"1h0m0s: TERMINATING",
		"1h0m0s: TERMINATED with 0 provisioned",
	}
	w.expectLog(t, want)
}

func TestLease_PermanentCloudFailureEndsInErrorAndReleases(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Minute, time.Hour)
	w.cloudFailures = 1_000_000
	schedule(w.env, 30*time.Minute, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.lease.Status != lease.Error || w.lease.Reservations[0].LastError != "Nova answered 503" {
			t.Errorf("lease after the failed start: got %+v, want ERROR with Nova's answer 503", w.lease)
		}
		w.cloudFailures, w.cloudAttempts = 0, 0
	})

	w.run(t)

	if len(w.log) < 2 || w.log[0] != "1m0s: STARTING" ||
		w.log[len(w.log)-1] != "1h0m0s: ERROR with 0 provisioned" ||
		w.cloudAttempts != 1 {
		t.Errorf(
			"calls to Nova after the failed start: got %d, want 1; log: %v, want ERROR and no provisioned reservation at the end",
			w.cloudAttempts,
			w.log,
		)
	}
}

// If the end of a lease still fails when its retries end, the status of the lease becomes
// ERROR. The lease's workflow continues without a time limit to remove the lease's resources.
func TestLease_FailedEndIsClearedInTheBackground(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Minute, time.Hour)
	w.lease.CloudRetryTime = time.Minute
	w.lease.Reservations[0].Hosts = []int64{1}
	schedule(w.env, 50*time.Minute, func() { w.mu.Lock(); w.releaseFails = 1_000_000; w.mu.Unlock() })
	schedule(w.env, 70*time.Minute, func() { w.mu.Lock(); w.releaseFails = 0; w.mu.Unlock() })

	w.run(t)

	if len(w.log) < 5 || !strings.HasSuffix(w.log[3], "ERROR with 1 provisioned") ||
		!strings.HasSuffix(w.log[len(w.log)-1], "ERROR with 0 provisioned") {
		t.Errorf(
			"log of a lease whose end fails for ten minutes: got %v, want ERROR with 1 provisioned, and later with 0",
			w.log,
		)
	}
	if w.lease.Reservations[0].Hosts != nil {
		t.Errorf("hosts of the lease after Nova works again: got %v, want none",
			w.lease.Reservations[0].Hosts)
	}
}

func TestRealServer_FailedEndIsCleared(t *testing.T) {
	t.Parallel()
	w := newFakeLease(time.Now, -2*time.Second, -time.Second)
	w.lease.CloudRetryTime = 2 * time.Second
	w.lease.Reservations[0].Hosts = []int64{1}
	w.releaseFails = 7
	s := newScenario(t, contract.Lease, contract.LeaseID(leaseID.String()), w.functions())
	s.finishAndRecord("lease-cleared", "")
	if w.lease.Status != lease.Error || len(w.provisioned) != 0 {
		t.Errorf("lease whose end failed: got %s with %d provisioned, log %v; want ERROR with 0",
			w.lease.Status, len(w.provisioned), w.log)
	}
}

func TestRealServer_BlockedLeaseExpires(t *testing.T) {
	t.Parallel()
	w := newFakeLease(time.Now, -2*time.Second, 2*time.Second)
	w.lease.Blockers = []lease.Blocker{{Name: "a", Host: "cmp-1", Stuck: true}}
	s := newScenario(t, contract.Lease, contract.LeaseID(leaseID.String()), w.functions())
	s.finishAndRecord("lease-expired", "")
	if w.lease.Status != lease.Error || len(w.provisioned) != 0 || len(w.log) != 1 {
		t.Errorf(
			"lease that a stuck lease blocks until its end: got %s, log %v; want ERROR and one step",
			w.lease.Status,
			w.log,
		)
	}
}

func TestLease_DeletionCancelsHangingStart(t *testing.T) {
	t.Parallel()
	w := newFakeLease(time.Now, -time.Second, time.Hour)
	w.hangs = true
	s := newScenario(t, contract.Lease, contract.LeaseID(leaseID.String()), w.functions())
	why := s.waitForState(string(lease.Starting))
	if why.LastError != "Nova answered 503" || len(why.Waiting) != 1 || why.Waiting[0].For != "cloud" {
		t.Errorf(
			"query \"why\" while Nova fails: got %+v, want the error 503 and the lease waiting for \"cloud\"",
			why,
		)
	}
	want := "berth could not provision a reservation, because a call to Nova or Neutron failed"
	if !strings.Contains(why.Sentence, want) {
		t.Errorf("sentence of the query \"why\" while Nova fails: got %q, want it to contain %q",
			why.Sentence, want)
	}
	w.mu.Lock()
	w.lease.DeleteRequested = true
	w.mu.Unlock()
	s.signal(contract.SignalChanged, nil)
	s.finishAndRecord("lease-hung", "")
	if !w.deleted ||
		slices.ContainsFunc(w.log, func(line string) bool { return strings.Contains(line, "ERROR") }) {
		t.Errorf(
			"lease that is deleted during a start that hangs: deleted %t, log %v; want it deleted and no ERROR",
			w.deleted,
			w.log,
		)
	}
}

func TestLease_ActiveLeaseUpdatesCloud(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Minute, 2*time.Hour)
	w.lease.Reservations[0].BeforeEnd = "snapshot"
	w.lease.Events = append(w.lease.Events, lease.Event{
		ID:     uuid.New(),
		Type:   lease.BeforeEndLease,
		At:     w.created.Add(time.Hour),
		Status: lease.EventUndone,
	})
	schedule(w.env, 30*time.Minute, func() {
		w.mu.Lock()
		w.lease.Reservations = slices.Clone(w.lease.Reservations)
		w.lease.Reservations[0].Revision = 1
		w.cloudFailures = 2
		w.mu.Unlock()
		w.env.SignalWorkflow(contract.SignalChanged, nil)
	})

	w.run(t)

	want := []string{
		"1m0s: STARTING",
		"1m0s: ACTIVE with 1 provisioned",
		"30m1s: Nova has revision 1",
		"1h0m0s: ACTIVE",
		"1h0m0s: snapshots are created",
		"1h0m0s: ACTIVE with 1 provisioned",
		"2h0m0s: TERMINATING",
		"2h0m0s: TERMINATED with 0 provisioned",
	}
	w.expectLog(t, want)
}

func TestLease_FailingUpdateDoesNotDelayEnd(t *testing.T) {
	t.Parallel()
	w := newSteppedLease(time.Minute, time.Hour)
	schedule(w.env, 59*time.Minute+30*time.Second, func() {
		w.mu.Lock()
		w.lease.Reservations = slices.Clone(w.lease.Reservations)
		w.lease.Reservations[0].Revision = 1
		w.cloudFailures = 1_000_000
		w.mu.Unlock()
		w.env.SignalWorkflow(contract.SignalChanged, nil)
	})
	schedule(w.env, 60*time.Minute+20*time.Second, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cloudFailures = 0
	})

	w.run(t)

	if len(w.log) < 3 || w.log[2] != "1h0m0s: TERMINATING" ||
		!strings.HasSuffix(w.log[len(w.log)-1], "TERMINATED with 0 provisioned") {
		t.Errorf(
			"log of the lease: got %v, want TERMINATING at 1h0m0s and TERMINATED with 0 provisioned reservations at the end",
			w.log,
		)
	}
}

func TestLease_OptionalStepDoesNotDelayMovedEnd(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w steppedLease){
		"update of Nova and Neutron": func(w steppedLease) {
			w.lease.Reservations = slices.Clone(w.lease.Reservations)
			w.lease.Reservations[0].Revision = 1
		},
		"action before the end": func(w steppedLease) {
			w.lease.Reservations[0].BeforeEnd = "snapshot"
			w.lease.Events = append(w.lease.Events, lease.Event{
				ID:     uuid.New(),
				Type:   lease.BeforeEndLease,
				At:     w.now(),
				Status: lease.EventUndone,
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSteppedLease(time.Minute, 2*time.Hour)
			at := func(in time.Duration, change func()) {
				schedule(w.env, in, func() {
					w.mu.Lock()
					change()
					w.mu.Unlock()
					w.env.SignalWorkflow(contract.SignalChanged, nil)
				})
			}
			at(30*time.Minute, func() { w.cloudFailures = 1_000_000; begin(w) })
			at(30*time.Minute+5*time.Second, func() {
				w.lease.Events = slices.Clone(w.lease.Events)
				w.lease.Events[1].At = w.created.Add(30*time.Minute + 20*time.Second)
			})
			at(40*time.Minute, func() { w.cloudFailures = 0 })

			w.run(t)

			if !slices.Contains(w.log, "30m20s: TERMINATING") &&
				!slices.Contains(w.log, "30m21s: TERMINATING") {
				t.Errorf("log of the lease: got %v, want TERMINATING at 30m20s or 30m21s", w.log)
			}
		})
	}
}
