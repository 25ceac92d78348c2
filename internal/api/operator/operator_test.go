package operator_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/api/openapi/openapitest"
	"berth/internal/api/operator"
	"berth/internal/api/placement"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/inventory"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

var incompleteOwner = inventory.Owner{Project: "no-project", User: "no-user"}

// serve serves the operators' API and Placement's API on a new database.
func serve(t *testing.T) http.Handler {
	t.Helper()
	h, _ := serveWithURL(t)
	return h
}

// serveWithURL serves the same APIs as the function serve, and returns the URL of their database in addition
// to the handler.
func serveWithURL(t *testing.T) (http.Handler, string) {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	rules, err := policy.Open(policy.Options{}, placement.Policy...)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/operator/", newAPI(t, operator.Options{
		Inventory:  s.Inventory,
		Network:    s.Network,
		Agents:     s.Agents,
		Outbox:     s.Outbox,
		Mirror:     s.Mirror,
		Audit:      s.Audit,
		Identity:   identity.Noauth{},
		Incomplete: incompleteOwner,
	}))
	mux.Handle("/placement/", openapitest.API(t, placement.Description(), placement.New(placement.Options{
		Store:      s.Inventory,
		Identity:   identity.Noauth{},
		Policy:     rules,
		Incomplete: incompleteOwner,
	})))
	return mux, url
}

// newAPI returns the operators' API as a handler that compares each answer with the document of the API.
func newAPI(t *testing.T, o operator.Options) http.Handler {
	t.Helper()
	return openapitest.API(t, operator.Description(), operator.New(o))
}

// send sends a request as the caller with the given token, and returns the status and the body of the answer.
func send(t *testing.T, h http.Handler, token, method, path, body string) (int, map[string]any) {
	t.Helper()
	status, answer, _ := sendForID(t, h, token, method, path, body)
	return status, answer
}

// sendForID sends a request as send does, and also returns the ID of the request.
func sendForID(
	t *testing.T,
	h http.Handler,
	token, method, path, body string,
) (status int, answer map[string]any, id string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("X-Auth-Token", token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Roles", "admin")
	if token == "eve:demo" {
		r.Header.Set("X-Roles", "member")
	}
	r.Header.Set("OpenStack-API-Version", "placement 1.39")
	if strings.HasPrefix(body, `{"allocations":[`) { // the format before microversion 1.12
		r.Header.Set("OpenStack-API-Version", "placement 1.0")
	}
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("decode the answer to %s %s: status %d, body %q, error %v; want JSON",
				method, path, w.Code, w.Body, err)
		}
	}
	return w.Code, answer, w.Header().Get("X-Openstack-Request-Id")
}

func TestHistory_NamesTheCallerAndTheRequest(t *testing.T) {
	t.Parallel()
	h := serve(t)
	p, consumer := uuid.NewString(), uuid.NewString()
	var requests []string
	for i, step := range []struct{ who, method, path, body string }{
		{"ann:demo", "POST", "/placement/resource_providers", `{"name":"p","uuid":"` + p + `"}`},
		{"ann:demo", "PUT", "/placement/resource_providers/" + p + "/inventories", `{"resource_provider_generation":0,"inventories":{"VCPU":{"total":8}}}`},
		{"nova:service", "PUT", "/placement/allocations/" + consumer, `{"allocations":{"` + p + `":{"resources":{"VCPU":1}}},
			"project_id":"demo","user_id":"u","consumer_generation":null,"consumer_type":"INSTANCE"}`},
		{"nova:service", "PUT", "/placement/allocations/" + consumer, `{"allocations":{"` + p + `":{"resources":{"VCPU":2}}},
			"project_id":"demo","user_id":"u","consumer_generation":1,"consumer_type":"INSTANCE"}`},
		{"bob:demo", "DELETE", "/placement/allocations/" + consumer, ""},
	} {
		status, answer, id := sendForID(t, h, step.who, step.method, step.path, step.body)
		if status >= 300 {
			t.Fatalf("send request %d of the preparation: got %d %v, want success", i, status, answer)
		}
		requests = append(requests, id)
	}
	none, one, two := any(nil), any(1.0), any(2.0)
	taken := map[string]any{
		"actor":         "nova/service",
		"request_id":    requests[2],
		"cause":         "allocations",
		"consumer":      consumer,
		"consumer_from": none,
		"consumer_to":   one,
		"provider":      p,
		"provider_from": one,
		"provider_to":   two,
	}
	changed := maps.Clone(taken)
	maps.Copy(changed, map[string]any{
		"request_id":    requests[3],
		"consumer_from": one,
		"consumer_to":   two,
		"provider_from": two,
		"provider_to":   3.0,
	})
	moved := func(actor, request, cause string, from, to any) map[string]any {
		return map[string]any{
			"actor":         actor,
			"request_id":    request,
			"cause":         cause,
			"consumer":      none,
			"consumer_from": none,
			"consumer_to":   none,
			"provider":      p,
			"provider_from": from,
			"provider_to":   to,
		}
	}
	released := map[string]any{
		"actor":         "bob/demo",
		"request_id":    requests[4],
		"cause":         "allocations",
		"consumer":      consumer,
		"consumer_from": two,
		"consumer_to":   none,
		"provider":      none,
		"provider_from": none,
		"provider_to":   none,
	}
	for path, want := range map[string][]any{
		"/providers/" + p + "/history":                {changed, taken, moved("ann/demo", requests[1], "inventories", 0.0, one), moved("ann/demo", requests[0], "created", none, 0.0)},
		"/providers/" + p + "/history?limit=1":        {changed},
		"/consumers/" + consumer + "/history":         {released, changed, taken},
		"/consumers/" + uuid.NewString() + "/history": {},
		"/consumers/%27%3B--/history":                 {},
	} {
		t.Run(path, func(t *testing.T) {
			status, answer := send(t, h, "admin", "GET", "/operator/v1"+path, "")
			changes, _ := answer["changes"].([]any)
			for _, c := range changes {
				c := c.(map[string]any)
				if id, _ := c["id"].(float64); id <= 0 || c["at"] == nil {
					t.Errorf("GET %s: got the change %v, want an ID and a time", path, c)
				}
				delete(c, "id")
				delete(c, "at")
			}
			if d := cmp.Diff(want, changes); d != "" || status != 200 {
				t.Errorf("GET %s: got status %d, want 200; changes (-want +got):\n%s", path, status, d)
			}
		})
	}
}

func TestHistory_AdminOnlyAndQueryIsChecked(t *testing.T) {
	t.Parallel()
	h := serve(t)
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
		t.Run(tc.who, func(t *testing.T) {
			if status, answer := send(t, h, tc.who, "GET", "/operator/v1"+tc.path, ""); status != tc.want {
				t.Errorf("GET %s as %s: got %d %v, want %d", tc.path, tc.who, status, answer, tc.want)
			}
		})
	}
}

func TestMigrate_ConsumersGetTheIncompleteOwner(t *testing.T) {
	t.Parallel()
	h, url := serveWithURL(t)
	p, old, imported := uuid.NewString(), uuid.NewString(), uuid.NewString()
	for _, step := range []struct{ method, path, body string }{
		{"POST", "/resource_providers", `{"name":"p","uuid":"` + p + `"}`},
		{"PUT", "/resource_providers/" + p + "/inventories", `{"resource_provider_generation":0,"inventories":{"VCPU":{"total":8}}}`},
		{"PUT", "/allocations/" + old, `{"allocations":[{"resource_provider":{"uuid":"` + p + `"},"resources":{"VCPU":2}}]}`},
	} {
		t.Run(step.method+" "+step.path, func(t *testing.T) {
			if status, answer := send(t, h, "admin", step.method, "/placement"+step.path, step.body); status >= 300 {
				t.Fatalf("send the request %s of the preparation: got %d %v, want success",
					step.path, status, answer)
			}
		})
	}
	storetest.Exec(t, url, `insert into consumer (uuid) values ($1)`, imported)
	storetest.Exec(t, url, `
		insert into allocation (consumer_id, provider_id, class_id, amount)
		select k.id, p.id, 0, 1 from consumer k, provider p where k.uuid = $1`, imported)
	readConsumers := func() map[string]map[string]any {
		t.Helper()
		seen := map[string]map[string]any{}
		for name, path := range map[string]string{
			"old": "/allocations/" + old, "imported": "/allocations/" + imported, "usage": "/usages?project_id=no-project&user_id=no-user"} {
			status, answer := send(t, h, "admin", "GET", "/placement"+path, "")
			if status != 200 {
				t.Fatalf("GET %s: got %d %v, want 200", path, status, answer)
			}
			delete(answer, "allocations")
			seen[name] = answer
		}
		return seen
	}

	before := readConsumers()
	migrated, first := send(t, h, "admin", "POST", "/operator/v1/consumers/migrate", `{}`)
	again, second := send(t, h, "admin", "POST", "/operator/v1/consumers/migrate", `{"limit":10}`)

	incomplete := map[string]any{
		"project_id":          "no-project",
		"user_id":             "no-user",
		"consumer_generation": 1.0,
		"consumer_type":       "unknown",
	}
	want := map[string]map[string]any{"old": incomplete, "imported": incomplete,
		"usage": {"usages": map[string]any{"unknown": map[string]any{"VCPU": 3.0, "consumer_count": 2.0}}}}
	if d := cmp.Diff(want, before); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want, readConsumers()); d != "" {
		t.Errorf("consumers after the migration (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]any{map[string]any{"migrated": 1.0, "remaining": 0.0}, map[string]any{"migrated": 0.0, "remaining": 0.0}}, []any{first, second}); d != "" ||
		migrated != 200 ||
		again != 200 {
		t.Error(migrated, again, d)
	}
}

func TestMigrate_AdminOnlyAndBodyIsChecked(t *testing.T) {
	t.Parallel()
	h := serve(t)
	for body, want := range map[string]int{
		`{"limit":10000}`:       200,
		`{"limit":0}`:           400,
		`{"limit":-1}`:          400,
		`{"limit":10001}`:       400,
		`{"limit":1e99}`:        400,
		`{"limit":"1"}`:         400,
		`{"limt":1}`:            400,
		`[]`:                    400,
		`{`:                     400,
		``:                      400,
		`{"limit":1,"limit":2}`: 400,
		`{"limit":null}`:        200,
	} {
		t.Run(body, func(t *testing.T) {
			if status, answer := send(t, h, "admin", "POST", "/operator/v1/consumers/migrate", body); status != want {
				t.Errorf("migrate consumers with the body %s: got %d %v, want %d", body, status, answer, want)
			}
		})
	}
	if status, _ := send(t, h, "eve:demo", "POST", "/operator/v1/consumers/migrate", `{}`); status != 403 {
		t.Errorf("migrate consumers as a member: got status %d, want 403", status)
	}
}

func TestProjections_ListTheLastComparison(t *testing.T) {
	t.Parallel()
	h, url := serveWithURL(t)
	s := storetest.Open(t, url)
	read := func() []any {
		t.Helper()
		status, answer := send(t, h, "admin", "GET", "/operator/v1/projections", "")
		if status != 200 {
			t.Fatalf("list the projections: got %d %v, want 200", status, answer)
		}
		return answer["projections"].([]any)
	}
	bound := func() any {
		_, answer := send(t, h, "admin", "GET", "/operator/v1/projections", "")
		return answer["namespace"]
	}
	if got := bound(); got != nil {
		t.Errorf("namespace before a relay has bound the database: got %v, want null", got)
	}
	if _, err := s.Outbox.Adopt(t.Context(), "4711"); err != nil {
		t.Fatal(err)
	}
	if got, _ := bound().(map[string]any); got["id"] != "4711" || got["name"] != "" || got["bound_at"] == "" {
		t.Errorf("namespace after a relay has bound the database: got %v, want the ID 4711", got)
	}
	if _, answer := send(t, h, "admin", "GET", "/operator/v1/projections", ""); len(answer["maintenance"].([]any)) != 3 {
		t.Errorf("parts of the maintenance: got %v, want 3", answer["maintenance"])
	}
	want := []any{
		map[string]any{
			"name":         "executions",
			"compared_at":  nil,
			"rows":         0.0,
			"unattended":   0.0,
			"orphans":      0.0,
			"late_seconds": 0.0,
			"examples":     []any{},
		},
		map[string]any{
			"name":        "search attributes",
			"compared_at": nil,
			"rows":        0.0,
			"different":   0.0,
			"examples":    []any{},
		},
		map[string]any{
			"name":        "usage",
			"compared_at": nil,
			"rows":        0.0,
			"different":   0.0,
			"examples":    []any{},
		},
		map[string]any{
			"name":        "controller",
			"compared_at": nil,
			"rows":        0.0,
			"missing":     0.0,
			"extra":       0.0,
			"different":   0.0,
			"examples":    []any{},
		},
	}
	if d := cmp.Diff(want, read()); d != "" {
		t.Errorf("projections before the first comparison (-want +got):\n%s", d)
	}

	if err := s.Outbox.SaveComparison(t.Context(), outbox.Projection{
		Name:       outbox.Executions,
		Compared:   9,
		Unattended: 2,
		Orphans:    1,
		Examples:   []string{"port/1"},
	}); err != nil {
		t.Fatal(err)
	}

	first := read()[0].(map[string]any)
	if first["compared_at"] == nil {
		t.Error("compared_at after a comparison: got null, want a time")
	}
	delete(first, "compared_at")
	if d := cmp.Diff(map[string]any{
		"name":         "executions",
		"rows":         9.0,
		"unattended":   2.0,
		"orphans":      1.0,
		"late_seconds": 0.0,
		"examples":     []any{"port/1"},
	}, first); d != "" {
		t.Errorf("executions after a comparison (-want +got):\n%s", d)
	}
	storetest.Exec(t, url, `
		insert into mirror_run (id, kind, actor, reason, state, progress, finished_at)
		overriding system value
		values (7, 'audit', 'berth', '', 'done', '[{"type":"network","total":5,"missing":1},{"type":"port","total":3,"extra":2,"different":1}]', now())`)
	storetest.Exec(t, url, `
		insert into mirror_finding (run, object_type, object_id, kind, attributes, data)
		values (7, 'network', 'n', 'missing', '{}', '{}'), (7, 'port', 'p', 'extra', '{}', '{}')`)
	audited := read()[3].(map[string]any)
	if audited["compared_at"] == nil {
		t.Error("compared_at after an audit: got null, want a time")
	}
	delete(audited, "compared_at")
	if d := cmp.Diff(map[string]any{
		"name":      "controller",
		"rows":      8.0,
		"missing":   1.0,
		"extra":     2.0,
		"different": 1.0,
		"examples":  []any{"missing network/n", "extra port/p"},
	}, audited); d != "" {
		t.Errorf("controller after an audit (-want +got):\n%s", d)
	}
	if status, _ := send(t, h, "eve:demo", "GET", "/operator/v1/projections", ""); status != 403 {
		t.Errorf("list the projections as a member: got status %d, want 403", status)
	}
}
