package hostile

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/api/osapi"
)

// getJSON gets a JSON document without a token, and decodes it into the variable `into`.
func getJSON(h *hostileClient, path string, into any) {
	h.t.Helper()
	status, body, _, err := h.send(h.t.Context(), attack{method: http.MethodGet, path: path, token: "-"})
	if err != nil || status != http.StatusOK {
		h.t.Fatalf("get %s: got status %d, body %.300s, error %v; want status 200", path, status, body, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		h.t.Fatalf("get %s: %v", path, err)
	}
}

// describedOperations returns the operations of the OpenAPI documents that the server serves, such as
// "GET /journal/v1/runs", in the order of the texts.
func describedOperations(h *hostileClient) (operations []string) {
	h.t.Helper()
	var index struct{ Documents []struct{ Href string } }
	getJSON(h, "/openapi/", &index)
	for _, d := range index.Documents {
		var document struct {
			Paths map[string]map[string]struct{} // by path and method
		}
		getJSON(h, d.Href, &document)
		for path, methods := range document.Paths {
			for method := range methods {
				operations = append(operations, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return slices.Sorted(slices.Values(operations))
}

// openAPIRoutes returns the routes that a document has to describe: writes, then reads, then deletions, in
// which an object comes after the parts of the object. The form of a path that ends in .json has no operation
// of its own, and the console has pages.
func openAPIRoutes(h *hostileClient) (routes []osapi.Route) {
	forEachRoute(h, func(api *osapi.API, r osapi.Route) {
		if api.Prefix != "/console" && !strings.HasSuffix(r.Path, ".json") {
			r.Path = api.Prefix + r.Path
			routes = append(routes, r)
		}
	})
	order := []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodGet, http.MethodDelete}
	slices.SortStableFunc(routes, func(a, b osapi.Route) int {
		if a.Method == http.MethodDelete && b.Method == http.MethodDelete {
			return len(b.Path) - len(a.Path)
		}
		return slices.Index(order, a.Method) - slices.Index(order, b.Method)
	})
	return routes
}

// refusedOperations are the operations that the server refuses in the state in which the test calls them,
// with the status of the error.
var refusedOperations = map[string]int{
	"DELETE /networking/v2.0/networks/{id}":                           http.StatusConflict,
	"DELETE /networking/v2.0/subnets/{id}":                            http.StatusConflict,
	"DELETE /placement/resource_providers/{uuid}":                     http.StatusConflict,
	"DELETE /placement/resource_providers/{uuid}/inventories":         http.StatusConflict,
	"DELETE /placement/resource_providers/{uuid}/inventories/{class}": http.StatusConflict,
	"DELETE /reservation/v1/os-hosts/{id}":                            http.StatusConflict,
	"POST /networking/v2.0/agents/{id}/dhcp-networks":                 http.StatusConflict,
	"POST /operator/v1/codec/decode":                                  http.StatusConflict,
	"POST /operator/v1/codec/encode":                                  http.StatusConflict,
	"POST /networking/v2.0/ports/{id}/bindings":                       http.StatusBadRequest,
	"POST /reservation/v1/plans":                                      http.StatusConflict,
	"PUT /networking/v2.0/ports/{id}/bindings/{host}/activate":        http.StatusConflict,
	"PUT /networking/v2.0/trunks/{id}/add_subports":                   http.StatusConflict,
}

// operationQueries are the query parameters that an operation requires.
var operationQueries = map[string]string{
	"GET /placement/allocation_candidates": "?resources=VCPU:1",
	"GET /placement/usages":                "?project_id=demo",
	"GET /operator/v1/candidates/explain":  "?resources=VCPU:1",
}

// The server of a hostileClient compares each answer with its document.
func TestOpenAPI_DocumentsDescribeEveryRouteAndAnswer(t *testing.T) {
	t.Parallel()
	h := newHostileClient(t)
	var registered []string
	refused := map[string]int{}
	for _, r := range openAPIRoutes(h) {
		operation := r.Method + " " + r.Path
		registered = append(registered, operation)
		a := attack{
			method: r.Method,
			path:   h.concretePath(r.Path) + operationQueries[operation],
			body:   h.fillGenerations(h.fill(validBodies[operation])),
		}
		if status := sendToOperation(h, a); status >= 400 {
			refused[operation] = status
		}
		if a.token = "-"; !r.Open {
			sendToOperation(h, a)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(registered)), describedOperations(h)); diff != "" {
		t.Errorf(
			"the routes of the APIs differ from the operations of the OpenAPI documents (-routes +documents):\n%s",
			diff,
		)
	}
	if diff := cmp.Diff(refusedOperations, refused); diff != "" {
		t.Errorf("the server refused other operations than expected (-want +got):\n%s", diff)
	}
}

// sendToOperation sends a request and returns the status of the answer.
func sendToOperation(h *hostileClient, a attack) int {
	h.t.Helper()
	status, _, _, err := h.send(h.t.Context(), a)
	if err != nil {
		h.t.Errorf("%s: %v", a, err)
	}
	return status
}
