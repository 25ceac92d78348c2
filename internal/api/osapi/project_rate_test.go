package osapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/store/db"
)

// limitedAPI is an API with a ProjectRate and a clock that the test sets.
type limitedAPI struct {
	*osapi.API
	t       *testing.T
	now     time.Time
	refused []string
}

func newLimitedAPI(t *testing.T, perSecond float64, burst int) *limitedAPI {
	a := &limitedAPI{t: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	a.API = &osapi.API{
		Prefix:   "/a",
		Identity: identity.Noauth{},
		Fail:     osapi.WriteError,
		Routes: []osapi.Route{
			{
				Method: "GET",
				Path:   "/x",
				Handle: func(*http.Request) (int, any, error) { return 200, nil, nil },
			},
			{
				Method: "GET",
				Path:   "/open",
				Open:   true,
				Handle: func(*http.Request) (int, any, error) { return 200, nil, nil },
			},
		},
		Rate: &osapi.ProjectRate{
			PerSecond: perSecond,
			Burst:     burst,
			Now:       func() time.Time { return a.now },
			Refused:   func(prefix string) { a.refused = append(a.refused, prefix) },
		},
	}
	return a
}

// get returns the status of a request, with Retry-After after a space if the response has this header.
func (a *limitedAPI) get(path, token, roles string) string {
	r := httptest.NewRequestWithContext(a.t.Context(), "GET", path, nil)
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("X-Roles", roles)
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	if after := w.Header().Get("Retry-After"); after != "" {
		return fmt.Sprintf("%d %s", w.Code, after)
	}
	return fmt.Sprint(w.Code)
}

func TestProjectRate_RefusesWithTheTimeToWait(t *testing.T) {
	t.Parallel()
	a := newLimitedAPI(t, 0.4, 2) // a token every 2.5 seconds
	for i, step := range []struct {
		after       time.Duration
		token, want string
	}{
		{0, "ann:demo", "200"},
		{0, "bob:demo", "200"},
		{0, "ann:demo", "429 3"},
		{0, "eve:other", "200"},
		{500 * time.Millisecond, "bob:demo", "429 2"},
		{time.Second, "ann:demo", "429 1"},
		{time.Second, "ann:demo", "200"}, // a refused request takes no token
		{0, "ann:demo", "429 3"},
		{time.Hour, "ann:demo", "200"},
		{0, "ann:demo", "200"},
		{0, "ann:demo", "429 3"},
	} {
		a.now = a.now.Add(step.after)
		if got := a.get("/a/x", step.token, "member"); got != step.want {
			t.Errorf("request %d, of %s: got %s, want %s", i, step.token, got, step.want)
		}
	}
	if len(a.refused) != 5 || a.refused[0] != "/a" {
		t.Errorf("refused requests that were reported: got %v, want /a five times", a.refused)
	}
}

// A small request can write many objects, such as all ports of a network.
func TestProjectRate_CountsEachPortThatARequestWrites(t *testing.T) {
	t.Parallel()
	a := newLimitedAPI(t, 1, 10)
	written := 0
	a.Routes[0].Handle = func(r *http.Request) (int, any, error) {
		for range written {
			db.CountChanges(r.Context(), 1)
		}
		return 200, nil, nil
	}
	for i, step := range []struct {
		after   time.Duration
		written int
		roles   string
		want    string
	}{
		{0, 25, "admin", "200"},
		{0, 1, "member", "200"},
		{0, 25, "member", "200"}, // one token is left of ten, without 1, 1 and 24
		{0, 0, "member", "429 17"},
		{16 * time.Second, 0, "member", "429 1"},
		{time.Second, 0, "member", "200"},
		{time.Hour, 1_000_000, "member", "200"}, // counts as ten full buckets
		{90 * time.Second, 0, "member", "429 2"},
		{2 * time.Second, 0, "member", "200"},
	} {
		a.now, written = a.now.Add(step.after), step.written
		if got := a.get("/a/x", "ann:demo", step.roles); got != step.want {
			t.Errorf("request %d, which writes %d objects: got %s, want %s", i, step.written, got, step.want)
		}
	}
}

func TestProjectRate_AdministratorsServicesAndOpenRoutesAreExempt(t *testing.T) {
	t.Parallel()
	a := newLimitedAPI(t, 1, 1)
	for _, tc := range []struct{ path, roles, want string }{
		{"/a/x", "member,admin", "200"}, {"/a/x", "service", "200"}, {"/a/open", "member", "200"}, {"/a/x", "member", "429 1"},
	} {
		t.Run(tc.path+" "+tc.roles, func(t *testing.T) {
			last := ""
			for range 3 {
				last = a.get(tc.path, "ann:demo", tc.roles)
			}
			if last != tc.want {
				t.Errorf("the third request to %s with the roles %s: got %s, want %s",
					tc.path, tc.roles, last, tc.want)
			}
		})
	}
}

func TestProjectRate_ForgetsIdleProjects(t *testing.T) {
	t.Parallel()
	a := newLimitedAPI(t, 10, 20) // a bucket is full after two seconds
	for i := range 1000 {
		a.get("/a/x", fmt.Sprintf("ann:p%d", i), "member")
	}
	a.now = a.now.Add(2 * time.Second)
	a.get("/a/x", "ann:busy", "member")
	if got := a.Rate.Projects(); got != 1 {
		t.Errorf(
			"projects after two seconds without a request: got %d, want only the project that sent one",
			got,
		)
	}
}

// agents authenticates the agents of a host by the name of the host, and other callers like Noauth.
type agents struct{ identity.Noauth }

func (a agents) Authenticate(r *http.Request) (identity.Caller, error) {
	if host, ok := strings.CutPrefix(r.Header.Get("X-Auth-Token"), "agent "); ok {
		return identity.Caller{User: host, AgentHost: host}, nil
	}
	return a.Noauth.Authenticate(r)
}

func TestHostRate_RefusesOneHostWithTheTimeToWait(t *testing.T) {
	t.Parallel()
	a := newLimitedAPI(t, 0.4, 1)
	a.Identity = agents{}
	a.HostRate = &osapi.HostRate{
		PerSecond: 0.5,
		Burst:     2,
		Now:       a.Rate.Now,
		Refused:   a.Rate.Refused,
	}
	for i, step := range []struct {
		after       time.Duration
		token, want string
	}{
		{0, "agent cmp-1", "200"},
		{0, "agent cmp-1", "200"},
		{0, "agent cmp-1", "429 2"},
		{0, "agent cmp-2", "200"},
		{0, "cmp-1:demo", "200"}, // a user is not an agent
		{0, "cmp-1:demo", "429 3"},
		{time.Second, "agent cmp-1", "429 1"},
		{time.Second, "agent cmp-1", "200"}, // a refused request takes no token
		{0, "agent cmp-1", "429 2"},
	} {
		a.now = a.now.Add(step.after)
		if got := a.get("/a/x", step.token, "member"); got != step.want {
			t.Errorf("request %d, of %s: got %s, want %s", i, step.token, got, step.want)
		}
	}
	if len(a.refused) != 4 {
		t.Errorf("refused requests that were reported: got %v, want four", a.refused)
	}
}
