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

// writeAPI is an API with one route for writes.
func writeAPI(handle Handler) *API {
	return &API{
		Prefix:   "/a",
		Identity: callers{},
		Fail:     WriteError,
		Routes:   []Route{{Method: "PUT", Path: "/x", Handle: handle}},
	}
}

// put sends a request of the client with the token.
func put(ctx context.Context, api *API, w http.ResponseWriter, token string, body io.Reader) {
	r := httptest.NewRequestWithContext(ctx, "PUT", "/a/x", body)
	r.Header.Set("X-Auth-Token", token)
	api.ServeHTTP(w, r)
}

// TestWrites_OneClientHasFewAtOnce does not run in parallel with other tests, because all requests of the
// process share the slots.
func TestWrites_OneClientHasFewAtOnce(t *testing.T) {
	const requests = 3 * maxClientWrites
	begun, end := make(chan string, 3*requests), make(chan struct{})
	api := writeAPI(func(r *http.Request) (int, any, error) {
		begun <- r.Header.Get("X-Auth-Token")
		<-end
		return 204, nil, nil
	})
	var ended sync.WaitGroup
	ask := func(ctx context.Context, token string) {
		ended.Go(func() { put(ctx, api, httptest.NewRecorder(), token, nil) })
	}
	for range requests {
		ask(t.Context(), "eve:red")
	}
	for range maxClientWrites {
		<-begun
	}
	for _, token := range []string{"bob:blue", "admin", "host:cmp-1"} {
		most := map[bool]int{true: 1, false: maxClientWrites + 1}[token == "bob:blue"]
		for range most {
			ask(t.Context(), token)
		}
		for range most {
			if got := <-begun; got != token {
				t.Errorf("with %d writes of the project red: a write of %s began, want one of %s", maxClientWrites, got, token)
			}
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	ask(gone, "eve:red")
	close(end)
	ended.Wait()
	if n := len(begun); n != requests-maxClientWrites || len(writes.clients) != 0 {
		t.Errorf("after all requests: %d more writes began and %d clients have slots, want %d and none",
			n, len(writes.clients), requests-maxClientWrites)
	}
}

// TestWrites_BodyThatDoesNotEndHoldsNoSlot does not run in parallel with other tests, because all requests of
// the process share the slots.
func TestWrites_BodyThatDoesNotEndHoldsNoSlot(t *testing.T) {
	handled, end := make(chan string, 2*maxClientWrites+1), make(chan struct{})
	api := writeAPI(func(r *http.Request) (int, any, error) {
		raw, err := Body(r)
		handled <- string(raw)
		return 204, nil, err
	})
	var waiting, ended sync.WaitGroup
	for range 2 * maxClientWrites {
		waiting.Add(1)
		body := io.MultiReader(strings.NewReader("slow"), stall{waiting.Done, func() { <-end }})
		ended.Go(func() { put(t.Context(), api, httptest.NewRecorder(), "eve:red", body) })
	}
	waiting.Wait()
	if len(handled) != 0 {
		t.Errorf("%d requests whose bodies have not ended: the handler was called %d times, want never", 2*maxClientWrites, len(handled))
	}
	put(t.Context(), api, httptest.NewRecorder(), "eve:red", strings.NewReader("fast"))
	if got := <-handled; got != "fast" {
		t.Errorf("request with a complete body: the handler got %q, want fast", got)
	}
	close(end)
	ended.Wait()
	for range 2 * maxClientWrites {
		if got := <-handled; got != "slow" {
			t.Errorf("body that ended late: the handler got %q, want slow", got)
		}
	}
}

// TestWrites_AdmittedTogetherStopAtUnreadAnswers does not run in parallel with other tests, because all
// answers of the process share the memory.
func TestWrites_AdmittedTogetherStopAtUnreadAnswers(t *testing.T) {
	const size, requests = 1 << 20, 5 * maxClientAnswers / (1 << 20)
	gate, end, events := make(chan struct{}), make(chan struct{}), make(chan bool, 2*requests)
	api := writeAPI(func(*http.Request) (int, any, error) {
		<-gate
		return 200, make([]byte, size), nil
	})
	var bodies, ended sync.WaitGroup
	for range requests {
		bodies.Add(1)
		ended.Go(func() {
			answered := sync.OnceFunc(func() { events <- true })
			w := unread{httptest.NewRecorder(), func() {}, end}
			w.begun = func() {
				if w.Code == http.StatusOK {
					answered()
					return
				}
				events <- false
			}
			put(t.Context(), api, readRefusals{w}, "eve:red", stall{bodies.Done, func() {}})
		})
	}
	bodies.Wait() // all requests have passed the check before the slots
	close(gate)
	unreadAnswers := 0
	for range requests {
		if <-events {
			unreadAnswers++
		}
	}
	if most := maxClientAnswers/size + maxClientWrites; unreadAnswers > most || unreadAnswers < maxClientAnswers/size {
		t.Errorf("%d writes at once, whose answers of %d bytes the client does not read: got %d answers, want at most %d",
			requests, size, unreadAnswers, most)
	}
	close(end)
	ended.Wait()
}

// readRefusals is a client that reads refusals but no other answers.
type readRefusals struct{ unread }

func (w readRefusals) Write(p []byte) (int, error) {
	if w.Code == http.StatusOK {
		return w.unread.Write(p)
	}
	w.begun()
	return len(p), nil
}

// TestWrites_WaitingForAServiceLeavesSlotsToOthers does not run in parallel with other tests, because all
// requests of the process share the slots.
func TestWrites_WaitingForAServiceLeavesSlotsToOthers(t *testing.T) {
	const requests = 2 * maxWrites
	begun, end, blocked := make(chan struct{}, requests), make(chan struct{}), make(chan int, requests)
	api := writeAPI(func(r *http.Request) (int, any, error) {
		if r.Header.Get("X-Auth-Token") == "bob:blue" {
			return 204, nil, nil
		}
		err := WaitOutside(r.Context(), func() {
			begun <- struct{}{}
			<-end
		})
		return 204, nil, err
	})
	var ended sync.WaitGroup
	for i := range requests {
		token := "eve:red-" + string(rune('a'+i/maxClientWrites))
		ended.Go(func() {
			w := httptest.NewRecorder()
			put(t.Context(), api, w, token, nil)
			blocked <- w.Code
		})
	}
	for range requests {
		<-begun
	}
	w := httptest.NewRecorder()
	if put(t.Context(), api, w, "bob:blue", nil); w.Code != 204 {
		t.Errorf("write of another project while %d writes wait for a service: got %d, want 204", requests, w.Code)
	}
	close(end)
	ended.Wait()
	for range requests {
		if code := <-blocked; code != 204 {
			t.Errorf("write that has waited for a service: got %d, want 204", code)
		}
	}
	if !writes.all.TryAcquire(maxWrites) || len(writes.clients) != 0 {
		t.Error("after all writes: some slots are in use, want none")
	} else {
		writes.all.Release(maxWrites)
	}
}

// TestWrites_OnesThatWaitForAWorkflowLeaveSlotsToTheirProject does not run in parallel with other tests,
// because all requests of the process share the slots.
func TestWrites_OnesThatWaitForAWorkflowLeaveSlotsToTheirProject(t *testing.T) {
	const requests = 3 * maxClientWrites
	waiting, end := make(chan struct{}, requests), make(chan struct{})
	resumed, answer := make(chan struct{}, requests), make(chan struct{})
	api := writeAPI(func(r *http.Request) (int, any, error) {
		err := WaitWithoutSlot(r, func() {
			waiting <- struct{}{}
			<-end
		})
		resumed <- struct{}{}
		<-answer
		return 204, nil, err
	})
	codes := make(chan int, requests)
	for range requests {
		go func() {
			w := httptest.NewRecorder()
			put(t.Context(), api, w, "eve:red", nil)
			codes <- w.Code
		}()
	}
	for range requests {
		<-waiting
	}
	if !writes.all.TryAcquire(maxWrites) {
		t.Errorf("while %d requests wait: some slots are in use, want none", requests)
	} else {
		writes.all.Release(maxWrites)
	}
	close(end)
	for range maxClientWrites {
		<-resumed
	}
	// The project has all its slots now, so a request that resumes nevertheless has none.
	project := writes.join(ProjectName(identity.Caller{Project: "red"}))
	if project.slots.TryAcquire(1) {
		t.Errorf("after the wait: %d requests resumed, but some slots of their project are free, want none", maxClientWrites)
	}
	writes.leave(ProjectName(identity.Caller{Project: "red"}))
	if len(resumed) != 0 {
		t.Errorf("after the wait: %d more requests resumed than the project has slots, want none", len(resumed))
	}
	close(answer)
	for range requests {
		if code := <-codes; code != 204 {
			t.Errorf("request that has waited: got %d, want 204", code)
		}
	}
	if !writes.all.TryAcquire(maxWrites) || len(writes.clients) != 0 {
		t.Error("after all writes: some slots are in use, want none")
	} else {
		writes.all.Release(maxWrites)
	}
}

// TestWrites_ThatHaveWaitedForAWorkflowStopAtUnreadAnswers does not run in parallel with other tests, because
// all answers of the process share the memory.
func TestWrites_ThatHaveWaitedForAWorkflowStopAtUnreadAnswers(t *testing.T) {
	api := writeAPI(func(r *http.Request) (int, any, error) {
		var release func()
		err := WaitWithoutSlot(r, func() { release = countAnswer(r, maxClientAnswers) })
		release()
		return 204, nil, err
	})
	w := httptest.NewRecorder()
	if put(t.Context(), api, w, "eve:red", nil); w.Code != http.StatusTooManyRequests {
		t.Errorf("request whose client got many answers meanwhile and read none: got %d, want 429", w.Code)
	}
	if len(writes.clients) != 0 {
		t.Errorf("after the request: %d clients have slots, want none", len(writes.clients))
	}
}

// The body of a request is not kept while the answer waits for the client.
func TestBody_IsForgottenAfterTheHandler(t *testing.T) {
	t.Parallel()
	var seen *http.Request
	api := writeAPI(func(r *http.Request) (int, any, error) {
		raw, err := Body(r)
		if err != nil || string(raw) != "{}" {
			t.Errorf("body in the handler: got %q, error %v; want {}", raw, err)
		}
		seen = r
		return 204, nil, nil
	})
	put(t.Context(), api, httptest.NewRecorder(), "eve:red", strings.NewReader("{}"))
	if b, ok := seen.Body.(*receivedBody); !ok || b.raw != nil || b.unread != nil {
		t.Errorf("body after the handler: got %+v, want none", seen.Body)
	}
}
