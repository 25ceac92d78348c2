package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl"
	"berth/internal/odl/odltest"
)

// addUnknownObject creates an object in the controller that has no row, and returns the object's ID.
func (m *mirrorFixture) addUnknownObject(collection, typ string, attributes map[string]any) string {
	m.Helper()
	id := uuid.NewString()
	attributes["id"] = id
	raw, err := json.Marshal(map[string]any{typ: attributes})
	if err != nil {
		m.Fatal(err)
	}
	w := httptest.NewRecorder()
	m.odl.ServeHTTP(w, httptest.NewRequestWithContext(
		m.Context(), "POST", odltest.BasePath+collection, bytes.NewReader(raw),
	))
	if w.Code != 201 {
		m.Fatalf("create an object with POST %s: got %d %s, want 201", collection, w.Code, w.Body)
	}
	return id
}

// The controller's lists in this test are longer than one page, and larger than the largest response that the
// client reads into memory in one piece.
func TestAudit_ComparesLargeController(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	nets := m.createNetworks(3)
	m.drainJournal()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 1<<20)
	for range 20 {
		m.addUnknownObject("/networks", "network", map[string]any{"description": big})
	}
	for range 250 {
		m.addUnknownObject("/routers", "router", map[string]any{"name": "r"})
	}

	r := m.finishRun(m.startRun(contract.KeyAudit, 0))

	if want := "12 missing, 0 different, 270 extra"; r.Note != want {
		t.Errorf("result of the audit: got %q, want %q", r.Sentence(), want)
	}
	found, err := m.store.Mirror.Findings(t.Context(), r.ID, journal.Ref{}, 1000)
	if err != nil || len(found) != 282 {
		t.Errorf(
			"list the findings of the audit: got %d findings, error %v; want 282 findings and no error",
			len(found),
			err,
		)
	}
	if r := m.finishRun(m.startRun(contract.KeyFullSync, 0)); r.State != journal.RunDone {
		t.Errorf("state of the full sync: got %q, want it to end successfully", r.Sentence())
	}
	for _, n := range nets {
		if m.odl.Record("network", n.ID.String()).Object == nil {
			t.Errorf("the full sync did not recreate network %s", n.ID)
		}
	}
}

// largeList is a controller whose list of networks has many large objects.
type largeList struct {
	activities.Controller
	objects int
	live    uint64 // bytes that the process still uses when the last object is listed
}

func (c *largeList) List(
	ctx context.Context,
	path, key string,
	each func(json.RawMessage) error,
) (odl.Response, error) {
	if key != "networks" {
		return c.Controller.List(ctx, path, key, each)
	}
	before := heapInUse()
	for range c.objects {
		raw := bytes.Repeat([]byte(" "), 4<<20)
		copy(raw, `{"id":"`+uuid.NewString()+`"}`)
		if err := each(raw); err != nil {
			return odl.Response{}, err
		}
	}
	c.live = heapInUse() - min(before, heapInUse())
	return odl.Response{Status: 200}, nil
}

// heapInUse returns the size of all objects in memory that are still used.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The test is not parallel, because it measures the memory of the process.
func TestAudit_MemoryOfLargeObjectsIsBounded(t *testing.T) {
	m := newMirrorFixture(t)
	list := &largeList{Controller: m.acts.ODL, objects: 60}
	m.acts.ODL = list
	r := m.finishRun(m.startRun(contract.KeyAudit, 0))
	if want := "0 missing, 0 different, 60 extra"; r.Note != want || list.live > 64<<20 {
		t.Errorf("audit of 60 objects of 4 MiB: got the result %q, and %d MiB in use after the last object; "+
			"want %q and at most 64 MiB", r.Sentence(), list.live>>20, want)
	}
}

// PostgreSQL can store neither the zero byte in the name of this object nor the number in its mtu.
func TestRepair_RemovesObjectsThatJSONBCannotStore(t *testing.T) {
	t.Parallel()
	m := newMirrorFixture(t)
	id := m.addUnknownObject("/networks", "network",
		map[string]any{"name": "a\x00b", "mtu": json.Number("1e999")})

	audit := m.finishRun(m.startRun(contract.KeyAudit, 0))
	repair := m.finishRun(m.startRun(contract.KeyRepair, audit.ID))

	if audit.Note != "0 missing, 0 different, 1 extra" || repair.State != journal.RunDone ||
		m.odl.Record("network", id).Object != nil {
		t.Errorf(
			"an object that PostgreSQL cannot store: got the audit %q and the repair %q, and the controller has %v; want 1 extra object, a successful repair, and no object",
			audit.Sentence(), repair.Sentence(), m.odl.Record("network", id),
		)
	}
}
