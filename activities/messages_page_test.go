package activities

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/docpage"
	"berth/internal/lease"
	"berth/internal/network"
)

func TestMessagesPage_HasTheFieldsOfEachNotification(t *testing.T) {
	t.Parallel()
	docpage.CompareFields[leasePayload](t, docpage.Messages, "### Payload of a lease notification")
	docpage.CompareFields[reservationPayload](t, docpage.Messages,
		"#### A reservation of a lease notification")
	docpage.CompareFields[eventPayload](t, docpage.Messages, "#### An event of a lease notification")
	docpage.CompareFields[network.ProvisioningNotification](t, docpage.Messages,
		"### Payload of a provisioning notification")
}

// The page has the types that some change of a lease causes, and those of ports and trunks.
func TestMessagesPage_NamesTheTypesOfNotifications(t *testing.T) {
	t.Parallel()
	statuses := []lease.Status{
		"",
		lease.Pending,
		lease.Starting,
		lease.Active,
		lease.Terminating,
		lease.Terminated,
		lease.Deleting,
		lease.Error,
	}
	events := []lease.EventStatus{
		lease.EventUndone,
		lease.EventInProgress,
		lease.EventDone,
		lease.EventFailed,
	}
	types := map[string]bool{
		network.ProvisioningNotification{ObjectType: "port"}.Type():  true,
		network.ProvisioningNotification{ObjectType: "trunk"}.Type(): true,
	}
	for _, from := range statuses {
		for _, to := range statuses {
			for _, was := range events {
				for _, is := range events {
					for _, degraded := range []bool{false, true} {
						before := lease.Lease{
							Status: from,
							Events: []lease.Event{{Type: lease.BeforeEndLease, Status: was}},
						}
						after := lease.Lease{
							Status:   to,
							Degraded: degraded,
							Events:   []lease.Event{{Type: lease.BeforeEndLease, Status: is}},
						}
						for _, kind := range lease.NotificationsFor(before, after) {
							types[kind] = true
						}
					}
				}
			}
		}
	}
	types[lease.NotificationDelete] = true // recorded by the store when it deletes the row
	got := slices.Sorted(maps.Keys(docpage.Table(t, docpage.Messages, "### Types of notifications")))
	if d := cmp.Diff(slices.Sorted(maps.Keys(types)), got); d != "" {
		t.Errorf("the types of notifications in %s differ from the code (-code +page):\n%s",
			docpage.Messages, d)
	}
}

func TestMessagesPage_NamesTheEventsForNova(t *testing.T) {
	t.Parallel()
	compareNames(t, "## Events for Nova", "../internal/network/nova_event.go", `(?m)^\tNova\w+ += "([^"]+)"`)
}

func TestMessagesPage_NamesTheCallsOfTheEnforcementService(t *testing.T) {
	t.Parallel()
	compareNames(t, "## The enforcement service",
		"../internal/api/blazar/enforcement.go", `What: "([^"]+)"`, "on-end")
}

// compareNames fails the test if the first column of a table has other names than a pattern finds in a file,
// and `more`.
func compareNames(t *testing.T, heading, file, pattern string, more ...string) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := more
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(source, -1) {
		want = append(want, string(m[1]))
	}
	slices.Sort(want)
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(docpage.Table(t, docpage.Messages, heading)))); d != "" {
		t.Errorf("the table below %q in %s differs from %s (-code +page):\n%s",
			heading, docpage.Messages, file, d)
	}
}
