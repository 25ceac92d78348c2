package placement_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/api/openapi"
	"berth/internal/api/openapi/openapitest"
	"berth/internal/api/osapi"
	"berth/internal/api/placement"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/store/storetest"
)

// serveExplanation starts the Placement API with the explanation of candidates on a new store.
func serveExplanation(
	t *testing.T,
	limits placement.Candidates,
) (c *client, explain func(status int, query string) map[string]any) {
	t.Helper()
	s := storetest.New(t)
	c = serveOver(t, s, identity.Noauth{}, policy.Options{})
	const path = "/candidates/explain"
	server := httptest.NewServer(openapitest.API(
		t,
		openapi.API{
			Name:       "explanation",
			Error:      openapi.ErrorSchema(),
			Operations: []openapi.Operation{placement.ExplainOperation(path)},
		},
		&osapi.API{
			Prefix:   "/operator/v1",
			Identity: identity.Noauth{},
			Fail:     osapi.WriteError,
			Routes: []osapi.Route{
				{
					Method: http.MethodGet,
					Path:   path,
					Handle: osapi.AdminOnly(placement.ExplainCandidates(s.Inventory, limits)),
				}},
		},
	))
	t.Cleanup(server.Close)
	operator := &client{t: t, url: server.URL + "/operator/v1"}
	return c, func(status int, query string) map[string]any {
		t.Helper()
		return operator.want(status, "", "", "GET", "/candidates/explain?"+query, "").body
	}
}

func TestExplainCandidates_CountsWhatEachFilterRemoves(t *testing.T) {
	t.Parallel()
	c, explain := serveExplanation(t, placement.Candidates{})
	traits := func(p string, names string) {
		t.Helper()
		c.want(200, "", "1.39", "PUT", "/resource_providers/"+p+"/traits",
			fmt.Sprintf(`{"traits":[%s],"resource_provider_generation":%v}`, names, c.generation(p)))
	}
	small, plain, windows := c.provider("small"), c.provider("plain"), c.provider("windows")
	good, better := c.provider("good"), c.provider("better")
	for _, p := range []string{plain, windows, good, better} {
		c.stock(p, `{"VCPU":{"total":8}}`)
	}
	c.stock(small, `{"VCPU":{"total":2}}`)
	traits(windows, `"HW_CPU_X86_AVX","COMPUTE_TRUSTED_CERTS"`)
	traits(good, `"HW_CPU_X86_AVX"`)
	traits(better, `"HW_CPU_X86_AVX"`)
	c.provider("empty")

	got := explain(200, "resources1=VCPU:4&required1=HW_CPU_X86_AVX,!COMPUTE_TRUSTED_CERTS&limit=1")

	filter := func(name string, examples ...any) map[string]any {
		return map[string]any{
			"filter":    name,
			"providers": float64(len(examples)),
			"trees":     float64(len(examples)),
			"examples":  append([]any{}, examples...),
		}
	}
	example := func(uuid, name, reason string) map[string]any {
		return map[string]any{"uuid": uuid, "name": name, "reason": reason}
	}
	want := map[string]any{
		"suffix":         "1",
		"resources":      map[string]any{"VCPU": 4.0},
		"providers_left": 2.0,
		"trees_left":     2.0,
	}
	groups := got["groups"].([]any)
	filters := groups[0].(map[string]any)["filters"].([]any)
	delete(groups[0].(map[string]any), "filters")
	if d := cmp.Diff([]any{want}, groups); d != "" {
		t.Errorf("groups of the explanation (-want +got):\n%s", d)
	}
	// the random UUID of the provider `empty`
	filters[1].(map[string]any)["examples"].([]any)[0].(map[string]any)["uuid"] = ""
	if d := cmp.Diff([]any{filter("in_tree"), filter("inventory", example("", "empty", "has no inventory of VCPU")),
		filter("capacity", example(small, "small", "has 2 of 2 VCPU free, and 4 is requested")),
		filter("required", example(plain, "plain", "does not have HW_CPU_X86_AVX")),
		filter("forbidden", example(windows, "windows", "has the forbidden COMPUTE_TRUSTED_CERTS")), filter("member_of")}, filters); d != "" {
		t.Errorf("filters of the explanation (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]any{"trees": 6.0, "providers": 6.0, "cut": false}, got["examined"]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]any{
		"trees":    2.0,
		"returned": 1.0,
		"limit":    1.0,
		"cut":      true,
	}, got["candidates"]); d != "" {
		t.Error(d)
	}
	for query, want := range map[string]map[string]any{
		"resources=VCPU:4": {
			"trees":    4.0,
			"returned": 4.0,
			"limit":    nil,
			"cut":      false,
		},
		"resources=VCPU:4&limit=4": {
			"trees":    4.0,
			"returned": 4.0,
			"limit":    4.0,
			"cut":      false,
		},
		"resources=VCPU:4&in_tree=" + uuid.NewString(): {
			"trees":    0.0,
			"returned": 0.0,
			"limit":    nil,
			"cut":      false,
		},
		"resources=VCPU:4&in_tree=" + good: {
			"trees":    1.0,
			"returned": 1.0,
			"limit":    nil,
			"cut":      false,
		},
		"resources=VGPU:1": {
			"trees":    0.0,
			"returned": 0.0,
			"limit":    nil,
			"cut":      false,
		},
	} {
		if d := cmp.Diff(want, explain(200, query)["candidates"]); d != "" {
			t.Errorf("candidates of the query %s (-want +got):\n%s", query, d)
		}
	}
}

func TestExplainCandidates_RefusesWrongQueries(t *testing.T) {
	t.Parallel()
	_, explain := serveExplanation(t, placement.Candidates{Max: 1})
	for _, query := range []string{"", "resources=NONE:1", "resources=VCPU:0", "resources=VCPU:1&required=NO_SUCH", "x=1", "resources1=VCPU:1&resources2=VCPU:1"} {
		if body := explain(400, query); body["error"] == nil && body["message"] == nil && len(body) == 0 {
			t.Errorf("error for the query %q: got no body, want an explanation", query)
		}
	}
}

func TestExplainCandidates_ConfiguredLimitCutsTheList(t *testing.T) {
	t.Parallel()
	c, explain := serveExplanation(t, placement.Candidates{Max: 2})
	for i := range 3 {
		c.stock(c.provider(fmt.Sprint("p", i)), `{"VCPU":{"total":8}}`)
	}
	if d := cmp.Diff(map[string]any{
		"trees":    3.0,
		"returned": 2.0,
		"limit":    2.0,
		"cut":      true,
	}, explain(200, "resources=VCPU:1")["candidates"]); d != "" {
		t.Error(d)
	}
}
