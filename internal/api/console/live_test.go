package console_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/api/console"
	"berth/internal/identity"
)

// event is one server-sent event.
type event struct{ id, name, data string }

// stream opens the stream of a page. The returned function reads the next event; at the end of the stream,
// the event is empty. The returned channel is closed when the server has ended the stream.
func stream(t *testing.T, ctx context.Context, server, path string) (*http.Response, func() event) {
	t.Helper()
	return streamAs(t, ctx, server, path, "admin")
}

// streamAs is stream with another token than that of an administrator.
func streamAs(t *testing.T, ctx context.Context, server, path, token string) (*http.Response, func() event) {
	t.Helper()
	w, next, err := tryStream(t, ctx, server, path, token)
	if err != nil {
		t.Fatal(err)
	}
	return w, next
}

// tryStream does the same as streamAs, but returns the error of a request without a response.
func tryStream(t *testing.T, ctx context.Context, server, path, token string) (*http.Response, func() event, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("X-Auth-Token", token)
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { _ = w.Body.Close() })
	lines := bufio.NewScanner(w.Body)
	lines.Buffer(nil, 1<<20)
	next := func() (e event) {
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data += value + "\n"
			case "":
				if lines.Text() == "" && e.name != "" {
					return e
				}
			}
		}
		return e
	}
	return w, next, nil
}

// await returns the next event with the given name.
func await(t *testing.T, next func() event, name string) event {
	t.Helper()
	for {
		switch e := next(); e.name {
		case name:
			return e
		case "":
			t.Fatalf("the stream has ended without the event %s", name)
		}
	}
}

func TestStream_SurvivesTheDeadlinesOfOtherRequests(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.live.Interval = 10 * time.Millisecond
	limit, next := 100*time.Millisecond, func() event { return event{} }
	for begun := false; !begun; limit *= 2 { // a slow machine cannot begin the stream within a short limit
		next, begun = openLimitedStream(t, e, limit)
	}
	if first := await(t, next, "content"); !strings.Contains(first.data, "L2 on cmp-1") {
		t.Errorf("the first content: got %s, want what waits", first.data)
	}
	time.Sleep(limit) // twice the limit of the stream
	e.createPort("late", "cmp-1")
	for !strings.Contains(await(t, next, "content").data, "2 × port") {
	}
}

// openLimitedStream opens a stream on a server with a time limit for its requests. If the client did not get
// the headers of the stream within the limit, `begun` is false.
func openLimitedStream(t *testing.T, e *estate, limit time.Duration) (next func() event, begun bool) {
	t.Helper()
	api := e.console(identity.Noauth{})
	api.Timeout = limit
	server := httptest.NewUnstartedServer(api)
	server.Config.ReadTimeout, server.Config.WriteTimeout = limit, limit
	server.Start()
	t.Cleanup(server.Close)
	begin := time.Now()
	w, next, err := tryStream(t, t.Context(), server.URL, "/console/?seen=x", "admin")
	if time.Since(begin) >= limit && limit < patience {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Header.Get("Content-Type"); got != "text/event-stream" ||
		w.Header.Get("Cache-Control") != "no-store" {
		t.Errorf(
			"a stream: got Content-Type %q and Cache-Control %q, want text/event-stream and no-store",
			got,
			w.Header.Get("Cache-Control"),
		)
	}
	return next, true
}

func TestStream_DoesNotRepeatWhatTheBrowserShows(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.live.Interval = 10 * time.Millisecond
	server := httptest.NewServer(e.console(identity.Noauth{}))
	t.Cleanup(server.Close)
	t.Cleanup(e.live.Stop)
	path := "/console/providers/" + e.provider // a page whose content does not depend on the time
	_, body := e.send(e.console(identity.Noauth{}), request{"GET", path, "", browser("admin")})
	_, rest, _ := strings.Cut(body, `sse-connect="`)
	connect, _, _ := strings.Cut(rest, `"`)
	shown, ok := strings.CutPrefix(connect, path+"?seen=")
	if !ok {
		t.Fatalf(
			"the stream of the page: got %q, want the path of the page with the hash of its content",
			connect,
		)
	}
	_, next := stream(t, t.Context(), server.URL, connect)
	await(t, next, "state")
	e.check(e.Inventory.DeleteInventory(t.Context(), e.provider, "VCPU"))
	// The page is read in several statements: the first changed content can show a part of the deletion.
	for {
		changed := await(t, next, "content")
		if changed.id == shown {
			t.Fatal("the stream sends the content that the browser shows already, want only changed content")
		}
		if !strings.Contains(changed.data, "VCPU") {
			return
		}
	}
}

func TestStream_NumberIsBounded(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.live.Max = 2
	server := httptest.NewServer(e.console(identity.Noauth{}))
	t.Cleanup(server.Close)
	t.Cleanup(e.live.Stop)
	first, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, ctx := range []context.Context{first, t.Context()} {
		w, next := stream(t, ctx, server.URL, "/console/")
		if await(t, next, "state"); w.StatusCode != http.StatusOK {
			t.Fatalf("a stream below the limit: got %s, want 200", w.Status)
		}
	}
	if w, _ := stream(t, t.Context(), server.URL, "/console/"); w.StatusCode != http.StatusServiceUnavailable ||
		w.Header.Get("Retry-After") == "" {
		t.Errorf("a stream beyond the limit: got %s with Retry-After %q, want 503",
			w.Status, w.Header.Get("Retry-After"))
	}
	cancel()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if w, _ := stream(t, t.Context(), server.URL, "/console/"); w.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a stream whose client has disconnected still counts")
		}
	}
}

// expiring authenticates every request as an administrator until it has expired.
type expiring struct{ expired atomic.Bool }

func (x *expiring) Authenticate(*http.Request) (identity.Caller, error) {
	if x.expired.Load() {
		return identity.Caller{}, identity.ErrUnauthenticated
	}
	return identity.Caller{User: "ann", Project: "admin", Roles: []string{"admin"}}, nil
}

func TestStream_EndsWithItsTokenAndWithTheProcess(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.live.Heartbeat = 10 * time.Millisecond
	id := &expiring{}
	server := httptest.NewServer(e.console(id))
	t.Cleanup(server.Close)
	t.Cleanup(e.live.Stop)
	_, next := stream(t, t.Context(), server.URL, "/console/")
	await(t, next, "state")
	id.expired.Store(true)
	if e := await(t, next, "state"); !strings.Contains(e.data, "expired") {
		t.Errorf("the token expires: got the state %q, want the reason", e.data)
	}
	await(t, next, "end")
	if e := next(); e.name != "" {
		t.Errorf("after the end: got the event %s, want the end of the stream", e.name)
	}
	id.expired.Store(false)
	_, next = stream(t, t.Context(), server.URL, "/console/")
	await(t, next, "content")
	e.live.Stop()
	for next().name != "" {
	}
}

// unvalidated authenticates requests until err is set, and then refuses them with this error.
type unvalidated struct {
	identity.Authenticator
	err     atomic.Pointer[error]
	refused func() // is called before each refusal
}

func (u *unvalidated) Authenticate(r *http.Request) (identity.Caller, error) {
	if err := u.err.Load(); err != nil {
		u.refused()
		return identity.Caller{}, *err
	}
	return u.Authenticator.Authenticate(r)
}

// A viewer can send so many invalid tokens that the token of the page is not validated.
func TestStream_EndsWhenItsTokenIsNotValidated(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	for name, c := range map[string]struct {
		err   error
		grace time.Duration
		ends  bool
	}{
		"too many attempts":      {identity.ErrTooManyAttempts, time.Hour, true},
		"no answer":              {identity.ErrUnavailable, time.Hour, false},
		"no answer for too long": {identity.ErrUnavailable, 50 * time.Millisecond, true},
	} {
		e.live = console.NewLive() // the streams of the last case read the settings of theirs
		t.Cleanup(e.live.Stop)
		e.live.Heartbeat, e.live.Interval, e.live.Grace = 10*time.Millisecond, 10*time.Millisecond, c.grace
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var refusals atomic.Int64
		id := &unvalidated{Authenticator: identity.Noauth{}, refused: func() {
			if refusals.Add(1) > 10 && !c.ends {
				cancel()
			}
		}}
		server := httptest.NewServer(e.console(id))
		t.Cleanup(server.Close)
		_, next := stream(t, ctx, server.URL, "/console/")
		await(t, next, "state")
		id.err.Store(&c.err)
		for last := next(); last.name != ""; last = next() {
			if last.name == "end" {
				t.Errorf("%s: got the event end, want that the browser connects again", name)
			}
		}
		if ended := ctx.Err() == nil; ended != c.ends {
			t.Errorf("%s: the stream has ended by itself: got %t, want %t", name, ended, c.ends)
		}
	}
}

func TestLive_RendersOnceForAllViewers(t *testing.T) {
	t.Parallel()
	live := console.NewLive()
	live.Interval = time.Hour
	var renderings atomic.Int64
	release := make(chan struct{})
	render := func(context.Context) ([]byte, error) {
		renderings.Add(1)
		<-release
		return []byte("content"), nil
	}
	var viewers []<-chan struct{}
	var leaves []func()
	for range 50 {
		changed, _, leave, ok := live.Watch("page", render)
		if !ok {
			t.Fatal("the live pages refuse a viewer below the limit")
		}
		viewers, leaves = append(viewers, changed), append(leaves, leave)
	}
	close(release)
	for _, v := range viewers {
		<-v
	}
	late, current, leave, _ := live.Watch("page", render)
	<-late
	if got := renderings.Load(); got != 1 || string(current()) != "content" {
		t.Errorf("51 viewers of a page: got %d renderings and the content %q, want 1 for all", got, current())
	}
	leave()
	for _, leave := range leaves {
		leave()
	}
	if n := live.Topics(); n != 0 {
		t.Errorf("after the last viewer has left: got %d pages that berth renders, want none", n)
	}
}

func TestLive_PanicInARenderingEndsNoOtherRendering(t *testing.T) {
	t.Parallel()
	live := console.NewLive()
	live.Interval = time.Millisecond
	var renderings atomic.Int64
	changed, current, leave, ok := live.Watch("page", func(context.Context) ([]byte, error) {
		if renderings.Add(1) == 1 {
			panic("scripted")
		}
		return []byte("content"), nil
	})
	if !ok {
		t.Fatal("the live pages refuse a viewer below the limit")
	}
	defer leave()
	for current() == nil { // the first change is the failure
		<-changed
	}
	if got := string(current()); got != "content" {
		t.Errorf("content of a page whose first rendering panicked: got %q, want that of the second one", got)
	}
}

// A browser ends a line of a stream at a carriage return, too. Clients choose the
// names of leases and ports.
func TestStream_NamesCannotAddEvents(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.live.Interval = 10 * time.Millisecond
	server := httptest.NewServer(e.console(identity.Noauth{}))
	t.Cleanup(server.Close)
	t.Cleanup(e.live.Stop)
	const hostile = "x\r\revent: content\rdata: Nothing waits.\r\n\revent: end\rdata: expired\r\r"
	port := e.createPort(hostile, "cmp-1")
	begin := time.Now().Add(100 * time.Hour)
	lease := e.createLease(hostile, begin, begin.Add(time.Hour), 1)
	for _, path := range []string{"/console/waiting/agent?host=cmp-1&name=L2", "/console/calendar?zoom=4+weeks", "/console/leases/" + lease.ID.String(),
		"/console/journal", fmt.Sprintf("/console/hosts/%d", e.host.ID), "/console/ports/" + port.ID.String()} {
		_, next := stream(t, t.Context(), server.URL, path)
		if content := await(t, next, "content"); strings.Contains(content.data, "\r") {
			t.Errorf(
				"the stream of %s has a carriage return in the data of an event, so a browser reads further events: %.200q",
				path,
				content.data[strings.IndexByte(content.data, '\r'):],
			)
		}
	}
}
