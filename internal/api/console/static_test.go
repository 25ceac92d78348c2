package console_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"berth/internal/api/console"
	"berth/internal/identity"
)

// discard is a http.ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) WriteHeader(int)             {}
func (d discard) Write(p []byte) (int, error) { return len(p), nil }

// Clients without a token may ask for the static files, and may read the answers slowly.
// TestStatic_AnswersShareTheContent does not run in parallel with other tests, because it measures the memory
// of the process.
func TestStatic_AnswersShareTheContent(t *testing.T) {
	api := console.New(console.Options{Identity: identity.Noauth{}, Live: console.NewLive()})
	w := httptest.NewRecorder()
	ask := func(w http.ResponseWriter) {
		api.ServeHTTP(
			w,
			httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/static/htmx.min.js", nil),
		)
	}
	if ask(w); w.Code != http.StatusOK {
		t.Fatalf("GET a static file: got %d, want 200", w.Code)
	}
	const requests = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range requests {
		ask(discard{http.Header{}})
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / requests; each > uint64(w.Body.Len()/2) {
		t.Errorf(
			"memory for each answer with a file of %d bytes: got %d bytes, want far less than the file",
			w.Body.Len(),
			each,
		)
	}
}
