package operator_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/api/blazar"
	"berth/internal/api/neutron"
	"berth/internal/api/operator"
	"berth/internal/api/placement"
	"berth/internal/identity"
	"berth/internal/identity/policy"
)

// servePolicy serves the operators' API with the rules of Placement and a policy file.
func servePolicy(t *testing.T, file string) http.Handler {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Open(policy.Options{File: path}, placement.Policy...)
	if err != nil {
		t.Fatal(err)
	}
	return newAPI(t, operator.Options{
		Identity: identity.Noauth{},
		Policies: map[string]*policy.Policy{"placement": rules},
	})
}

func TestPolicyCheck_ExplainsTheDecision(t *testing.T) {
	t.Parallel()
	h := servePolicy(t, "placement:traits:list: role:auditor\n")
	for name, c := range map[string]struct {
		question        string
		allowed         bool
		caller, decided string // the caller, and the last part of the explanation
	}{
		"roles": {`{"api":"placement","rule":"placement:usages","project":"p","roles":["reader"],"target":{"project_id":"p"}}`, true,
			"{p [reader]}", "project_id:%(project_id)s: true, the caller has the project_id p, the target's value is 'p'"},
		"token": {`{"api":"placement","rule":"placement:usages","token":"eve:demo","target":{"project_id":"p"}}`, false,
			"{demo [member reader]}", "project_id:%(project_id)s: false, the caller has the project_id demo, the target's value is 'p'"},
		"rule of the file": {`{"api":"placement","rule":"placement:traits:list","project":"p","roles":["auditor"]}`, true,
			"{p [auditor]}", "role:auditor: true, the caller has the role auditor"},
		"no project": {`{"api":"placement","rule":"placement:traits:list","roles":["auditor"]}`, false,
			"{ [auditor]}", "role:auditor: true, the caller has the role auditor"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := send(t, h, "admin", http.MethodPost, "/operator/v1/policy/check", c.question)
			if status != 200 || answer["allowed"] != c.allowed {
				t.Errorf("check %s: got %d %v, want 200 and allowed=%v",
					c.question, status, answer, c.allowed)
			}
			caller, _ := answer["caller"].(map[string]any)
			if got := fmt.Sprintf("{%v %v}", caller["project"], caller["roles"]); got != c.caller {
				t.Errorf("check %s: got the caller %s, want %s", c.question, got, c.caller)
			}
			part, _ := answer["explanation"].(map[string]any)
			for part["parts"] != nil {
				parts := part["parts"].([]any)
				part = parts[len(parts)-1].(map[string]any)
			}
			if got := fmt.Sprintf("%v: %v, %v", part["check"], part["allowed"], part["reason"]); got != c.decided {
				t.Errorf("check %s: the last part of the explanation is %q, want %q",
					c.question, got, c.decided)
			}
		})
	}
}

func TestPolicyCheck_DecidesRulesOfEachAPI(t *testing.T) {
	t.Parallel()
	h := newAPI(t, operator.Options{Identity: identity.Noauth{}, Policies: map[string]*policy.Policy{
		"networking": policy.MustOpen(neutron.Policy...), "reservation": policy.MustOpen(blazar.Policy...)}})
	for question, allowed := range map[string]bool{
		`{"api":"networking","rule":"get_port","project":"p","roles":["reader"],"target":{"project_id":"p"}}`:                                    true,
		`{"api":"networking","rule":"get_port","project":"p","roles":["reader"],"target":{"tenant_id":"q"}}`:                                     false,
		`{"api":"networking","rule":"delete_port","project":"p","roles":["member"],"target":{"project_id":"q","network:project_id":"p"}}`:        true,
		`{"api":"networking","rule":"create_port:device_owner","project":"p","roles":["member"],"target":{"device_owner":"network:dhcp"}}`:       false,
		`{"api":"networking","rule":"get_subnet","project":"p","roles":["member"],"target":{"project_id":"q","network:shared":"True"}}`:          true,
		`{"api":"networking","rule":"update_network","roles":["service"],"target":{"project_id":"q"}}`:                                           false,
		`{"api":"networking","rule":"update_port","roles":["service"],"target":{"project_id":"q"}}`:                                              true,
		`{"api":"reservation","rule":"blazar:leases:put","project":"p","user":"u","roles":["member"],"target":{"project_id":"p"}}`:               true,
		`{"api":"reservation","rule":"blazar:leases:get","project":"p","user":"u","roles":["service","reader"],"target":{"project_id":"other"}}`: false,
	} {
		t.Run(question, func(t *testing.T) {
			status, answer := send(t, h, "admin", http.MethodPost, "/operator/v1/policy/check", question)
			if status != 200 || answer["allowed"] != allowed {
				t.Errorf("check %s: got %d %v, want 200 and allowed=%v", question, status, answer, allowed)
			}
		})
	}
	_, answer := send(t, h, "admin", http.MethodGet, "/operator/v1/policy/rules", "")
	if got, want := len(answer["rules"].([]any)), len(neutron.Policy)+len(blazar.Policy); got != want {
		t.Errorf("list the rules: got %d, want the %d rules of both APIs", got, want)
	}
}

func TestPolicyCheck_RefusesWrongQuestions(t *testing.T) {
	t.Parallel()
	h := servePolicy(t, "")
	for body, want := range map[string]int{
		`{"api":"compute","rule":"x"}`:                                                                   400,
		`{"api":"placement","rule":"x"}`:                                                                 404,
		`{"api":"placement","rule":"placement:usages","target":{"a":{}}}`:                                400,
		`{"api":"placement","rule":"placement:usages","token":"a","roles":["b"]}`:                        400,
		`{"api":"placement","rule":"placement:usages","roles":"b"}`:                                      400,
		`{"api":"placement","rule":"placement:usages","roles":["b"` + strings.Repeat(`,"b"`, 100) + `]}`: 400,
		`{"api":"placement","rule":"placement:usages","role":["b"]}`:                                     400,
	} {
		t.Run(body, func(t *testing.T) {
			if status, answer := send(t, h, "admin", http.MethodPost, "/operator/v1/policy/check", body); status != want {
				t.Errorf("check %s: got %d %v, want %d", body, status, answer, want)
			}
		})
	}
	if status, answer := send(t, h, "eve:demo", http.MethodGet, "/operator/v1/policy/rules", ""); status != 403 {
		t.Errorf("list the rules as a member: got %d %v, want 403", status, answer)
	}
}

// A token that the identity service refuses is an error in the body of the request, not in the credentials of
// the administrator.
func TestPolicyCheck_RefusesAnInvalidToken(t *testing.T) {
	t.Parallel()
	h := newAPI(
		t,
		operator.Options{Identity: onlyAdmin{}, Policies: map[string]*policy.Policy{"placement": nil}},
	)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/operator/v1/policy/check",
		strings.NewReader(`{"api":"placement","rule":"placement:usages","token":"stolen"}`))
	r.Header.Set("X-Auth-Token", "admin")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "token of the caller is not valid") ||
		strings.Contains(w.Body.String(), "stolen") {
		t.Errorf("check a rule for an invalid token: got %d %s, want 400 without the token", w.Code, w.Body)
	}
}

// onlyAdmin accepts only the token `admin`.
type onlyAdmin struct{}

func (onlyAdmin) Authenticate(r *http.Request) (identity.Caller, error) {
	if r.Header.Get("X-Auth-Token") != "admin" {
		return identity.Caller{}, identity.ErrUnauthenticated
	}
	return identity.Caller{User: "admin", Project: "admin", Roles: []string{"admin"}}, nil
}

func TestPolicyRules_ShowDefaultsAndTheFile(t *testing.T) {
	t.Parallel()
	h := servePolicy(t, "placement:usages: rule:auditors\nauditors: role:auditor\n")
	status, answer := send(t, h, "admin", http.MethodGet, "/operator/v1/policy/rules", "")
	got := map[string]any{}
	for _, r := range answer["rules"].([]any) {
		rule := r.(map[string]any)
		got[rule["name"].(string)] = rule
	}
	want := map[string]any{
		"placement:usages": map[string]any{
			"api":       "placement",
			"name":      "placement:usages",
			"check":     "rule:auditors",
			"from_file": true,
			"default":   "rule:admin_or_project_reader_or_service_api",
			"guards":    []any{"GET /usages"},
		},
		"auditors": map[string]any{
			"api":       "placement",
			"name":      "auditors",
			"check":     "role:auditor",
			"from_file": true,
			"default":   nil,
			"guards":    []any{},
		},
		"admin_api": map[string]any{
			"api":       "placement",
			"name":      "admin_api",
			"check":     "role:admin",
			"from_file": false,
			"default":   "role:admin",
			"guards":    []any{},
		},
	}
	for name, rule := range want {
		if d := cmp.Diff(rule, got[name]); d != "" || status != 200 {
			t.Errorf("list the rules: got status %d, want 200; %s (-want +got):\n%s", status, name, d)
		}
	}
	if len(got) != len(placement.Policy)+1 {
		t.Errorf("list the rules: got %d, want the %d defaults and the rule of the file",
			len(got), len(placement.Policy))
	}
}
