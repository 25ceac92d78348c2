package journal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/journal"
)

func TestRun_StartedOnceAndShown(t *testing.T) {
	t.Parallel()
	s, h := threeEntries(t)
	for range 2 {
		status, answer := send(t, h, "admin", "POST", "/runs", `{"kind":"audit","reason":"doubts"}`)
		got, _ := answer["run"].(map[string]any)
		if status != 202 || got["id"] != 1.0 || got["state"] != "running" || got["actor"] != "admin" ||
			got["reason"] != "doubts" {
			t.Fatalf("start an audit: got %d %v, want 202 with the running run 1", status, answer)
		}
	}
	found := []journal.Finding{
		{
			Object:     journal.Ref{Type: "network", ID: "n"},
			Kind:       journal.Different,
			Attributes: []string{"mtu"},
			Data:       []byte(`{}`),
		},
	}
	if err := s.Mirror.SaveFindings(t.Context(), journal.Run{ID: 1}, found); err != nil {
		t.Fatal(err)
	}

	_, answer := send(t, h, "admin", "GET", "/runs/1/findings", "")
	want := []any{
		map[string]any{
			"object_type": "network",
			"object_id":   "n",
			"kind":        "different",
			"attributes":  []any{"mtu"},
			"operation":   "update",
			"outcome":     "",
		},
	}
	if d := cmp.Diff(want, answer["findings"]); d != "" {
		t.Error(d)
	}
	_, rest := send(t, h, "admin", "GET", "/runs/1/findings?after=network/n", "")
	if fmt.Sprint(rest["findings"]) != "[]" {
		t.Errorf("findings after the last finding: got %v, want none", rest)
	}
	if _, answer := send(t, h, "admin", "GET", "/runs", ""); len(answer["runs"].([]any)) != 1 {
		t.Errorf("GET /runs: got %v, want one run", answer)
	}
	for query, want := range map[string]int{
		"?before=1":                   200,
		"?limit=5&before=2":           200,
		"?before=9223372036854775807": 200, // the largest number of a run
		"?before=0":                   400,
		"?limit=x":                    400,
		"?state=done":                 400,
		"?limit=1&limit=2":            400,
	} {
		if status, answer := send(t, h, "admin", "GET", "/runs"+query, ""); status != want {
			t.Errorf("GET /runs%s: got %d %v, want %d", query, status, answer, want)
		}
	}
	if _, answer := send(t, h, "admin", "GET", "/runs?before=1", ""); len(answer["runs"].([]any)) != 0 {
		t.Errorf("GET /runs?before=1: got %v, want no run", answer)
	}
	if status, answer := send(t, h, "admin", "GET", "/runs/1", ""); status != 200 ||
		!strings.Contains(fmt.Sprint(answer), "The audit 1 is running.") {
		t.Errorf("GET /runs/1: got %d %v, want 200 with the sentence that the audit is running",
			status, answer)
	}
}

func TestAnalysis_ReportsDurations(t *testing.T) {
	t.Parallel()
	_, h := threeEntries(t)
	status, answer := send(t, h, "admin", "GET", "/analysis?last=10&slowest=1", "")
	got, _ := answer["analysis"].(map[string]any)
	if slowest, _ := got["slowest"].([]any); status != 200 || got["entries"] != 1.0 ||
		got["attempts"] != 1.0 ||
		len(slowest) != 1 {
		t.Errorf("GET /analysis: got %d %v, want 200 with one entry and one attempt", status, answer)
	}
}

func TestRun_InvalidRequestIsRefused(t *testing.T) {
	t.Parallel()
	_, h := threeEntries(t)
	for _, tt := range []struct {
		token, method, path, body string
		want                      int
	}{
		{"joe:demo", "POST", "/runs", `{"kind":"audit"}`, 403},
		{"joe:demo", "GET", "/runs", "", 403},
		{"joe:demo", "GET", "/analysis", "", 403},
		{"admin", "POST", "/runs", `{}`, 400},
		{"admin", "POST", "/runs", `{"kind":"dance"}`, 400},
		{"admin", "POST", "/runs", `{"kind":"repair"}`, 400},
		{"admin", "POST", "/runs", `{"kind":"audit","plan":1}`, 400},
		{"admin", "POST", "/runs", `{"kind":"repair","plan":7}`, 404},
		{"admin", "POST", "/runs", `{"kind":"repair","plan":-7}`, 404},
		{"admin", "POST", "/runs", `{"kind":"audit","reason":"` + strings.Repeat("x", 1001) + `"}`, 400},
		{"admin", "GET", "/runs/1", "", 404},
		{"admin", "GET", "/runs/x", "", 404},
		{"admin", "GET", "/runs/1/findings", "", 404},
		{"admin", "GET", "/analysis?last=0", "", 400},
		{"admin", "GET", "/analysis?slowest=1001", "", 400},
		{"admin", "GET", "/analysis?colour=red", "", 400},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			status, answer := send(t, h, tt.token, tt.method, tt.path, tt.body)
			if refusal, _ := answer["error"].(map[string]any); status != tt.want || refusal["message"] == "" {
				t.Errorf("%s %s with the body %s and the token %s: got %d %v, want %d with a message",
					tt.method, tt.path, tt.body, tt.token, status, answer, tt.want)
			}
		})
	}
}
