package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRaceHasOneWinnerOrIsBroken(t *testing.T) {
	t.Parallel()
	conflict := &trouble{err: &refusal{status: 409, kind: "placement.concurrent_update"}}
	other := &trouble{err: &refusal{status: 409, kind: "placement.undefined_code"}}
	for name, c := range map[string]struct {
		first, second error
		status        int
		broken        string
	}{
		"the first wins":       {nil, conflict, 204, ""},
		"the second wins":      {conflict, nil, 204, ""},
		"both win":             {nil, nil, 204, "both writers of one generation succeeded"},
		"both lose":            {conflict, conflict, 204, "both writers were refused"},
		"refused otherwise":    {nil, other, 204, "refused otherwise"},
		"won with another way": {nil, conflict, 200, "got 200 instead of 204"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			won, lost, err := race(204, func(writer int) (int, error) {
				if writer == 0 {
					return c.status, c.first
				}
				return c.status, c.second
			})
			switch {
			case c.broken == "" && (err != nil || won.err != nil || lost.err == nil || won.writer == lost.writer):
				t.Errorf("won %v, lost %v, error %v", won, lost, err)
			case c.broken != "" && (err == nil || !strings.Contains(err.Error(), c.broken)):
				t.Errorf("error %v, want %q", err, c.broken)
			}
		})
	}
}

// lease makes the API's form of a lease.
func leaseObject(status, reservation, start, end string) object {
	return object{"status": status, "reservations": []any{object{"id": "r", "status": reservation}},
		"events": []any{object{"event_type": "start_lease", "status": start}, object{"event_type": "end_lease", "status": end}}}
}

func TestLeaseTableAllowsWhatTheContractAllows(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{}
	for _, row := range []string{
		"CREATING pending UNDONE UNDONE", "PENDING pending UNDONE UNDONE",
		"STARTING pending IN_PROGRESS UNDONE", "STARTING active IN_PROGRESS UNDONE", "STARTING error IN_PROGRESS UNDONE",
		"ACTIVE active DONE UNDONE",
		"TERMINATING active DONE IN_PROGRESS", "TERMINATING deleted DONE IN_PROGRESS", "TERMINATING error DONE IN_PROGRESS",
		"TERMINATING active ERROR IN_PROGRESS", "TERMINATING deleted ERROR IN_PROGRESS", "TERMINATING error ERROR IN_PROGRESS",
		"TERMINATED deleted DONE DONE",
	} {
		allowed[row] = true
	}
	events := []string{"UNDONE", "IN_PROGRESS", "DONE", "ERROR"}
	for _, status := range []string{"CREATING", "PENDING", "STARTING", "ACTIVE", "TERMINATING", "TERMINATED", "ERROR", "DELETING", "UPDATING"} {
		for _, reservation := range []string{"pending", "active", "deleted", "error"} {
			for _, start := range events {
				for _, end := range events {
					row := fmt.Sprintf("%s %s %s %s", status, reservation, start, end)
					if err := viewOf(leaseObject(status, reservation, start, end)).check(); (err == nil) != allowed[row] {
						t.Errorf("%s: %v", row, err)
					}
				}
			}
		}
	}
}

func TestLatenessIsToldByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ due, done, broken string }{
		"on time":   {"2030-01-01T00:00:00.000000", "2030-01-01 00:00:00.012345", ""},
		"whole":     {"2030-01-01T00:00:00.000000", "2030-01-01 00:00:00", ""},
		"busy":      {"2030-01-01T00:00:00.000000", "2030-01-01 00:00:01.5", ""},
		"too early": {"2030-01-01T00:00:01.000000", "2030-01-01 00:00:00.999", "due at 00:00:01"},
		"too late":  {"2030-01-01T00:00:00.000000", "2030-01-01 00:00:15.5", "done 15.5s later"},
		"no time":   {"soon", "2030-01-01 00:00:01.5", "soon"},
		"never":     {"2030-01-01T00:00:00.000000", "<nil>", "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &stage{w: t.Output(), began: time.Now()}
			err := d.punctual(view{at: map[string]string{"end_lease": c.due}, changed: map[string]string{"end_lease": c.done}}, "end_lease")
			if (err == nil) != (c.broken == "") || err != nil && !strings.Contains(err.Error(), c.broken) {
				t.Error(err)
			}
		})
	}
}

func TestEveryShapeOfRefusalIsUnderstood(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   refusal
	}{
		"Neutron": {409, `{"NeutronError": {"type": "PortInUse", "message": "Port is in use.", "detail": ""}}`,
			refusal{kind: "PortInUse", message: "Port is in use."}},
		"Placement": {409, `{"errors": [{"status": 409, "detail": "Fixed words.\n\n generation moved  ", "code": "placement.concurrent_update"}]}`,
			refusal{kind: "placement.concurrent_update", message: "generation moved"}},
		"Blazar":           {404, `{"error_code": 404, "error_message": "not found", "error_name": 404}`, refusal{message: "not found"}},
		"Blazar framework": {404, `{"error": 404, "error_message": "no route"}`, refusal{message: "no route"}},
		"Keystone":         {401, `{"error": {"code": 401, "title": "Unauthorized", "message": "go away"}}`, refusal{message: "go away"}},
		"middleware":       {401, `{"message": "Authentication required", "code": "401 Unauthorized"}`, refusal{message: "Authentication required"}},
		"a page":           {502, `<html>`, refusal{message: "Bad Gateway"}},
		"nothing":          {500, ``, refusal{message: "Internal Server Error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRecorder()
			r.Header().Set("X-Openstack-Request-Id", "req-1")
			r.WriteHeader(c.status)
			c.want.status, c.want.requestID = c.status, "req-1"
			if d := cmp.Diff(&c.want, refusalOf(r.Result(), []byte(c.body)), cmp.AllowUnexported(refusal{})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRedirectIsNoSuccess(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.RedirectHandler("/login", http.StatusFound))
	t.Cleanup(server.Close)

	err := newAPI(&settings{url: server.URL}).do(t.Context(), "GET", "/", nil, nil)

	if err == nil || !strings.Contains(err.Error(), "302") {
		t.Error(err)
	}
}

func TestInstants(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 600_000_000, time.FixedZone("", 3600))
	for word, want := range map[string]any{
		"now": "now", "2030-01-31 10:00": "2030-01-31 10:00", "2030-01-31T10:00:00Z": "2030-01-31T10:00:00Z",
		"+30s": "2030-01-02T02:04:35Z", "+2h": "2030-01-02T04:04:05Z",
	} {
		if got, err := instantAt(word, now); err != nil || got != want {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		path, _ := split(c.words)
		if c.help == "" || c.do == nil {
			t.Errorf("%s lacks help or deed", c.words)
		}
		if len(path) > 1 && groups[path[0]] == "" {
			t.Errorf("the group %s lacks help", path[0])
		}
	}
}
