package journal_test

import (
	"net/http"
	"strings"
	"testing"
)

// An administrator pauses and resumes the journal. While the journal is paused, berth:why of a waiting entry
// says so, and no run (full sync, recovery or audit) starts. The field `audit` of the pause lists both
// decisions.
func TestPause_IsShownAndLeavesAnAudit(t *testing.T) {
	t.Parallel()
	_, h := threeEntries(t)
	post := func(path, body string, want int) map[string]any {
		t.Helper()
		code, got := send(t, h, "admin:demo", "POST", path, body)
		if code != want {
			t.Fatalf("POST %s: got status %d, body %v; want %d", path, code, got, want)
		}
		return got
	}
	post("/resume", "", http.StatusConflict)
	if code, got := send(t, h, "admin:demo", "GET", "/pause", ""); code != 200 ||
		got["pause"].(map[string]any)["paused"] != false {
		t.Errorf("GET /pause before a pause: got status %d, body %v; want not paused", code, got)
	}
	paused := post("/pause", `{"reason": "upgrade"}`, http.StatusOK)["pause"].(map[string]any)
	if paused["paused"] != true || paused["actor"] != "admin" || paused["reason"] != "upgrade" ||
		paused["paused_at"] == nil {
		t.Errorf("POST /pause: got %v, want who paused the journal, since when and why", paused)
	}
	post("/pause", "", http.StatusConflict)
	_, shown := send(t, h, "admin:demo", "GET", "/entries/2", "")
	why := shown["entry"].(map[string]any)["berth:why"].(map[string]any)["sentence"].(string)
	if !strings.Contains(why, "waits for entry 1") ||
		!strings.Contains(why, "the journal is paused by admin since ") ||
		!strings.HasSuffix(why, ": upgrade") {
		t.Errorf("entry 2 while the journal is paused: got why %q, want its blocker and the pause", why)
	}
	for _, kind := range []string{"audit", "full-sync", "recovery"} {
		refused := post("/runs", `{"kind": "`+kind+`"}`, http.StatusConflict)
		text := refused["error"].(map[string]any)["message"].(string)
		if !strings.Contains(text, "the journal is paused by admin") {
			t.Errorf(
				"start a run of kind %s while the journal is paused: got %q, want the pause as the reason",
				kind,
				text,
			)
		}
	}
	audit := post("/resume", `{"reason": "done"}`, http.StatusOK)["pause"].(map[string]any)["audit"].([]any)
	if len(audit) != 2 || audit[0].(map[string]any)["action"] != "resume" ||
		audit[0].(map[string]any)["reason"] != "done" ||
		audit[1].(map[string]any)["action"] != "pause" {
		t.Errorf("audit after a pause and a resumption: got %v, want both, newest first", audit)
	}
	post("/runs", `{"kind": "audit"}`, http.StatusAccepted)
	for _, path := range []string{"/pause", "/resume"} {
		if code, got := send(t, h, "member:demo", "POST", path, ""); code != http.StatusForbidden {
			t.Errorf("POST %s without the role admin: got status %d, body %v; want 403", path, code, got)
		}
	}
}
