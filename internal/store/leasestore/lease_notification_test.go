package leasestore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// told lists what is recorded about a lease: kind and status.
func (t *leasing) told(id uuid.UUID) (all []string, ids []int64) {
	t.Helper()
	notices, err := t.Lease.LeaseNotifications(t.Context(), id, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range notices {
		if n.Lease.ID != id || n.MessageID == uuid.Nil || n.At.IsZero() {
			t.Errorf("recorded %+v", n)
		}
		all, ids = append(all, n.Kind+" "+string(n.Lease.Status)), append(ids, n.ID)
	}
	return all, ids
}

func TestWhatHappensToALeaseIsRecordedForThoseWhoListen(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 1)
	silent := e.create(hostsDraft(1, 2, 1, 1))
	if all, _ := e.told(silent.ID); len(all) != 0 {
		t.Errorf("nobody listens, and there is recorded %v", all)
	}
	if _, err := e.Lease.DeleteLease(t.Context(), silent.ID); err != nil {
		t.Fatal(err)
	}
	e.Lease = leasestore.New(e.DB, leasestore.Config{Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead}, Notifications: true})

	l := e.active(hostsDraft(1, 2, 1, 1))
	e.begin(l.ID, lease.StepBeforeEnd)
	e.finish(l.ID, lease.StepBeforeEnd, nil)
	e.finish(l.ID, lease.StepBeforeEnd, nil) // a repetition says nothing new
	e.begin(l.ID, lease.StepEnd)
	e.unwire(l)
	e.finish(l.ID, lease.StepEnd, nil)
	if _, err := e.Lease.DeleteLease(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}

	all, ids := e.told(l.ID)
	want := []string{"lease.create PENDING", "lease.event.start_lease.begin STARTING", "lease.event.start_lease ACTIVE",
		"lease.event.before_end_lease ACTIVE", "lease.event.end_lease.begin TERMINATING", "lease.event.end_lease TERMINATED", "lease.delete DELETING"}
	if d := cmp.Diff(want, all); d != "" {
		t.Error(d)
	}
	e.nudged(contract.WebhookID(l.ID.String()), 1)
	if err := e.Lease.DeleteLeaseNotifications(t.Context(), ids[:6]); err != nil {
		t.Fatal(err)
	}
	if all, _ := e.told(l.ID); cmp.Diff(want[6:], all) != "" {
		t.Errorf("left: %v", all)
	}
}

func TestRefusedChangeIsNotTold(t *testing.T) {
	t.Parallel()
	e := newLeasing(t, 1)
	e.Lease = leasestore.New(e.DB, leasestore.Config{Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead}, Notifications: true})
	e.refused(hostsDraft(1, 2, 2, 2), lease.NotEnoughHosts)
	if _, err := e.Lease.PlanLease(t.Context(), hostsDraft(1, 2, 1, 1), nil); err != nil {
		t.Fatal(err)
	}
	e.nudged("", 0)
}

// nudged counts the notices' nudges, and of all leases if it is given none.
func (t *leasing) nudged(workflow string, want int) {
	t.Helper()
	var n int
	err := storetest.Connect(t, t.url).QueryRow(t.Context(), `
		select count(*)
		from note
		where workflow = 'Webhook' and ($1 = '' or workflow_id = $1)`, workflow).Scan(&n)
	if err != nil || n != want {
		t.Errorf("%d nudges for %q instead of %d, %v", n, workflow, want, err)
	}
}
