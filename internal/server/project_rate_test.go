package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"berth/internal/config"
	"berth/internal/identity/keystonetest"
	"berth/internal/server"
	"berth/internal/server/servertest"
)

func TestProjectRate_EveryAPIRefusesInItsOwnFormat(t *testing.T) {
	t.Parallel()
	keystone := keystonetest.New(t)
	keystone.User("berth", "secret", "service", "service")
	greedy := keystone.Issue(keystonetest.Token{User: "eve", Project: "demo", Roles: []string{"member"}})
	other := keystone.Issue(keystonetest.Token{User: "bob", Project: "other", Roles: []string{"member"}})
	a := servertest.StartApp(
		t,
		config.API,
		"BERTH_AUTH=keystone",
		"OS_AUTH_URL="+keystone.URL,
		"OS_USERNAME=berth",
		"OS_PASSWORD=secret",
		"OS_PROJECT_NAME=service",
		"BERTH_PROJECT_RATE=0.001",
		"BERTH_PROJECT_BURST=1",
	)
	send := func(path, token string) (status int, body, after string) { return getAs(t, a, path, token) }
	const ports = "/networking/v2.0/ports"
	if status, body, _ := send(ports, greedy); status != http.StatusOK {
		t.Fatalf("first request of a project: got %d %s, want 200", status, body)
	}

	for path, format := range map[string]string{ports: `{"NeutronError":{`, "/placement/usages?project_id=demo": `{"errors":[{`, "/reservation/v1/leases": `"error_message":`} {
		if status, body, after := send(path, greedy); status != http.StatusTooManyRequests ||
			!strings.Contains(body, format) ||
			after == "" {
			t.Errorf(
				"GET %s over the rate: got %d with Retry-After %q and the body %s; want 429, Retry-After and %s",
				path, status, after, body, format,
			)
		}
	}
	if status, body, _ := send(ports, other); status != http.StatusOK {
		t.Errorf("request of another project: got %d %s, want 200", status, body)
	}
	_, metrics, _ := send("/metrics", "")
	for _, api := range []string{"networking", "placement", "reservation"} {
		if line := `berth_http_throttled_total{api="` + api + `"} 1`; !strings.Contains(metrics, line) {
			t.Errorf("metrics after a refused request to each API: want the line %s", line)
		}
	}
}

func TestProjectRate_NoauthHasNoLimit(t *testing.T) {
	t.Parallel()
	a := servertest.StartApp(t, config.API, "BERTH_PROJECT_RATE=0.001", "BERTH_PROJECT_BURST=1")
	for range 3 {
		if status, body, _ := getAs(t, a, "/networking/v2.0/ports", "eve:demo"); status != http.StatusOK {
			t.Errorf("repeated request with BERTH_AUTH=noauth: got %d %s, want 200", status, body)
		}
	}
}

// getAs sends a GET request with a token, and returns the status, the body and the header Retry-After of the
// answer.
func getAs(t *testing.T, a *server.App, path, token string) (status int, body, after string) {
	t.Helper()
	return sendAs(t, a, http.MethodGet, path, token, "")
}

// sendAs sends a request with a token and a body, and returns the status, the body and the header Retry-After
// of the answer.
func sendAs(
	t *testing.T,
	a *server.App,
	method, path, token, content string,
) (status int, body, after string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, a.URL()+path, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw), answer.Header.Get("Retry-After")
}

func TestAgentRate_LimitsTheAgentsOfOneHost(t *testing.T) {
	t.Parallel()
	keystone := keystonetest.New(t)
	keystone.User("berth", "secret", "service", "service")
	admin := keystone.Issue(keystonetest.Token{User: "root", Project: "admin", Roles: []string{"admin"}})
	a := servertest.StartApp(
		t,
		config.API,
		"BERTH_AUTH=keystone",
		"OS_AUTH_URL="+keystone.URL,
		"OS_USERNAME=berth",
		"OS_PASSWORD=secret",
		"OS_PROJECT_NAME=service",
		"BERTH_AGENT_RATE=0.001",
		"BERTH_AGENT_BURST=1",
	)
	token := func(host string) string {
		_, body, _ := sendAs(t, a, http.MethodPost, "/operator/v1/agent-tokens", admin, `{"host":"`+host+`"}`)
		var answer struct{ Token string }
		if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Token == "" {
			t.Fatalf("create a token of the host %s: got %s, error %v", host, body, err)
		}
		return answer.Token
	}
	busy, other := token("cmp-1"), token("cmp-2")
	for i, want := range []struct {
		token  string
		status int
	}{{busy, 200}, {busy, 429}, {other, 200}, {admin, 200}, {admin, 200}} {
		status, body, after := sendAs(t, a, http.MethodPost,
			"/agent/v1/reports", want.token, `{"reports":[]}`)
		if status != want.status || status == 429 && (after == "" || !strings.Contains(body, `"code":429`)) {
			t.Errorf("request %d: got %d with Retry-After %q and the body %s, want %d",
				i, status, after, body, want.status)
		}
	}
	_, metrics, _ := getAs(t, a, "/metrics", "")
	if !strings.Contains(metrics, `berth_http_throttled_total{api="agent/v1"} 1`) {
		t.Error("metrics after a refused request of a host: want berth_http_throttled_total of the API agent")
	}
}
