package operator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/api/operator"
	"berth/internal/identity"
	"berth/internal/store/storetest"
)

// serveWaiting serves the operators' API on a database in which two ports wait for L2 on cmp-1, and an older
// entry waits for an administrator.
func serveWaiting(t *testing.T) http.Handler {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.ExecScript(t, url, `
		insert into block (object_id, entity, host, since) select ('00000000-0000-4000-8000-00000000000' || i)::uuid, 'L2', 'cmp-1', now() - i * interval '1 minute' from generate_series(1, 2) i;
		insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, attempt, taken_at, created_at)
		values ('port', '1', 'create', '{}', '{}', 'p', '', 'failed', 1, now(), now() - interval '1 hour');`)
	return newAPI(t, operator.Options{Report: s.Report, Identity: identity.Noauth{}})
}

func TestWaiting_NamesThePartyAndTheLongestWait(t *testing.T) {
	t.Parallel()
	h := serveWaiting(t)

	status, answer := send(t, h, "admin", "GET", "/operator/v1/waiting", "")

	var got []map[string]any
	groups, _ := answer["waiting"].([]any)
	for _, g := range groups {
		group := g.(map[string]any)
		if since, err := time.Parse(time.RFC3339, group["since"].(string)); err != nil || since.After(time.Now()) {
			t.Errorf("got a group that waits since %v, want a time in the past", group["since"])
		}
		delete(group, "since")
		got = append(got, group)
	}
	want := []map[string]any{
		{
			"party":    "administrator",
			"name":     "",
			"host":     "",
			"label":    "an administrator",
			"hint":     "The controller has refused these entries. Retry or skip them with starter.",
			"objects":  "journal entry",
			"count":    1.0,
			"at_least": false,
			"longest":  "journal/1",
			"listed":   false,
		},
		{
			"party":    "agent",
			"name":     "L2",
			"host":     "cmp-1",
			"label":    "L2 on cmp-1",
			"hint":     "The ports and trunks become ACTIVE when these agents report that they have done their part.",
			"objects":  "port",
			"count":    2.0,
			"at_least": false,
			"longest":  "port/00000000-0000-4000-8000-000000000002",
			"listed":   true,
		},
	}
	if d := cmp.Diff(want, got); status != 200 || answer["cut"] != false || d != "" {
		t.Errorf("what waits: got status %d, cut %v, groups (-want +got):\n%s", status, answer["cut"], d)
	}
}

func TestWaiting_PagesListTheObjectsOfAParty(t *testing.T) {
	t.Parallel()
	h := serveWaiting(t)
	var objects []string
	path := "/operator/v1/waiting/agent?name=L2&host=cmp-1&limit=1"
	for next := path; next != ""; {
		status, answer := send(t, h, "admin", "GET", next, "")
		page, _ := answer["objects"].([]any)
		if status != 200 || len(page) > 1 || len(objects) > 2 {
			t.Fatalf("GET %s: got %d %v, want a page with at most one object", next, status, answer)
		}
		for _, o := range page {
			objects = append(objects, o.(map[string]any)["object"].(string))
		}
		next = ""
		if after, ok := answer["next"].(string); ok {
			next = path + "&after=" + after
		}
	}
	want := []string{"port/00000000-0000-4000-8000-000000000001", "port/00000000-0000-4000-8000-000000000002"}
	if d := cmp.Diff(want, objects); d != "" {
		t.Errorf("objects on all pages (-want +got):\n%s", d)
	}
}

func TestWaiting_RefusesMembersAndBadQueries(t *testing.T) {
	t.Parallel()
	h := serveWaiting(t)
	for _, c := range []struct {
		token, path string
		status      int
		message     string
	}{
		{"eve:demo", "/waiting", 403, ""},
		{"eve:demo", "/waiting/agent", 403, ""},
		{"admin", "/waiting/controller", 404, `no list of objects that wait for the party "controller"`},
		{"admin", "/waiting/nobody", 404, `no list of objects that wait for the party "nobody"`},
		{"admin", "/waiting/agent?after=1", 400, "'1' is not a valid value of 'after'."},
		{"admin", "/waiting/agent?limit=0", 400, "'0' is not a valid value of 'limit'."},
		{"admin", "/waiting/agent?host=a&host=b", 400, "'a' is not a valid value of 'host'."},
		{"admin", "/waiting/agent?color=red", 400, "Unknown query parameter 'color'."},
	} {
		t.Run(c.token+" "+c.path, func(t *testing.T) {
			status, answer := send(t, h, c.token, "GET", "/operator/v1"+c.path, "")
			problem, _ := answer["error"].(map[string]any)
			message, _ := problem["message"].(string)
			if status != c.status || !strings.Contains(message, c.message) {
				t.Errorf("got %d %v, want %d with %q", status, answer, c.status, c.message)
			}
		})
	}
}
