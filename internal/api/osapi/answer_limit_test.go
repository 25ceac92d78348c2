package osapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// unread is the answer of a client that does not read. Its method Write waits for the end of the test.
type unread struct {
	*httptest.ResponseRecorder
	begun func()
	end   chan struct{}
}

func (u unread) Write(p []byte) (int, error) {
	u.begun()
	<-u.end
	return len(p), nil
}

// TestAnswers_UnreadOnesOfAClientAreLimited does not run in parallel with other tests, because all answers of
// the process share the memory.
func TestAnswers_UnreadOnesOfAClientAreLimited(t *testing.T) {
	const size = 1 << 20
	// with its quotes and the line break of the encoder, the answer needs exactly `size` bytes
	list := func(*http.Request) (int, any, error) { return 200, strings.Repeat("x", size-3), nil }
	api := &API{
		Prefix:   "/a",
		Identity: callers{},
		Fail:     WriteError,
		Routes: []Route{{Method: "GET", Path: "/x", Handle: list},
			{
				Method: "GET",
				Path:   "/open",
				Handle: func(*http.Request) (int, any, error) { return 200, Shared(make([]byte, size)), nil },
				Open:   true,
			},
			{Method: "POST", Path: "/x", Handle: list},
			{
				Method: "GET",
				Path:   "/huge",
				Handle: func(*http.Request) (int, any, error) { return 200, make([]byte, maxClientAnswers+1), nil },
			},
			{
				Method: "GET",
				Path:   "/small",
				Handle: func(*http.Request) (int, any, error) { return 200, "x", nil },
			}},
	}
	ask := func(w http.ResponseWriter, method, path, token string) {
		r := httptest.NewRequestWithContext(t.Context(), method, "/a"+path, nil)
		r.Header.Set("X-Auth-Token", token)
		api.ServeHTTP(w, r)
	}
	var ended sync.WaitGroup
	end := make(chan struct{})
	for range 2 * maxClientAnswers / size {
		begun := make(chan struct{})
		w := unread{httptest.NewRecorder(), sync.OnceFunc(func() { close(begun) }), end}
		ended.Go(func() { ask(w, "GET", "/x", "eve:red") })
		<-begun
	}
	for _, c := range []struct {
		method, path, token string
		want                int
	}{{"GET", "/x", "ann:red", 429}, {"GET", "/small", "ann:red", 200}, {"GET", "/open", "", 200}, {"POST", "/x", "ann:red", 429}, {"POST", "/x", "bob:blue", 200}, {"GET", "/x", "bob:blue", 200}, {"GET", "/x", "admin", 200}} {
		w := httptest.NewRecorder()
		ask(w, c.method, c.path, c.token)
		if after := w.Header().Get("Retry-After"); w.Code != c.want || (after == "1") != (c.want == 429) {
			t.Errorf(
				"%s %s of %s while eve:red reads none of its answers: got %d with Retry-After %q, want %d",
				c.method, c.path, c.token, w.Code, after, c.want,
			)
		}
	}
	close(end)
	ended.Wait()
	w := httptest.NewRecorder()
	if ask(w, "GET", "/huge", "eve:red"); w.Code != 200 || len(shares.used) != 0 {
		t.Errorf(
			"GET of the client after its answers have ended: got %d and %d shares in use, want 200 and none",
			w.Code,
			len(shares.used),
		)
	}
}

// TestAnswers_UnreadOnesOfWritesRefuseFurtherWrites does not run in parallel with other tests, because all
// answers of the process share the memory.
func TestAnswers_UnreadOnesOfWritesRefuseFurtherWrites(t *testing.T) {
	const size = 1 << 20
	writes := 0
	api := &API{
		Prefix:   "/a",
		Identity: callers{},
		Fail:     WriteError,
		Routes: []Route{{Method: "PUT", Path: "/x", Handle: func(*http.Request) (int, any, error) {
			writes++
			return 200, strings.Repeat("x", size), nil
		}}},
	}
	ask := func(w http.ResponseWriter, token string) {
		r := httptest.NewRequestWithContext(t.Context(), "PUT", "/a/x", nil)
		r.Header.Set("X-Auth-Token", token)
		api.ServeHTTP(w, r)
	}
	var ended sync.WaitGroup
	end := make(chan struct{})
	for range maxClientAnswers / size {
		begun := make(chan struct{})
		w := unread{httptest.NewRecorder(), sync.OnceFunc(func() { close(begun) }), end}
		ended.Go(func() { ask(w, "eve:red") })
		<-begun
	}
	done := writes
	for _, c := range []struct {
		token string
		want  int
	}{{"ann:red", 429}, {"bob:blue", 200}, {"admin", 200}} {
		w := httptest.NewRecorder()
		if ask(w, c.token); w.Code != c.want {
			t.Errorf("PUT of %s while eve:red reads no answer to a PUT: got %d, want %d", c.token, w.Code, c.want)
		}
	}
	if writes != done+2 {
		t.Errorf("three further requests, one of them refused: %d of them were handled, want 2", writes-done)
	}
	close(end)
	ended.Wait()
	w := httptest.NewRecorder()
	if ask(w, "eve:red"); w.Code != 200 || len(shares.used) != 0 {
		t.Errorf("PUT after the answers have ended: got %d and %d shares in use, want 200 and none", w.Code, len(shares.used))
	}
}

// TestAnswers_UnreadOnesWithoutCredentialsAreLimited does not run in parallel with other tests, because all
// answers of the process share the memory.
func TestAnswers_UnreadOnesWithoutCredentialsAreLimited(t *testing.T) {
	const size = maxAddressAnswers / 4
	form := func(*http.Request) (int, any, error) { return 200, make([]byte, size), nil }
	api := &API{Prefix: "/a", Identity: callers{}, Fail: WriteError}
	for _, method := range []string{"GET", "POST"} {
		api.Routes = append(api.Routes, Route{
			Method: method,
			Path:   "/form",
			Handle: form,
			Open:   true,
		})
	}
	api.Routes = append(api.Routes, Route{Method: "GET", Path: "/x", Handle: form})
	ask := func(w http.ResponseWriter, method, path, address, token string) {
		r := httptest.NewRequestWithContext(t.Context(), method, "/a"+path, nil)
		r.RemoteAddr = address
		r.Header.Set("X-Auth-Token", token)
		api.ServeHTTP(w, r)
	}
	var ended sync.WaitGroup
	end := make(chan struct{})
	for i := range 2 * maxOpenAnswers / size { // six answers to each address, of which its share allows four
		begun, refused := make(chan struct{}), httptest.NewRecorder()
		w := unread{refused, sync.OnceFunc(func() { close(begun) }), end}
		ended.Go(func() {
			ask(w, []string{"GET", "POST"}[i%2], "/form", fmt.Sprintf("[2001:db8::%x:0:0:0:%x]:9", i/6, i), "")
		})
		<-begun
		if want := map[bool]int{true: 200, false: 429}[i%6 < 4]; i < maxOpenAnswers/size && w.Code != want {
			t.Errorf("answer %d to the network %d: got %d, want %d", i%6, i/6, w.Code, want)
		}
	}
	for _, c := range []struct {
		path, token string
		want        int
	}{{"/form", "", 429}, {"/x", "eve:red", 200}} {
		w := httptest.NewRecorder()
		if ask(w, "GET", c.path, "192.0.2.9:1", c.token); w.Code != c.want {
			t.Errorf("GET %s with the token %q from an address without answers: got %d, want %d", c.path, c.token, w.Code, c.want)
		}
	}
	if used := shares.used["answers without credentials"]; used != maxOpenAnswers {
		t.Errorf("unread answers without credentials: %d bytes count, want %d", used, maxOpenAnswers)
	}
	close(end)
	ended.Wait()
	if len(shares.used) != 0 {
		t.Errorf("after all answers: %d shares are in use, want none", len(shares.used))
	}
}
