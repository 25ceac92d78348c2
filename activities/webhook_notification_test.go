package activities_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"berth/activities"
	"berth/internal/lease"
	"berth/internal/notify"
	"berth/internal/notify/notifytest"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

func TestNotifyWebhook_DeliversInOrderAtLeastOnce(t *testing.T) {
	t.Parallel()
	stub := &notifytest.Webhook{}
	webhook, err := notify.NewWebhook(notify.Config{URL: startServer(t, stub), Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s := storetest.New(t)
	s.Lease = leasestore.New(s.DB, leasestore.Config{
		Limits:        lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead},
		Notifications: true,
	})
	acts := newActivities(activities.Options{Store: s, Webhook: webhook})
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	activities.Register(env, acts.Functions())
	start := time.Now().Add(time.Hour)
	l := createOneHourLease(t, s, "l", "p", start)
	for _, name := range []string{"m", "n", "o"} {
		if _, err := s.Lease.UpdateLease(t.Context(), l.ID, lease.Change{Name: &name}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Lease.DeleteLease(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	notifyWebhook := func() error {
		_, err := env.ExecuteActivity(acts.NotifyWebhook, l.ID.String())
		return err
	}

	stub.InjectFaults(
		notifytest.Fault{Status: 503}, notifytest.Fault{},
		notifytest.Fault{DropConnection: true, Applied: true},
		notifytest.Fault{}, notifytest.Fault{Status: 400},
	)
	for range 2 { // the first call fails at the first notification, the second call at the second
		if err := notifyWebhook(); err == nil {
			t.Error("NotifyWebhook while the webhook is unavailable: got no error, want one")
		}
	}
	for range 2 {
		if err := notifyWebhook(); err != nil {
			t.Error(err)
		}
	}

	var got []string
	ids := map[string]bool{}
	for _, h := range stub.Notifications() {
		got = append(got, h.Type+" "+h.Payload["name"].(string))
		ids[h.ID] = true
		if h.Payload["lease_id"] != l.ID.String() || h.Publisher != "blazar.lease" ||
			uuid.Validate(h.ID) != nil {
			t.Errorf(
				"notification to the webhook: got %+v, want the lease ID, the publisher blazar.lease and a UUID as message ID",
				h,
			)
		}
	}
	// The webhook received the first update twice, because its first response was lost. The
	// webhook permanently rejected the second update, so NotifyWebhook dropped this update.
	want := []string{"lease.create l", "lease.update m", "lease.update m", "lease.update o", "lease.delete o"}
	if d := cmp.Diff(want, got); d != "" || len(ids) != 4 {
		t.Error(d, ids)
	}
	if left, err := s.Lease.LeaseNotifications(t.Context(), l.ID, 10); len(left) != 0 || err != nil {
		t.Errorf(
			"notifications that are left after both calls: got %v, error %v; want no notifications and no error",
			left,
			err,
		)
	}
}

// hangingSender blocks each notification until `answer` is closed.
type hangingSender struct {
	arrived chan struct{} // one element for each notification
	answer  chan struct{}
}

func (s hangingSender) Send(context.Context, notify.Notification) error {
	s.arrived <- struct{}{}
	<-s.answer
	return nil
}

func TestNotifyWebhook_ReceiverThatHangsKeepsFewSlots(t *testing.T) {
	t.Parallel()
	receiver := hangingSender{make(chan struct{}), make(chan struct{})}
	s := storetest.New(t)
	s.Lease = leasestore.New(s.DB, leasestore.Config{Notifications: true})
	acts := newActivities(activities.Options{Store: s, Webhook: receiver})
	notifyOfNewLease := func() (retry func() error) {
		start := time.Now().Add(time.Hour)
		l := createOneHourLease(t, s, "l", "p", start)
		return func() error {
			env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
			activities.Register(env, acts.Functions())
			_, err := env.ExecuteActivity(acts.NotifyWebhook, l.ID.String())
			return err
		}
	}
	var waiting sync.WaitGroup
	for range activities.MaxWebhookSends {
		send := notifyOfNewLease()
		waiting.Go(func() {
			if err := send(); err != nil {
				t.Errorf("send a notification to a receiver that answers late: got error %v, want none", err)
			}
		})
		<-receiver.arrived
	}
	send := notifyOfNewLease()

	err := send()

	var failure *temporal.ApplicationError
	if !errors.As(err, &failure) || failure.NonRetryable() || failure.NextRetryDelay() != time.Second {
		t.Errorf("send a notification while %d others wait: got error %v, want one with a retry after a second",
			activities.MaxWebhookSends, err)
	}
	close(receiver.answer)
	waiting.Wait()
	go func() { <-receiver.arrived }()
	if err := send(); err != nil {
		t.Errorf("send the notification after the others: got error %v, want none", err)
	}
}
