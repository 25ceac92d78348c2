package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"berth/internal/server/servertest"
)

// TestAPIs_ExplainCandidatesBehindAProxy sends requests to a process as a reverse proxy does.
func TestAPIs_ExplainCandidatesBehindAProxy(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, "api", "BERTH_TRUSTED_PROXIES=127.0.0.1,::1", "BERTH_CANDIDATES_MAX=5")
	send := func(method, path, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method,
			"http://"+a.Address()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"X-Auth-Token":      "admin",
			"Content-Type":      "application/json",
			"X-Forwarded-Proto": "https",
			"X-Forwarded-Host":  "cloud.example.org",
		} {
			r.Header.Set(name, value)
		}
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Body.Close() })
		return w
	}
	const id = "5f0c1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b01"
	created := send("POST", "/placement/resource_providers", `{"name":"p","uuid":"`+id+`"}`)
	if got, want := created.Header.Get("Location"), "https://cloud.example.org/placement/resource_providers/"+id; got != want {
		t.Errorf(
			"create a provider behind a trusted proxy: got the status %s and the Location %s, want %s",
			created.Status, got, want,
		)
	}
	var explained struct {
		Examined   struct{ Trees int }
		Candidates struct{ Limit int }
	}
	answer := send("GET", "/operator/v1/candidates/explain?resources=VCPU:1", "")
	if err := json.NewDecoder(answer.Body).Decode(&explained); err != nil || explained.Examined.Trees != 1 ||
		explained.Candidates.Limit != 5 {
		t.Errorf(
			"explain a query for candidates: got %s with %+v, error %v; want one tree and the configured limit 5",
			answer.Status, explained, err,
		)
	}
}
