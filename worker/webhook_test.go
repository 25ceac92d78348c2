package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/internal/notify/notifytest"
)

func TestListenersHearALeaseThoughTheyAndTheWorkerGoAway(t *testing.T) {
	t.Parallel()
	s, _ := sharedSite(t)
	listener := &notifytest.Webhook{Token: "secret"}
	listener.InjectFaults(notifytest.Fault{Status: 503, Times: 3}, notifytest.Fault{DropConnection: true, Applied: true})
	s.settings = append(s.settings, "BERTH_LEASE_WEBHOOK_URL="+serve(t, listener), "BERTH_LEASE_WEBHOOK_TOKEN=secret")
	api, victim := s.start("api"), s.start("relay,temporal")
	lease := api.lease(time.Hour, 2*time.Hour)
	path := fmt.Sprint("/reservation/v1/leases/", lease["id"])
	victim.kill()
	api.must("PUT", path, object{"name": "day"})
	s.start("relay,temporal")
	api.must("PUT", path, object{"start_date": second(0)})
	s.until("the lease is ACTIVE", func() string {
		if got := api.must("GET", path, nil)["lease"].(object)["status"]; got != "ACTIVE" {
			return fmt.Sprint("it is ", got)
		}
		return ""
	})
	api.must("DELETE", path, nil)

	want := []string{"lease.create", "lease.update", "lease.update", "lease.event.start_lease.begin", "lease.event.start_lease", "lease.delete.begin", "lease.delete"}
	s.until("everything is told in order", func() string {
		if got := heardOf(listener, lease["id"]); !slices.Equal(got, want) {
			return fmt.Sprint("heard ", got)
		}
		return ""
	})
	s.none("nothing is left to tell", `select kind from lease_notice`)
}

// heardOf is what a listener heard of a lease in its order, however often.
func heardOf(listener *notifytest.Webhook, lease any) (types []string) {
	ids := map[string]bool{}
	for _, h := range listener.Notifications() {
		if h.Payload["lease_id"] == lease && !ids[h.ID] {
			ids[h.ID], types = true, append(types, h.Type)
		}
	}
	return types
}
