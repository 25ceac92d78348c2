package hostile

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"

	"berth/internal/api/osapi"
)

// openAPIDocument is an OpenAPI document with its validator.
type openAPIDocument struct {
	validator.Validator
	paths map[string]*v3.PathItem
}

// getJSON gets a JSON document without a token, and decodes it into the variable `into`.
func getJSON(h *hostileClient, path string, into any) []byte {
	h.t.Helper()
	status, body, _, err := h.send(h.t.Context(), attack{method: http.MethodGet, path: path, token: "-"})
	if err != nil || status != http.StatusOK {
		h.t.Fatalf("get %s: got status %d, body %.300s, error %v; want status 200", path, status, body, err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		h.t.Fatalf("get %s: %v", path, err)
	}
	return body
}

// openAPIDocuments returns the OpenAPI documents that the server serves, by the first segment of the paths of
// the API.
func openAPIDocuments(h *hostileClient) map[string]openAPIDocument {
	h.t.Helper()
	var index struct {
		Documents []struct{ Name, Href string }
	}
	getJSON(h, "/openapi/", &index)
	documents := map[string]openAPIDocument{}
	for _, d := range index.Documents {
		var document struct{ OpenAPI string }
		parsed, err := libopenapi.NewDocument(getJSON(h, d.Href, &document))
		if err != nil {
			h.t.Fatalf("document %s: %v", d.Name, err)
		}
		if document.OpenAPI != "3.1.0" {
			h.t.Errorf("document %s: got OpenAPI version %q, want 3.1.0", d.Name, document.OpenAPI)
		}
		model, err := parsed.BuildV3Model()
		if err != nil {
			h.t.Fatalf("document %s: %v", d.Name, err)
		}
		v := validator.NewValidatorFromV3Model(&model.Model)
		h.t.Cleanup(v.Release)
		v.SetDocument(parsed)
		if _, invalid := v.ValidateDocument(); len(invalid) > 0 {
			h.t.Errorf("document %s is not a valid OpenAPI document: %v", d.Name, invalid)
		}
		paths := maps.Collect(model.Model.Paths.PathItems.FromOldest())
		for path := range paths {
			documents[apiPrefix(path)] = openAPIDocument{v, paths}
		}
	}
	return documents
}

// describedOperations returns the operations of the documents, such as "GET /journal/v1/runs", in the order
// of the texts.
func describedOperations(documents map[string]openAPIDocument) (operations []string) {
	for _, d := range documents {
		for path, item := range d.paths {
			for method := range item.GetOperations().FromOldest() {
				operations = append(operations, strings.ToUpper(method)+" "+path)
			}
		}
	}
	return slices.Sorted(slices.Values(operations))
}

// apiPrefix returns the first segment of a path, which differs between the APIs.
func apiPrefix(path string) string { return strings.SplitN(path, "/", 3)[1] }

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

func TestOpenAPI_DocumentsDescribeEveryRouteAndAnswer(t *testing.T) {
	t.Parallel()
	h := newHostileClient(t)
	documents := openAPIDocuments(h)
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
		if status := checkAnswer(h, documents, r.Path, a); status >= 400 {
			refused[operation] = status
		}
		if a.token = "-"; !r.Open {
			checkAnswer(h, documents, r.Path, a)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(registered)), describedOperations(documents)); diff != "" {
		t.Errorf(
			"the routes of the APIs differ from the operations of the OpenAPI documents (-routes +documents):\n%s",
			diff,
		)
	}
	if diff := cmp.Diff(refusedOperations, refused); diff != "" {
		t.Errorf("the server refused other operations than expected (-want +got):\n%s", diff)
	}
}

// checkAnswer sends a request to a route, and validates the answer with the document of the API. checkAnswer
// returns the status of the answer.
func checkAnswer(h *hostileClient, documents map[string]openAPIDocument, path string, a attack) int {
	h.t.Helper()
	d := documents[apiPrefix(path)]
	item := d.paths[path]
	if item == nil {
		h.t.Errorf("%s %s: no document describes the path", a.method, path)
		return 0
	}
	status, body, header, err := h.send(h.t.Context(), a)
	if err != nil {
		h.t.Errorf("%s: %v", a, err)
		return 0
	}
	operation := item.GetOperations().GetOrZero(strings.ToLower(a.method))
	if operation == nil || status < 400 && operation.Responses.Codes.GetOrZero(strconv.Itoa(status)) == nil {
		h.t.Errorf("%s %s: the document does not describe the status %d", a.method, path, status)
		return status
	}
	request, err := http.NewRequestWithContext(h.t.Context(), a.method, "http://"+h.address+a.path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	answer := &http.Response{
		StatusCode:    status,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       request,
	}
	_, invalid := d.GetResponseBodyValidator().ValidateResponseBodyWithPathItem(request, answer, item, path)
	for _, e := range invalid {
		h.t.Errorf("%s %s: the answer with status %d differs from the document: %s: %s\n%.600s",
			a.method, path, status, e.Message, e.Reason, body)
	}
	return status
}
