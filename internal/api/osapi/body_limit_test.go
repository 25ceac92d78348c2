package osapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"berth/internal/identity"
)

// post sends a body to an API. The API's handler reads the body and then calls the function `meanwhile`.
func post(t *testing.T, body string, meanwhile func()) *httptest.ResponseRecorder {
	t.Helper()
	api := &API{
		Prefix:   "/a",
		Identity: identity.Noauth{},
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

// TestBody_MemoryOfAllBodiesIsLimited does not run in parallel with other tests, because it uses up
// maxBodyBytes, which all requests of the process share.
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
			t.Errorf(
				"memory limit during a request with a body of 100 bytes: %d bytes are free, want all but 100",
				n,
			)
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
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" ||
		!strings.Contains(w.Body.String(), "too many requests at the same time") {
		t.Errorf(
			"POST while the memory limit is used up: got %d, headers %v, body %s; want 503 with Retry-After 1",
			w.Code, w.Header(), w.Body,
		)
	}
	if n := free(); n != maxBodyBytes {
		t.Errorf("memory limit after all requests: %d of %d bytes are free, want all", n, maxBodyBytes)
	}
}

// callers authenticates tokens of the form USER:PROJECT, and of the form host:HOST for the agents of a host.
type callers struct{}

func (callers) Authenticate(r *http.Request) (identity.Caller, error) {
	token := r.Header.Get("X-Auth-Token")
	if host, ok := strings.CutPrefix(token, "host:"); ok {
		return identity.Caller{User: host, AgentHost: host}, nil
	}
	return identity.Noauth{}.Authenticate(r)
}

// bodyReader is an API whose handlers read the body of a request.
func bodyReader() *API {
	read := func(r *http.Request) (int, any, error) {
		_, err := Body(r)
		return 204, nil, err
	}
	return &API{
		Prefix:   "/a",
		Identity: callers{},
		Fail:     WriteError,
		Routes: []Route{
			{Method: "POST", Path: "/x", Handle: read},
			{
				Method: "POST",
				Path:   "/open",
				Handle: read,
				Open:   true,
			},
		},
	}
}

// stall is the end of a body that the client does not send.
type stall struct{ begun, end func() }

func (s stall) Read([]byte) (int, error) {
	s.begun()
	s.end()
	return 0, io.EOF
}

// send sends a body and returns the status of the answer.
func send(
	ctx context.Context,
	api *API,
	path, token, address string,
	body io.Reader,
) (status int, retryAfter string) {
	r := httptest.NewRequestWithContext(ctx, "POST", "/a"+path, body)
	r.RemoteAddr = address + ":4711"
	r.Header.Set("X-Auth-Token", token)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w.Code, w.Header().Get("Retry-After")
}

// TestBody_OneClientLeavesMemoryForOthers does not run in parallel with other tests, because all requests of
// the process share the memory.
func TestBody_OneClientLeavesMemoryForOthers(t *testing.T) {
	const other, elsewhere = "bob:blue", "192.0.2.9"
	small := strings.Repeat("x", 1000)
	for name, c := range map[string]struct{ path, token string }{
		"member":                {"/x", "eve:red"},
		"member of no project":  {"/x", "eve:"},
		"agents of a host":      {"/x", "host:cmp-1"},
		"client without token":  {"/open", ""},
		"member, an open route": {"/open", "eve:red"},
	} {
		t.Run(name, func(t *testing.T) {
			api, address := bodyReader(), "192.0.2.1"
			var ended sync.WaitGroup
			end := make(chan struct{})
			for range maxBodyBytes/MaxBody + 8 {
				begun := make(chan struct{})
				once := sync.OnceFunc(func() { close(begun) })
				ended.Go(func() {
					defer once()
					body := io.MultiReader(strings.NewReader(strings.Repeat("x", MaxBody-1)),
						stall{once, func() { <-end }})
					_, _ = send(t.Context(), api, c.path, c.token, address, body)
				})
				<-begun
			}
			for _, path := range []string{"/x", "/open"} {
				if status, _ := send(t.Context(), api, path, other, elsewhere, strings.NewReader(small)); status != 204 {
					t.Errorf(
						"POST %s of another client while a client does not end its bodies: got status %d, want 204",
						path,
						status,
					)
				}
			}
			if status, after := send(t.Context(), api, "/x", "admin", address, strings.NewReader(small)); status != 204 {
				t.Errorf(
					"POST of an administrator from the same address: got status %d, Retry-After %q, want 204",
					status,
					after,
				)
			}
			close(end)
			ended.Wait()
			if status, _ := send(t.Context(), api, c.path, c.token, address, strings.NewReader(small)); status != 204 {
				t.Errorf("POST of the client after its bodies have ended: got status %d, want 204", status)
			}
		})
	}
}

// TestBody_ShareOfAClient does not run in parallel with other tests, because all requests of the process
// share the memory.
func TestBody_ShareOfAClient(t *testing.T) {
	api, end := bodyReader(), make(chan struct{})
	var begun, ended sync.WaitGroup
	for range maxClientBodies / MaxBody {
		begun.Add(1)
		once := sync.OnceFunc(begun.Done)
		ended.Go(func() {
			defer once()
			body := io.MultiReader(strings.NewReader(strings.Repeat("x", MaxBody)),
				stall{once, func() { <-end }})
			if status, _ := send(t.Context(), api, "/x", "eve:red", "192.0.2.1", body); status != 204 {
				t.Errorf("POST of a client within its share: got status %d, want 204", status)
			}
		})
	}
	begun.Wait()
	if status, after := send(t.Context(), api, "/x", "ann:red", "192.0.2.2", strings.NewReader("{}")); status != 429 ||
		after != "1" {
		t.Errorf(
			"POST of a project that uses its share: got status %d and Retry-After %q, want 429 and 1",
			status,
			after,
		)
	}
	close(end)
	ended.Wait()
	if n := len(shares.used); n != 0 {
		t.Errorf("shares after all requests: got %d, want none", n)
	}
}

func TestBody_OpenRoutesHaveSmallBodies(t *testing.T) {
	for path, want := range map[string]int{"/x": 204, "/open": 413} {
		if status, _ := send(t.Context(), bodyReader(), path, "admin", "192.0.2.1", strings.NewReader(strings.Repeat("x", maxOpenBody+1))); status != want {
			t.Errorf("POST %s of %d bytes: got status %d, want %d", path, maxOpenBody+1, status, want)
		}
	}
}
