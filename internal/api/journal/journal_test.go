package journal_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "berth/internal/api/journal"
	"berth/internal/api/openapi/openapitest"
	"berth/internal/identity"
	"berth/internal/journal"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// threeEntries returns a store whose journal has three entries: a failed entry of a network, an entry of a
// port that waits for the failed entry, and a completed entry of another network.
func threeEntries(t *testing.T) (*store.Store, http.Handler) {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	storetest.Exec(t, url, `
		insert into journal_entry (object_type, object_id, operation, data, parents, project, name)
		values ('network', 'n', 'create', '{"id": "n"}', '{}', 'demo', 'blue'),
			('port', 'p', 'create', '{"id": "p"}', '{network/n}', 'demo', 'web'),
			('network', 'm', 'create', '{"id": "m"}', '{}', 'demo', 'red')`)
	storetest.Exec(t, url, `insert into journal_dep (entry, waits_for) values (2, 1)`)
	for seq, o := range map[int64]journal.Outcome{1: {Kind: journal.OutcomeFailed, Reason: "the controller answered 400"}, 3: {Kind: journal.OutcomeDone}} {
		take, err := s.Journal.ClaimEntry(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Journal.SaveOutcome(t.Context(), seq, take.Entry.Attempt, o); err != nil {
			t.Fatal(err)
		}
	}
	return s, openapitest.API(t, api.Description(), api.New(s.Journal, s.Mirror, identity.Noauth{}))
}

func send(t *testing.T, h http.Handler, token, method, path, body string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/journal/v1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var answer map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("decode the answer to %s %s: status %d, body %q, error %v; want JSON",
			method, path, w.Code, w.Body, err)
	}
	return w.Code, answer
}

func TestList_NewestFirstAndFiltered(t *testing.T) {
	t.Parallel()
	_, h := threeEntries(t)
	for query, want := range map[string]string{
		"":                            "[3 2 1]",
		"?order=asc":                  "[1 2 3]",
		"?state=failed":               "[1]",
		"?state=pending":              "[2]",
		"?state=completed":            "[3]",
		"?state=processing":           "[]",
		"?type=network":               "[3 1]",
		"?object=p":                   "[2]",
		"?limit=1":                    "[3]",
		"?limit=1&after=3":            "[2]",
		"?limit=99999999":             "[3 2 1]",
		"?after=1&order=asc":          "[2 3]",
		"?object=%27%3B+drop+table--": "[]",
	} {
		t.Run(query, func(t *testing.T) {
			status, answer := send(t, h, "admin", "GET", "/entries"+query, "")
			seqs := []any{}
			entries, _ := answer["entries"].([]any)
			for _, e := range entries {
				seqs = append(seqs, e.(map[string]any)["seq"])
			}
			if status != 200 || answer["entries"] == nil || fmt.Sprint(seqs) != want {
				t.Errorf(
					"list entries with the query %q: got status %d and entries %v, want 200 and the entries %s",
					query, status, seqs, want,
				)
			}
		})
	}
}

func TestShow_SaysWhyTheEntryWaits(t *testing.T) {
	t.Parallel()
	_, h := threeEntries(t)
	status, answer := send(t, h, "admin", "GET", "/entries/2", "")
	got, _ := answer["entry"].(map[string]any)
	if status != 200 || got == nil {
		t.Fatalf("show an entry: got %d %v, want 200 with the entry", status, answer)
	}
	created := got["created_at"]
	want := map[string]any{
		"seq":         2.0,
		"operation":   "create",
		"object_type": "port",
		"object_id":   "p",
		"name":        "web",
		"project_id":  "demo",
		"state":       "pending",
		"attempts":    0.0,
		"failures":    0.0,
		"last_error":  "",
		"created_at":  created,
		"taken_at":    nil,
		"finished_at": nil,
		"retry_at":    nil,
		"carried_by":  nil,
		"audit":       []any{},
		"data":        map[string]any{"id": "p"},
		"blockers": []any{
			map[string]any{
				"seq":         1.0,
				"operation":   "create",
				"object_type": "network",
				"object_id":   "n",
				"state":       "failed",
				"since":       created,
			},
		},
		"berth:why": map[string]any{
			"sentence": "waits for entry 1 (create network n), which is failed",
			"waiting":  []any{map[string]any{"for": "journal/1", "since": created, "deadline": nil}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestRetry_FailedEntryBecomesPending(t *testing.T) {
	t.Parallel()
	s, h := threeEntries(t)
	status, answer := send(t, h, "admin", "POST", "/entries/1/retry", "")
	if got, _ := answer["entry"].(map[string]any); status != 200 || got["state"] != "pending" ||
		got["failures"] != 0.0 {
		t.Fatalf(
			"retry a failed entry: got %d %v, want 200 with the entry pending and without failures",
			status,
			answer,
		)
	}
	if take, err := s.Journal.ClaimEntry(t.Context(), 1); err != nil ||
		take.Entry.State != journal.Processing {
		t.Errorf("claim the retried entry: got %+v, error %v; want the entry in the state processing",
			take, err)
	}
}

func TestSkip_ReleasesBlockedEntries(t *testing.T) {
	t.Parallel()
	s, h := threeEntries(t)
	status, answer := send(t, h, "admin", "POST", "/entries/1/skip", `{"reason": "made by hand"}`)
	if got, _ := answer["entry"].(map[string]any); status != 200 || got["state"] != "completed" ||
		got["last_error"] != "skipped by admin: made by hand" {
		t.Fatalf("skip a failed entry: got %d %v, want 200 with the entry completed and the reason",
			status, answer)
	}
	if take, err := s.Journal.ClaimEntry(t.Context(), 2); err != nil || len(take.Blockers) > 0 {
		t.Errorf("claim the entry that waited for the skipped one: got %+v, error %v; want no blockers",
			take, err)
	}
	got, _ := answer["entry"].(map[string]any)
	decisions, _ := got["audit"].([]any)
	if len(decisions) != 1 {
		t.Fatalf("attribute audit of the skipped entry: got %v, want one decision", got["audit"])
	}
	decision, _ := decisions[0].(map[string]any)
	if d := cmp.Diff(map[string]any{
		"at":     decision["at"],
		"actor":  "admin",
		"action": "skip",
		"reason": "made by hand",
	}, decision); d != "" {
		t.Error(d)
	}
	if status, answer := send(t, h, "admin", "POST", "/entries/1/skip", ""); status != 409 {
		t.Errorf("skip an entry a second time: got %d %v, want 409", status, answer)
	}
}

func TestError_NamesTheEntry(t *testing.T) {
	t.Parallel()
	_, h := threeEntries(t)
	for path, want := range map[string]string{
		"/entries/9/retry": "There is no journal entry 9.",
		"/entries/3/retry": "Journal entry 3 is completed.",
		"/entries/2/retry": "Journal entry 2 waits for entry 1.",
	} {
		t.Run(path, func(t *testing.T) {
			_, answer := send(t, h, "admin", "POST", path, "")
			if refusal, _ := answer["error"].(map[string]any); refusal["message"] != want {
				t.Errorf("POST %s: got %v, want an error with the message %q", path, answer, want)
			}
		})
	}
}

func TestRequest_ErrorStatuses(t *testing.T) {
	t.Parallel()
	_, h := threeEntries(t)
	for _, tt := range []struct {
		token, method, path, body string
		want                      int
	}{
		{"", "GET", "/entries", "", 401},
		{"joe:demo", "GET", "/entries", "", 403},
		{"joe:demo", "GET", "/entries/1", "", 403},
		{"joe:demo", "POST", "/entries/1/retry", "", 403},
		{"joe:demo", "POST", "/entries/1/skip", "", 403},
		{"admin", "GET", "/entries/9", "", 404},
		{"admin", "GET", "/entries/0", "", 404},
		{"admin", "GET", "/entries/-1", "", 404},
		{"admin", "GET", "/entries/x", "", 404},
		{"admin", "GET", "/entries/9223372036854775808", "", 404},
		{"admin", "GET", "/volcanoes", "", 404},
		{"admin", "DELETE", "/entries/1", "", 405},
		{"admin", "POST", "/entries/2/retry", "", 409},
		{"admin", "POST", "/entries/3/skip", "", 409},
		{"admin", "POST", "/entries/9/skip", "", 404},
		{"admin", "POST", "/entries/1/skip", "{", 400},
		{"admin", "POST", "/entries/1/skip", `{"reason": 7}`, 400},
		{"admin", "POST", "/entries/1/skip", `{"raison": "x"}`, 400},
		{"admin", "POST", "/entries/1/skip", `{"reason": "\u0000"}`, 400},
		{"admin", "POST", "/entries/1/skip", `{"reason": "` + strings.Repeat("x", 1001) + `"}`, 400},
		{"admin", "POST", "/entries/1/skip", strings.Repeat(" ", 1<<20+1), 413},
		{"admin", "GET", "/entries?state=melted", "", 400},
		{"admin", "GET", "/entries?limit=0", "", 400},
		{"admin", "GET", "/entries?limit=many", "", 400},
		{"admin", "GET", "/entries?after=-1", "", 400},
		{"admin", "GET", "/entries?order=up", "", 400},
		{"admin", "GET", "/entries?color=red", "", 400},
		{"admin", "GET", "/entries?type=a&type=b", "", 400},
		{"admin", "GET", "/entries?object=%00", "", 400},
		{"admin", "GET", "/entries?object=%ff", "", 400},
		{"admin", "GET", "/entries?%zz", "", 400},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			status, answer := send(t, h, tt.token, tt.method, tt.path, tt.body)
			refusal, _ := answer["error"].(map[string]any)
			if status != tt.want || refusal["code"] != float64(tt.want) || refusal["message"] == "" {
				t.Errorf("%s %s with the token %q: got %d %v, want %d with a message",
					tt.method, tt.path, tt.token, status, answer, tt.want)
			}
		})
	}
}
