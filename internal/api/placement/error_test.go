package placement_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/identity"
	"berth/internal/identity/policy"
)

func TestError_FormatFollowsAccept(t *testing.T) {
	t.Parallel()
	c := serve(t)
	for accept, want := range map[string]string{
		"":                                  "application/json",
		"*/*":                               "application/json",
		"application/json":                  "application/json",
		"application/*":                     "application/json",
		"text/html, application/json;q=0.1": "application/json",
		"text/html":                         "text/html",
		"text/*":                            "text/html",
		"text/html,application/xhtml+xml":   "text/html",
		"text/plain":                        "text/plain",
		"image/png":                         "text/plain",
		"application/json;q=0":              "text/plain",
		"nonsense":                          "application/json",
		",,;;":                              "application/json",
	} {
		t.Run(accept, func(t *testing.T) {
			c := c.in(t)
			for path, status := range map[string]int{"/nowhere": 404, "/resource_providers/x": 404, "/resource_providers?x=1": 400} {
				if status != 404 && want != "application/json" ||
					path == "/resource_providers/x" && want != "application/json" {
					status = 406
				}
				a := c.want(status, strconv.Itoa(status), "1.39", "GET", path, "", "Accept", accept)
				if got, _, _ := strings.Cut(a.header.Get("Content-Type"), ";"); got != want {
					t.Errorf(
						"GET %s with Accept %q: got Content-Type %q, want the one in the test case",
						path, accept, got,
					)
				}
			}
		})
	}
	c.want(406, "acceptable to your browser (content of type text/plain.",
		"1.39", "GET", "/traits", "", "Accept", "text/plain")
	c.want(415, "The request media type text/plain is not supported by this server.",
		"1.39", "POST", "/resource_classes", "{}", "Content-Type", "text/plain")
}

// unavailableIdentity cannot check any credentials.
type unavailableIdentity struct{}

func (unavailableIdentity) Authenticate(*http.Request) (identity.Caller, error) {
	return identity.Caller{}, identity.ErrUnavailable
}

// Errors that occur before a request is routed also have a code, for example the
// 503 while Keystone is unavailable, and the 400 for a body without a Content-Type.
func TestError_EveryErrorHasACode(t *testing.T) {
	t.Parallel()
	c := serve(t)
	if code := c.want(400, "content-type header required when content-length > 0", "1.23", "POST", "/resource_providers", "x", "Content-Type", "").code(); code != "placement.undefined_code" {
		t.Errorf(
			"code of the error for a body without a Content-Type: got %v, want placement.undefined_code",
			code,
		)
	}
	c = serveTo(t, unavailableIdentity{}, policy.Options{})
	for version, want := range map[string]any{
		"1.22":   nil,
		"1.23":   "placement.undefined_code",
		"latest": "placement.undefined_code",
		"1.99":   nil,
	} {
		a := c.want(503, "The identity service cannot be reached.", version, "GET", "/resource_providers", "")
		if a.code() != want || a.header.Get("Retry-After") == "" {
			t.Errorf(
				"503 at microversion %s: got code %v and the headers %v, want code %v and Retry-After",
				version, a.code(), a.header, want,
			)
		}
	}
}

func TestResponse_DoesNotEscapeHTML(t *testing.T) {
	t.Parallel()
	c := serve(t)
	c.provider("<a> & b")
	c.want(200, `"name":"<a> & b"`, "1.39", "GET", "/resource_providers", "")
	c.want(404, "No such trait(s): <&>.", "1.39", "GET", "/traits/<&>", "")
}

// TestError_FullBodies compares whole error bodies: status, title, explanation, message, code and ID.
func TestError_FullBodies(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	for _, tc := range []struct {
		version, method, path, body string
		status                      int
		title, explanation, message string
		code                        any
	}{
		{"1.22", "GET", "/resource_providers/x", "", 404, "Not Found", "The resource could not be found.", "No resource provider with uuid x found", nil},
		{"1.23", "GET", "/resource_providers/x", "", 404, "Not Found", "The resource could not be found.", "No resource provider with uuid x found", "placement.undefined_code"},
		{"1.39", "GET", "/nowhere", "", 404, "Not Found", "The resource could not be found.", "", "placement.undefined_code"},
		{"1.39", "GET", "/resource_providers/x/inventories", "", 404, "Not Found", "The resource could not be found.", "No resource provider with uuid x found : No resource provider with that uuid.", "placement.undefined_code"},
		{"1.39", "DELETE", "/resource_providers/x", "", 404, "Not Found", "The resource could not be found.", "No resource provider with uuid x found for delete", "placement.undefined_code"},
		{"1.39", "GET", "/traits/x", "", 404, "Not Found", "The resource could not be found.", "No such trait(s): x.", "placement.undefined_code"},
		{"1.39", "PATCH", "/traits/x", "", 405, "Method Not Allowed", "The method PATCH is not allowed for this resource.", "", "placement.undefined_code"},
		{"1.39", "POST", "/resource_providers", `{"name":"p"}`, 409, "Conflict", "There was a conflict when trying to complete your request.",
			"Conflicting resource provider name: p already exists.", "placement.duplicate_name"},
		{"1.39", "PUT", "/resource_providers/" + p + "/traits", `{"traits":[],"resource_provider_generation":7}`, 409, "Conflict", "There was a conflict when trying to complete your request.",
			"Resource provider's generation already changed. Please update the generation and try again.", "placement.concurrent_update"},
		{"1.39", "POST", "/resource_classes", `{"name":"VCPU"}`, 400, "Bad Request", "The server could not comply with the request since it is either malformed or otherwise incorrect.",
			"JSON does not validate: 'VCPU' does not match '^CUSTOM_[A-Z0-9_]+$' Failed validating 'pattern' in schema['properties']['name']", "placement.undefined_code"},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			c := c.in(t)
			a := c.want(tc.status, "", tc.version, tc.method, tc.path, tc.body)
			object := map[string]any{
				"status":     float64(tc.status),
				"title":      tc.title,
				"detail":     tc.explanation + "\n\n " + tc.message + "  ",
				"request_id": a.header.Get("X-OpenStack-Request-Id"),
			}
			if tc.code != nil {
				object["code"] = tc.code
			}
			if d := cmp.Diff(map[string]any{"errors": []any{object}}, a.body); d != "" {
				t.Errorf("%s %s at %s: error body (-want +got):\n%s", tc.method, tc.path, tc.version, d)
			}
		})
	}
	a := c.send("1.39", "GET", "/traits", "", "X-Auth-Token", "")
	if d := cmp.Diff(map[string]any{"message": "The request you have made requires authentication.", "code": "401 Unauthorized", "title": "Unauthorized"}, a.body); d != "" ||
		a.status != http.StatusUnauthorized {
		t.Errorf("GET without a token: got status %d; body (-want +got):\n%s", a.status, d)
	}
	if a.header.Get("OpenStack-API-Version") != "" {
		t.Error("response to a request without authentication: want no header OpenStack-API-Version, got one")
	}
}
