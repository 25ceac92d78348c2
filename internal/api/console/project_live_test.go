package console_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/identity"
)

// changing authenticates callers by their tokens, which a test can change.
type changing struct {
	mutex  sync.Mutex
	tokens tokens
}

func (c *changing) Authenticate(r *http.Request) (identity.Caller, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.tokens.Authenticate(r)
}

// set changes a token; nil: the token is no longer valid.
func (c *changing) set(token string, caller *identity.Caller) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if delete(c.tokens, token); caller != nil {
		c.tokens[token] = *caller
	}
}

// serve serves the console of the estate until the end of the test.
func (e *estate) serve(id identity.Authenticator) *httptest.Server {
	server := httptest.NewServer(e.console(id))
	e.t.Cleanup(server.Close)
	e.t.Cleanup(e.live.Stop)
	e.t.Cleanup(e.projects.Stop)
	return server
}

// The stream of a page shows what the page shows to the same caller: viewers of other projects and with other
// roles get other renderings.
func TestProjectStream_ShowsTheProjectOfItsToken(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	r := e.createRivals()
	e.projects.Interval = 10 * time.Millisecond
	server := e.serve(callersByToken)
	_, ann := streamAs(t, t.Context(), server.URL, "/console/ports?seen=x", "ann")
	_, eve := streamAs(t, t.Context(), server.URL, "/console/ports?seen=x", "rival-eve")
	first, other := await(t, ann, "content").data, await(t, eve, "content").data
	for _, hidden := range e.hidden(r, "demo") {
		if strings.Contains(first, hidden) {
			t.Errorf("the stream of a member contains %q:\n%s", hidden, first)
		}
	}
	if !strings.Contains(first, "lonely") || strings.Contains(other, "lonely") || !strings.Contains(other, "rival-port") {
		t.Errorf("the streams of two projects: got\n%s\nand\n%s\nwant each project's ports", first, other)
	}
	e.createPortOf("rival", r.port.Network, "rival-late", "cmp-1")
	for !strings.Contains(await(t, eve, "content").data, "rival-late") {
	}
	e.createPort("late", "cmp-1")
	if changed := await(t, ann, "content").data; strings.Contains(changed, "rival") || !strings.Contains(changed, ">late<") {
		t.Errorf("the first change of the project: got\n%s\nwant its new port, and nothing of the other project", changed)
	}
}

func TestProjectStream_EndsWhenItsTokenChanges(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.projects.Heartbeat = 10 * time.Millisecond
	ann := callersByToken["ann"]
	other, roleless, promoted := ann, ann, ann
	other.Project, roleless.Roles, promoted.Roles = "rival", nil, []string{"admin"}
	for name, now := range map[string]*identity.Caller{
		"expired":       nil,
		"other project": &other,
		"no role":       &roleless,
		"administrator": &promoted,
	} {
		id := &changing{tokens: maps.Clone(callersByToken)}
		server := e.serve(id)
		_, next := streamAs(t, t.Context(), server.URL, "/console/", "ann")
		await(t, next, "state")
		id.set("ann", now)
		await(t, next, "end")
		if last := next(); last.name != "" {
			t.Errorf("%s: got the event %s after the end, want the end of the stream", name, last.name)
		}
	}
}

// One user cannot take the live pages of all others, and members cannot take those of administrators.
func TestProjectStream_NumberIsBoundedForEachUser(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	e.projects.MaxEach, e.projects.Max = 2, 3
	server := e.serve(callersByToken)
	for i, c := range []struct {
		token string
		want  int
	}{{"ann", 200}, {"ann", 200}, {"ann", 503}, {"rival-eve", 200}, {"rita", 503}, {"root", 200}} {
		w, next := streamAs(t, t.Context(), server.URL, "/console/", c.token)
		if w.StatusCode != c.want || (c.want == http.StatusServiceUnavailable) != (w.Header.Get("Retry-After") != "") {
			t.Fatalf("stream %d of %s: got %s with Retry-After %q, want %d",
				i+1, c.token, w.Status, w.Header.Get("Retry-After"), c.want)
		}
		if c.want == http.StatusOK {
			await(t, next, "state")
		}
	}
}
