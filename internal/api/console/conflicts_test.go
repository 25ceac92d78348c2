package console_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/inventory"
	"berth/internal/store/storetest"
)

// Another process has refused the writes.
func TestConflicts_AreThoseOfAllProcessesAndLeadToTheirObjects(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	other := storetest.Open(t, e.url)
	absent := uuid.NewString()
	for _, consumer := range []string{e.web.DeviceID, absent} {
		err := other.Inventory.PutAllocations(t.Context(),
			storetest.VCPUs(consumer, e.provider, 1, inventory.ExpectGeneration(77)))
		if err == nil {
			t.Fatal("a write with another generation: got no conflict")
		}
	}
	h := e.console(identity.Noauth{})
	if _, body := e.send(h, request{"GET", "/console/conflicts", "", browser("admin")}); strings.Contains(body, e.web.DeviceID) {
		t.Errorf("the page has a conflict that the other process has not added:\n%s", body)
	}
	e.check(other.Inventory.FlushConflicts(t.Context()))
	_, body := e.send(h, request{"GET", "/console/conflicts", "", browser("admin")})
	for _, want := range []string{
		`href="/console/providers/` + e.provider + `">node-1</a></th><td>Resource provider</td><td>aggregates</td><td>1</td><td>1</td>`,
		`href="/console/consumers/` + e.web.DeviceID + `">` + e.web.DeviceID + `</a></th><td>Consumer</td><td>allocations</td><td>1</td><td>1</td>`,
		absent + " (does not exist)</th>",
		"every 10 seconds",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not contain %q:\n%s", want, body)
		}
	}
}
