package main

import (
	"bytes"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"berth/internal/api/operator"
	"berth/internal/identity"
	"berth/internal/store/storetest"
)

func TestAgentToken_IsPrintedOnceListedAndRevoked(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(operator.New(operator.Options{Agents: storetest.New(t).Agents, Identity: identity.Noauth{}}))
	t.Cleanup(server.Close)
	starter := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), args, []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + server.URL}, &out, &out); err != nil {
			t.Errorf("starter %s: error %v, output %s", strings.Join(args, " "), err, &out)
		}
		return out.String()
	}

	created := starter("agent", "token", "cmp-1")

	token := regexp.MustCompile(`berth_agent_\S{43}\b`).FindString(created)
	id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(created)
	if token == "" || id == "" {
		t.Fatalf("create a token: got %s, want the ID and the token", created)
	}
	if list := starter("agent", "tokens", "--filter", "host=cmp-1"); !strings.Contains(list, id) || !strings.Contains(list, "cmp-1") || strings.Contains(list, token) {
		t.Errorf("list the tokens: got %s, want %s of cmp-1 without the secret", list, id)
	}
	starter("agent", "revoke", id, "--yes")
	if list := starter("agent", "tokens"); strings.Contains(list, id) {
		t.Errorf("list the tokens after the revocation: got %s, want none", list)
	}
}
