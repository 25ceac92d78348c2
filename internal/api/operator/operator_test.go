package operator_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/api/operator"
	"berth/internal/api/placement"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// both serves the operators' API beside Placement's over one fresh store.
func both(t *testing.T) http.Handler {
	t.Helper()
	rules, err := policy.Open(policy.Options{}, placement.Policy...)
	if err != nil {
		t.Fatal(err)
	}
	s := storetest.New(t)
	mux := http.NewServeMux()
	mux.Handle("/operator/", operator.New(s, identity.Noauth{}))
	mux.Handle("/placement/", placement.New(s, identity.Noauth{}, rules))
	return mux
}

// ask sends a request as that caller and returns the answer.
func ask(t *testing.T, h http.Handler, token, method, path, body string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("X-Roles", "admin")
	if token == "eve:demo" {
		r.Header.Set("X-Roles", "member")
	}
	r.Header.Set("OpenStack-API-Version", "placement 1.39")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var answer map[string]any
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s %s: %d %q: %v", method, path, w.Code, w.Body, err)
		}
	}
	return w.Code, answer
}

func TestHistoryNamesTheCaller(t *testing.T) {
	t.Parallel()
	h := both(t)
	p, consumer := uuid.NewString(), uuid.NewString()
	for i, step := range []struct{ who, method, path, body string }{
		{"ann:demo", "POST", "/placement/resource_providers", `{"name":"p","uuid":"` + p + `"}`},
		{"ann:demo", "PUT", "/placement/resource_providers/" + p + "/inventories", `{"resource_provider_generation":0,"inventories":{"VCPU":{"total":8}}}`},
		{"nova:service", "PUT", "/placement/allocations/" + consumer, `{"allocations":{"` + p + `":{"resources":{"VCPU":1}}},
			"project_id":"demo","user_id":"u","consumer_generation":null,"consumer_type":"INSTANCE"}`},
		{"bob:demo", "DELETE", "/placement/allocations/" + consumer, ""},
	} {
		if status, answer := ask(t, h, step.who, step.method, step.path, step.body); status >= 300 {
			t.Fatalf("step %d: %d %v", i, status, answer)
		}
	}
	none, one, two := any(nil), any(1.0), any(2.0)
	taken := map[string]any{"actor": "nova/service", "cause": "allocations", "consumer": consumer, "consumer_from": none, "consumer_to": one,
		"provider": p, "provider_from": one, "provider_to": two}
	moved := func(actor, cause string, from, to any) map[string]any {
		return map[string]any{"actor": actor, "cause": cause, "consumer": none, "consumer_from": none, "consumer_to": none,
			"provider": p, "provider_from": from, "provider_to": to}
	}
	released := map[string]any{"actor": "bob/demo", "cause": "allocations", "consumer": consumer, "consumer_from": one, "consumer_to": none,
		"provider": none, "provider_from": none, "provider_to": none}
	for path, want := range map[string][]any{
		"/providers/" + p + "/history":                {taken, moved("ann/demo", "inventories", 0.0, one), moved("ann/demo", "created", none, 0.0)},
		"/providers/" + p + "/history?limit=1":        {taken},
		"/consumers/" + consumer + "/history":         {released, taken},
		"/consumers/" + uuid.NewString() + "/history": {},
		"/consumers/%27%3B--/history":                 {},
	} {
		status, answer := ask(t, h, "admin", "GET", "/operator/v1"+path, "")
		changes, _ := answer["changes"].([]any)
		for _, c := range changes {
			c := c.(map[string]any)
			if id, _ := c["id"].(float64); id <= 0 || c["at"] == nil {
				t.Errorf("%s: %v", path, c)
			}
			delete(c, "id")
			delete(c, "at")
		}
		if d := cmp.Diff(want, changes); d != "" || status != 200 {
			t.Errorf("%s: %d\n%s", path, status, d)
		}
	}
}

func TestHistoryIsForAdministratorsAndItsQueryIsRead(t *testing.T) {
	t.Parallel()
	h := both(t)
	for _, tc := range []struct {
		who, path string
		want      int
	}{
		{"eve:demo", "/consumers/x/history", 403},
		{"admin", "/consumers/x/history?limit=0", 400},
		{"admin", "/consumers/x/history?limit=-1", 400},
		{"admin", "/consumers/x/history?limit=99999999999999999999", 400},
		{"admin", "/consumers/x/history?limit=1&limit=2", 400},
		{"admin", "/consumers/x/history?before=x", 400},
		{"admin", "/consumers/x/history?after=1", 400},
		{"admin", "/consumers/x/history?limit=9999999&before=9223372036854775807", 200},
		{"admin", "/consumers/x", 404},
	} {
		if status, answer := ask(t, h, tc.who, "GET", "/operator/v1"+tc.path, ""); status != tc.want {
			t.Errorf("%s by %s: %d %v, want %d", tc.path, tc.who, status, answer, tc.want)
		}
	}
}
