package leases

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/internal/notify/notifytest"
	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

func TestLeaseWebhook_SentInOrderThroughOutages(t *testing.T) {
	t.Parallel()
	s, _ := servertest.SharedDeployment(t)
	listener := &notifytest.Webhook{Token: "secret"}
	listener.InjectFaults(notifytest.Fault{Status: 503, Times: 3},
		notifytest.Fault{DropConnection: true, Applied: true})
	s.Settings = append(s.Settings,
		"BERTH_LEASE_WEBHOOK_URL="+servertest.Serve(t, listener), "BERTH_LEASE_WEBHOOK_TOKEN=secret")
	api, victim := s.StartWorker("api"), s.StartWorker("relay,temporal")
	lease := harness.CreateHostLease(api, time.Hour, 2*time.Hour)
	path := fmt.Sprint("/reservation/v1/leases/", lease["id"])
	victim.Kill()
	api.Must("PUT", path, servertest.Object{"name": "day"})
	s.StartWorker("relay,temporal")
	harness.SetDateToNow(api, path, "start_date")
	s.Await("the lease is ACTIVE", harness.LeaseStatusIs(api, path, "ACTIVE"))
	api.Must("DELETE", path, nil)

	want := []string{
		"lease.create",
		"lease.update",
		"lease.update",
		"lease.event.start_lease.begin",
		"lease.event.start_lease",
		"lease.delete.begin",
		"lease.delete",
	}
	s.Await("the webhook received all notifications in order", func() string {
		if got := notificationTypes(listener, lease["id"]); !slices.Equal(got, want) {
			return fmt.Sprint("it received ", got)
		}
		return ""
	})
	s.AwaitNone("no notification is pending", `select kind from lease_notification`)
}
