package leasestore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// notifications returns the stored notifications about a lease, each as a text with the notification's type
// and the lease's status, and the IDs of the notifications.
func (t *fixture) notifications(id uuid.UUID) (all []string, ids []int64) {
	t.Helper()
	notices, err := t.Lease.LeaseNotifications(t.Context(), id, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range notices {
		if n.Lease.ID != id || n.MessageID == uuid.Nil || n.At.IsZero() {
			t.Errorf("stored notification: got %+v, want the ID of the lease, a message ID and a time", n)
		}
		all, ids = append(all, n.Kind+" "+string(n.Lease.Status)), append(ids, n.ID)
	}
	return all, ids
}

func TestLeaseNotification_StoredAtEveryChange(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	silent := e.createLease(hostsDraft(1, 2, 1, 1))
	if all, _ := e.notifications(silent.ID); len(all) != 0 {
		t.Errorf("stored notifications while notifications are off: got %v, want none", all)
	}
	if _, err := e.Lease.DeleteLease(t.Context(), silent.ID); err != nil {
		t.Fatal(err)
	}
	e.Lease = leasestore.New(e.DB, leasestore.Config{
		Limits:        lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead},
		Notifications: true,
	})

	l := e.createActive(hostsDraft(1, 2, 1, 1))
	e.beginStep(l.ID, lease.StepBeforeEnd)
	e.finishStep(l.ID, lease.StepBeforeEnd, nil)
	e.finishStep(l.ID, lease.StepBeforeEnd, nil) // a repetition stores no notification
	e.beginStep(l.ID, lease.StepEnd)
	e.release(l)
	e.finishStep(l.ID, lease.StepEnd, nil)
	if _, err := e.Lease.DeleteLease(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}

	all, ids := e.notifications(l.ID)
	want := []string{
		"lease.create PENDING",
		"lease.event.start_lease.begin STARTING",
		"lease.event.start_lease ACTIVE",
		"lease.event.before_end_lease ACTIVE",
		"lease.event.end_lease.begin TERMINATING",
		"lease.event.end_lease TERMINATED",
		"lease.delete DELETING",
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Error(d)
	}
	e.expectWebhookNudges(contract.WebhookID(l.ID.String()), 1)
	if err := e.Lease.DeleteLeaseNotifications(t.Context(), ids[:6]); err != nil {
		t.Fatal(err)
	}
	if all, _ := e.notifications(l.ID); cmp.Diff(want[6:], all) != "" {
		t.Errorf("notifications left after the first six were deleted: got %v, want the last one", all)
	}
}

// Each change of a lease stores a notification, so a notification repeats no long texts of the lease.
func TestLeaseNotification_HasNoRequirements(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	e.Lease = leasestore.New(e.DB, leasestore.Config{
		Limits:        lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead},
		Notifications: true,
	})
	draft := hostsDraft(1, 2, 1, 1)
	for i := range draft.Reservations {
		draft.Reservations[i].ResourceProperties = `["!=", "$hypervisor_hostname", "` + strings.Repeat("x", 3000) + `"]`
	}
	l := e.createLease(draft)
	notices, err := e.Lease.LeaseNotifications(t.Context(), l.ID, 100)
	if err != nil || len(notices) != 1 {
		t.Fatalf("stored notifications: got %d, error %v; want one", len(notices), err)
	}
	stored, err := json.Marshal(notices[0].Lease)
	if err != nil || len(stored) > 3000 {
		t.Errorf("stored lease: got %d bytes, error %v; want fewer than its requirements have", len(stored), err)
	}
	for i, r := range notices[0].Lease.Reservations {
		want := l.Reservations[i]
		if r.ID != want.ID || r.Type != want.Type || r.Status != want.Status {
			t.Errorf("reservation %d of the stored lease: got %+v, want the ID, type and status of %+v", i, r, want)
		}
	}
}

func TestLeaseNotification_NoneForRefusedChangesAndPreviews(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	e.Lease = leasestore.New(e.DB, leasestore.Config{
		Limits:        lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead},
		Notifications: true,
	})
	e.expectCreateFault(hostsDraft(1, 2, 2, 2), lease.NotEnoughHosts)
	if _, err := e.Lease.PlanLease(t.Context(), hostsDraft(1, 2, 1, 1), nil); err != nil {
		t.Fatal(err)
	}
	e.expectWebhookNudges("", 0)
}

// expectWebhookNudges checks the number of nudges for a Webhook workflow or, if `workflow` is empty, for all
// Webhook workflows.
func (t *fixture) expectWebhookNudges(workflow string, want int) {
	t.Helper()
	var n int
	err := storetest.Connect(t, t.url).QueryRow(t.Context(), `
		select count(*)
		from note
		where workflow = 'Webhook' and ($1 = '' or workflow_id = $1)`, workflow).Scan(&n)
	if err != nil || n != want {
		t.Errorf(
			"nudges of Webhook workflows: got %d for the workflow %q (empty: all), want %d; error %v",
			n, workflow, want, err,
		)
	}
}

func TestLeaseNotification_UnsentUpdatesOfALeaseAreFew(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	e.Lease = leasestore.New(e.DB, leasestore.Config{
		Limits:        lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead},
		Notifications: true,
	})
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	const updates = leasestore.MaxUnsentRepeats + 2
	for i := range updates {
		e.updateLease(l.ID, lease.Change{Name: new(fmt.Sprint("name ", i))})
	}
	if _, err := e.Lease.DeleteLease(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}

	all, err := e.Lease.LeaseNotifications(t.Context(), l.ID, 2*updates)

	if err != nil || len(all) != leasestore.MaxUnsentRepeats+2 {
		t.Fatalf("unsent notifications after %d updates: got %d, error %v; want %d updates, the creation and the deletion",
			updates, len(all), err, leasestore.MaxUnsentRepeats)
	}
	first, last := all[1], all[len(all)-2]
	if all[0].Kind != lease.NotificationCreate || all[len(all)-1].Kind != lease.NotificationDelete ||
		first.Lease.Name != "name 2" || last.Lease.Name != fmt.Sprint("name ", updates-1) {
		t.Errorf("unsent notifications: got %s, %q to %q, and %s; want the creation, the newest updates and the deletion",
			all[0].Kind, first.Lease.Name, last.Lease.Name, all[len(all)-1].Kind)
	}
}

// A client can move the before_end_lease event again and again, and each time it runs again.
func TestLeaseNotification_UnsentOnesOfAMovedEventAreFew(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	e.Lease = leasestore.New(e.DB, leasestore.Config{
		Limits:        lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead},
		Notifications: true,
	})
	l := e.createActive(hostsDraft(1, 2, 1, 1))
	kind := "lease.event.before_end_lease"
	storetest.Exec(t, e.url, `
		insert into lease_notification (lease_id, message_id, kind, lease)
		select $1, gen_random_uuid(), $2, '{}' from generate_series(1, $3)`, l.ID, kind, leasestore.MaxUnsentRepeats+5)
	e.makeDue(l)
	e.beginStep(l.ID, lease.StepBeforeEnd)
	e.finishStep(l.ID, lease.StepBeforeEnd, nil)
	all, err := e.Lease.LeaseNotifications(t.Context(), l.ID, 1000)
	n := 0
	for _, one := range all {
		if one.Kind == kind {
			n++
		}
	}
	if err != nil || n != leasestore.MaxUnsentRepeats || all[len(all)-1].Lease.ID != l.ID {
		t.Errorf("unsent notifications of the event: got %d, error %v; want the newest %d", n, err, leasestore.MaxUnsentRepeats)
	}
}
