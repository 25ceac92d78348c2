package osapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"berth/internal/identity"
)

// post sends a body to an API. The API's handler reads the body and then calls the function `meanwhile`.
func post(t *testing.T, body string, meanwhile func()) *httptest.ResponseRecorder {
	t.Helper()
	api := &API{
		Prefix: "/a", Identity: identity.Noauth{},
		Routes: []Route{{Method: "POST", Path: "/", Handle: func(r *http.Request) (int, any, error) {
			_, err := Body(r)
			meanwhile()
			return 204, nil, err
		}}},
		Fail: func(w http.ResponseWriter, _ *http.Request, e *Error) { WriteJSON(w, e.Status, e.Message) },
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/a", strings.NewReader(body))
	r.Header.Set("X-Auth-Token", "admin")
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w
}

// TestBody_MemoryOfAllBodiesIsLimited does not run in parallel with other tests, because it uses up maxBodyBytes, which all requests of
// the process share.
func TestBody_MemoryOfAllBodiesIsLimited(t *testing.T) {
	free := func() int64 {
		n := int64(0)
		for step := int64(maxBodyBytes); step > 0; step /= 2 {
			for bodyMemory.TryAcquire(step) {
				n += step
			}
		}
		bodyMemory.Release(n)
		return n
	}
	body := strings.Repeat("x", 100)

	w := post(t, body, func() {
		if n := free(); n != maxBodyBytes-100 {
			t.Errorf("memory limit during a request with a body of 100 bytes: %d bytes are free, want all but 100", n)
		}
	})
	if w.Code != 204 {
		t.Errorf("POST of a small body: got %d %s, want 204", w.Code, w.Body)
	}
	if w := post(t, strings.Repeat("x", MaxBody+1), func() {}); w.Code != 413 {
		t.Errorf("POST of a body that is too large: got status %d, want 413", w.Code)
	}

	bodyMemory.TryAcquire(maxBodyBytes - 99)
	w = post(t, body, func() {})
	bodyMemory.Release(maxBodyBytes - 99)
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "too many requests at the same time") {
		t.Errorf("POST while the memory limit is used up: got %d, headers %v, body %s; want 503 with Retry-After 1", w.Code, w.Header(), w.Body)
	}
	if n := free(); n != maxBodyBytes {
		t.Errorf("memory limit after all requests: %d of %d bytes are free, want all", n, maxBodyBytes)
	}
}
