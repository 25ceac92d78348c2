package server_test

import (
	"net/http"
	"strings"
	"testing"

	"berth/internal/config"
	"berth/internal/server/servertest"
)

func TestSecurityHeaders_OnEveryAnswer(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	withTLS := newTLSFiles(t, ca, "server").settings()
	for name, settings := range map[string][]string{"HTTP": nil, "HTTPS": withTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := servertest.StartApp(t, config.API, settings...)
			strict := ""
			if settings != nil {
				strict = "max-age=31536000"
			}
			for path, status := range map[string]int{
				"/healthz":               200,
				"/metrics":               200,
				"/placement/":            200,
				"/networking/v2.0/ports": 401,
				"/nonexistent":           404,
			} {
				r, _ := get(t, ca.client(), a.URL()+path)
				got := [2]string{
					r.Header.Get("X-Content-Type-Options"),
					r.Header.Get("Strict-Transport-Security"),
				}
				if r.StatusCode != status || got != [2]string{"nosniff", strict} {
					t.Errorf(
						"GET %s: got %s with the headers %q, want %d with nosniff and Strict-Transport-Security %q",
						path, r.Status, got, status, strict,
					)
				}
			}
		})
	}
}

func TestSecurityHeaders_NoStoreForAnAnswerWithAToken(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, config.API)
	r, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, a.URL()+"/operator/v1/agent-tokens",
		strings.NewReader(`{"host":"cmp-1"}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "admin")
	r.Header.Set("Content-Type", "application/json")
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Body.Close()
	if w.StatusCode != http.StatusCreated || w.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("create an agent token: got %s with Cache-Control %q, want 201 with no-store",
			w.Status, w.Header.Get("Cache-Control"))
	}
}
