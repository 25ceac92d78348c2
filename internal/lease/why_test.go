package lease

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestExplain_NamesEveryWait(t *testing.T) {
	t.Parallel()
	blocked := sample(1)
	blocked.Blockers = []Blocker{{Name: "a", Host: "cmp-1", Since: noon}}
	foreign := blocked.clone()
	foreign.Blockers = []Blocker{
		Blocker{
			ID:      uuid.New(),
			Name:    "a",
			Project: "p",
			User:    "u",
			Host:    "cmp-1",
			Since:   noon,
		}.Anonymous(),
	}
	hidden := foreign.clone()
	hidden.Blockers = []Blocker{foreign.Blockers[0].WithoutHost()}
	failed := leaseIn(t, Error)
	failed.event(EndLease).Status = EventFailed
	cleared := failed.clone()
	cleared.Reservations[0].Hosts = nil
	networks := failed.clone()
	networks.Reservations = []Reservation{
		{ReservationDraft: ReservationDraft{Type: NetworkSegment}, ResourceIDs: make([]uuid.UUID, 1)},
		{ReservationDraft: ReservationDraft{Type: Device}, ResourceIDs: make([]uuid.UUID, 2)},
	}
	asked := leaseIn(t, Active)
	retrying := leaseIn(t, Terminating)
	soon := noon.Add(4 * time.Second)
	retrying.Reservations[0].Failure = &CallFailure{
		Party:    PartyNova,
		Call:     "DELETE /servers/s1",
		Error:    "got 409",
		Since:    noon.Add(-time.Minute),
		NextAt:   &soon,
		Attempts: 3,
	}
	broken := leaseIn(t, Starting)
	broken.Reservations[0].Failure = &CallFailure{
		Party:    PartyPlacement,
		Call:     "allocate hosts",
		Error:    "no capacity",
		Since:    noon,
		NextAt:   &noon,
		Attempts: 1,
	}
	asked.DeleteRequested = true
	for _, c := range []struct {
		l        Lease
		now      time.Time
		want     string
		waitsFor string
	}{
		{sample(1), noon.Add(-time.Hour), "PENDING: start_lease is next, at 2040-01-01T12:00:00Z.", "start_lease"},
		{sample(1), noon, "PENDING: start is due since 2040-01-01T12:00:00Z and begins as soon as a worker takes it.", "worker"},
		{blocked, noon, "PENDING: its start is due; it waits for lease a (00000000-0000-0000-0000-000000000000) to leave host cmp-1 since 2040-01-01T12:00:00Z.",
			"lease/00000000-0000-0000-0000-000000000000"},
		{foreign, noon, "PENDING: its start is due; it waits for another lease to leave host cmp-1 since 2040-01-01T12:00:00Z.", "lease"},
		{hidden, noon, "PENDING: its start is due; it waits for another lease to leave a host since 2040-01-01T12:00:00Z.", "lease"},
		{leaseIn(t, Starting), noon, "STARTING: provisioning the 1 reservation since 2040-01-01T11:00:00Z.", "worker"},
		{retrying, noon, "TERMINATING: removing the 1 reservation since 2040-01-01T11:00:00Z. " +
			"Nova has failed since 2040-01-01T11:59:00Z: DELETE /servers/s1 (3 attempts, next attempt at 2040-01-01T12:00:04Z): got 409.", "nova"},
		{broken, noon, "STARTING: provisioning the 1 reservation since 2040-01-01T11:00:00Z. " +
			"Placement has failed since 2040-01-01T12:00:00Z: allocate hosts (1 attempt, the next attempt is running): no capacity.", "placement"},
		{leaseIn(t, Active), noon, "ACTIVE: before_end_lease is next, at 2040-01-01T12:50:00Z.", "before_end_lease"},
		{leaseIn(t, Error), noon, "ERROR: end_lease is next, at 2040-01-01T13:00:00Z.", "end_lease"},
		{leaseIn(t, Terminated), noon, "TERMINATED: nothing is due any more.", ""},
		{failed, noon, "ERROR: its end has failed, and its resources are still being removed; it holds 1 host.", "worker"},
		{networks, noon, "ERROR: its end has failed, and its resources are still being removed; it holds 1 network segment and 2 devices.", "worker"},
		{cleared, noon, "ERROR: it has ended and holds no host. Errors: no.", ""},
		{asked, noon, "ACTIVE: is being deleted, removing the 1 reservation since 2040-01-01T11:00:00Z.", "worker"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			got, waiting := Explain(c.l, c.now)
			if got != c.want {
				t.Errorf("Explain returned the sentence %q, want %q", got, c.want)
			}
			if c.waitsFor == "" && len(waiting) != 0 ||
				c.waitsFor != "" && (len(waiting) != 1 || waiting[0].For != c.waitsFor) {
				t.Errorf("Explain for a lease in %s: want a wait for %q only (empty: no wait), got %+v",
					c.l.Status, c.waitsFor, waiting)
			}
		})
	}
}

func TestExpire_ReasonNamesOnlyLeasesOfTheProject(t *testing.T) {
	t.Parallel()
	l := sample(1)
	l.Project = "red"
	l.Blockers = []Blocker{
		{
			ID:      uuid.New(),
			Name:    "own",
			Project: "red",
			Host:    "cmp-1",
			Stuck:   true,
		},
		{
			ID:      uuid.New(),
			Name:    "secret",
			Project: "blue",
			Host:    "cmp-2",
			Stuck:   true,
		},
		{
			ID:       uuid.New(),
			Project:  "blue",
			Resource: NetworkSegment,
			Stuck:    true,
		},
	}
	got, err := Expire(l, noon.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := "the lease could not start before its end, because lease own (" + l.Blockers[0].ID.String() + ") held a host and another lease held a host and another lease held a network segment"
	if reason := got.Reservations[0].LastError; reason != want {
		t.Errorf("expire a lease that waits for a lease of another project: got the reason %q, want %q",
			reason, want)
	}
}
