package operator_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/api/operator"
	"berth/internal/identity"
	"berth/internal/store/storetest"
)

func TestAgentTokens_AreShownOnceAndListedWithoutSecret(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	h := newAPI(t, operator.Options{Agents: s.Agents, Identity: identity.Noauth{}})
	status, made := send(t, h, "ann:demo", "POST", "/operator/v1/agent-tokens", `{"host":"cmp-1"}`)
	token, _ := made["token"].(string)
	if status != http.StatusCreated || made["host"] != "cmp-1" || token == "" {
		t.Fatalf("create a token: got %d %v, want 201 with the token", status, made)
	}
	if host, err := s.Agents.TokenHost(t.Context(), token); err != nil || host != "cmp-1" {
		t.Errorf("host of the created token: got %q, error %v, want cmp-1", host, err)
	}
	send(t, h, "ann:demo", "POST", "/operator/v1/agent-tokens", `{"host":"cmp-2"}`)

	status, answer := send(t, h, "ann:demo", "GET", "/operator/v1/agent-tokens?host=cmp-1", "")

	all, _ := answer["agent_tokens"].([]any)
	if status != http.StatusOK || len(all) != 1 {
		t.Fatalf("list the tokens of cmp-1: got %d %v, want 200 and one token", status, answer)
	}
	one := all[0].(map[string]any)
	if one["id"] != made["id"] || one["last_used_on"] == nil || one["token"] != nil {
		t.Errorf("listed token: got %v, want the ID %v, a day of the last use and no secret", one, made["id"])
	}
	path := "/operator/v1/agent-tokens/" + made["id"].(string)
	for _, want := range []int{http.StatusNoContent, http.StatusNotFound} {
		if status, answer := send(t, h, "ann:demo", "DELETE", path, ""); status != want {
			t.Errorf("revoke the token: got %d %v, want %d", status, answer, want)
		}
	}
	if host, err := s.Agents.TokenHost(t.Context(), token); err == nil {
		t.Errorf("host of the revoked token: got %q, want an error", host)
	}
}

func TestAgentCredentials_NeedTheRoleAdmin(t *testing.T) {
	t.Parallel()
	h := newAPI(t, operator.Options{Agents: storetest.New(t).Agents, Identity: identity.Noauth{}})
	for _, role := range []string{"service", "member", "reader"} {
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/operator/v1/agent-tokens", ""}, {"POST", "/operator/v1/agent-tokens", `{"host":"cmp-1"}`},
			{"DELETE", "/operator/v1/agent-tokens/" + uuid.NewString(), ""},
			{"GET", "/operator/v1/agent-keys", ""}, {"POST", "/operator/v1/agent-keys", `{"host":"cmp-1"}`},
			{"DELETE", "/operator/v1/agent-keys/" + uuid.NewString(), ""},
			{"GET", "/operator/v1/agent-vhosts", ""}, {"POST", "/operator/v1/agent-vhosts", `{"host":"cmp-1"}`},
			{"DELETE", "/operator/v1/agent-vhosts/" + uuid.NewString(), ""},
		} {
			r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
			r.Header.Set("X-Auth-Token", "eve:demo")
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Roles", role)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusForbidden {
				t.Errorf("%s %s with the role %s: got %d %s, want 403",
					c.method, c.path, role, w.Code, w.Body)
			}
		}
	}
}

func TestAgentTokens_RefuseInvalidRequests(t *testing.T) {
	t.Parallel()
	h := newAPI(t, operator.Options{Agents: storetest.New(t).Agents, Identity: identity.Noauth{}})
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "", `{}`, 400}, {"POST", "", `{"host":""}`, 400}, {"POST", "", `{"host":"` + strings.Repeat("h", 256) + `"}`, 400},
		{"POST", "", `{"host":"a","kind":"b"}`, 400}, {"GET", "?limit=3", "", 400}, {"GET", "?host=a&host=b", "", 400}, {"DELETE", "/x", "", 404},
		{"POST", "", `{"host":"a\u0000"}`, 400}, {"POST", "", `{"host":"a\nb"}`, 400}, {"GET", "?host=%00", "", 400}, {"GET", "?host=%ff", "", 400},
	} {
		if status, answer := send(t, h, "ann:demo", c.method, "/operator/v1/agent-tokens"+c.path, c.body); status != c.want {
			t.Errorf("%s %q with %q: got %d %v, want %d", c.method, c.path, c.body, status, answer, c.want)
		}
	}
}

func TestAgentKeys_RegisterEd25519PublicKeysOnly(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	h := newAPI(t, operator.Options{Agents: s.Agents, Identity: identity.Noauth{}})
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var id string
	for _, c := range []struct {
		body string
		want int
	}{
		{keyBody(t, public), 201}, {keyBody(t, public), 409}, {keyBody(t, &rsaKey.PublicKey), 400}, {`{"host":"cmp-1","public_key":"x"}`, 400}, {`{"host":"cmp-1"}`, 400},
		{strings.Replace(keyBody(t, public), "cmp-1", "", 1), 400},
	} {
		status, answer := send(t, h, "ann:demo", "POST", "/operator/v1/agent-keys", c.body)
		if status != c.want {
			t.Errorf("register the key %s: got %d %v, want %d", c.body, status, answer, c.want)
		}
		if status == 201 {
			id, _ = answer["id"].(string)
		}
	}
	keys, err := s.Agents.PublicKeys(t.Context(), []string{"cmp-1"})
	if err != nil || len(keys["cmp-1"]) != 1 || !keys["cmp-1"][0].Equal(public) {
		t.Errorf("keys of cmp-1: got %v, error %v, want the registered key", keys, err)
	}
	if status, answer := send(t, h, "ann:demo", "GET", "/operator/v1/agent-keys", ""); status != 200 ||
		len(answer["agent_keys"].([]any)) != 1 {
		t.Errorf("list the keys: got %d %v, want one key", status, answer)
	}
	if status, answer := send(t, h, "ann:demo", "DELETE", "/operator/v1/agent-keys/"+id, ""); status != 204 {
		t.Errorf("revoke the key: got %d %v, want 204", status, answer)
	}
}

func TestAgentKeys_RefuseKeysOfLowOrder(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	h := newAPI(t, operator.Options{Agents: s.Agents, Identity: identity.Noauth{}})
	for name, text := range map[string]string{
		"order 1":                    "0100000000000000000000000000000000000000000000000000000000000000",
		"order 4":                    "0000000000000000000000000000000000000000000000000000000000000000",
		"order 8, with the sign bit": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	} {
		t.Run(name, func(t *testing.T) {
			key, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			status, answer := send(t, h, "ann:demo", "POST", "/operator/v1/agent-keys",
				keyBody(t, ed25519.PublicKey(key)))
			if status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(answer), "low order") {
				t.Errorf("register the key %s: got %d %v, want 400 with the reason", text, status, answer)
			}
		})
	}
	if keys, err := s.Agents.PublicKeys(t.Context(), []string{"cmp-1"}); err != nil || len(keys) != 0 {
		t.Errorf("keys of cmp-1: got %v, error %v, want none", keys, err)
	}
}

// keyBody returns the body of a request that registers a public key of the host cmp-1.
func keyBody(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"host":       "cmp-1",
		"public_key": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
