package lease

import (
	"testing"
	"time"
)

func TestExplain_NamesEveryWait(t *testing.T) {
	t.Parallel()
	blocked := sample(1)
	blocked.Blockers = []Blocker{{Name: "a", Host: "cmp-1", Since: noon}}
	failed := leaseIn(t, Error)
	failed.event(EndLease).Status = EventFailed
	asked := leaseIn(t, Active)
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
		{leaseIn(t, Starting), noon, "STARTING: placing the 1 reservation in inventory since 2040-01-01T11:00:00Z.", "inventory"},
		{leaseIn(t, Active), noon, "ACTIVE: before_end_lease is next, at 2040-01-01T12:50:00Z.", "before_end_lease"},
		{leaseIn(t, Error), noon, "ERROR: end_lease is next, at 2040-01-01T13:00:00Z.", "end_lease"},
		{leaseIn(t, Terminated), noon, "TERMINATED: nothing is due any more.", ""},
		{failed, noon, "ERROR: it has ended and still holds 1 host. Errors: no. Delete the lease to release them.", ""},
		{asked, noon, "ACTIVE: is being deleted, removing the 1 reservation in inventory since 2040-01-01T11:00:00Z.", "inventory"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			got, waiting := Explain(c.l, c.now)
			if got != c.want {
				t.Errorf("Explain returned the sentence %q, want %q", got, c.want)
			}
			if c.waitsFor == "" && len(waiting) != 0 || c.waitsFor != "" && (len(waiting) != 1 || waiting[0].For != c.waitsFor) {
				t.Errorf("Explain for a lease in %s: want a wait for %q only (empty: no wait), got %+v", c.l.Status, c.waitsFor, waiting)
			}
		})
	}
}
