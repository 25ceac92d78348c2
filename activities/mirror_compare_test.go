package activities_test

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl/odltest"
)

// plant puts an object into the controller that nobody knows.
func (m *mirror) plant(collection, typ string, attributes map[string]any) string {
	m.Helper()
	id := uuid.NewString()
	attributes["id"] = id
	raw, err := json.Marshal(map[string]any{typ: attributes})
	if err != nil {
		m.Fatal(err)
	}
	w := httptest.NewRecorder()
	m.odl.ServeHTTP(w, httptest.NewRequestWithContext(m.Context(), "POST", odltest.BasePath+collection, bytes.NewReader(raw)))
	if w.Code != 201 {
		m.Fatalf("%s: %d %s", collection, w.Code, w.Body)
	}
	return id
}

// A controller that has more than fits into any one answer that we keep is compared all the same.
func TestControllerWithVeryMuchIsCompared(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	nets := m.grow(3)
	m.drain()
	if err := m.odl.LoseAll(); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 1<<20)
	for range 20 {
		m.plant("/networks", "network", map[string]any{"description": big})
	}
	for range 250 {
		m.plant("/routers", "router", map[string]any{"name": "r"})
	}

	r := m.finish(m.start(contract.KeyAudit, 0))

	if want := "12 missing, 0 different, 270 extra"; r.Note != want {
		t.Errorf("%s; want %s", r.Sentence(), want)
	}
	found, err := m.store.Mirror.Findings(t.Context(), r.ID, journal.Ref{}, 1000)
	if err != nil || len(found) != 282 {
		t.Errorf("%d findings, %v", len(found), err)
	}
	if r := m.finish(m.start(contract.KeyFullSync, 0)); r.State != journal.RunDone {
		t.Errorf("%s", r.Sentence())
	}
	for _, n := range nets {
		if m.odl.Record("network", n.ID.String()).Object == nil {
			t.Errorf("network %s is not back", n.ID)
		}
	}
}

// Objects that the database cannot keep are found and removed like others.
func TestStrangeStraysAreRemoved(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	id := m.plant("/networks", "network", map[string]any{"name": "a\x00b", "mtu": json.Number("1e999")})

	audit := m.finish(m.start(contract.KeyAudit, 0))
	repair := m.finish(m.start(contract.KeyRepair, audit.ID))

	if audit.Note != "0 missing, 0 different, 1 extra" || repair.State != journal.RunDone || m.odl.Record("network", id).Object != nil {
		t.Errorf("%s %s %v", audit.Sentence(), repair.Sentence(), m.odl.Record("network", id))
	}
}
