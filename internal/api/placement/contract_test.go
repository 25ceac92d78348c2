package placement_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// operation is one line of the API's table as clients are promised it.
type operation struct {
	method, path string
	from         int    // first minor version
	flags        string // A: looks at Accept, J: at Content-Type, M: is dated, L: has a location
	status       int    // of a success at 1.39
	body         string
}

// operations of a provider P with an aggregate, a trait, VCPU and a consumer C. G is P's generation, NEW something unheard of.
var operations = []operation{
	{"GET", "/", 0, "M", 200, ""},
	{"GET", "/resource_providers", 0, "AM", 200, ""},
	{"POST", "/resource_providers", 0, "JML", 200, `{"name":"NEW"}`},
	{"GET", "/resource_providers/P", 0, "AM", 200, ""},
	{"PUT", "/resource_providers/P", 0, "JM", 200, `{"name":"renamed"}`},
	{"GET", "/resource_providers/P/inventories", 0, "AM", 200, ""},
	{"POST", "/resource_providers/P/inventories", 0, "JML", 201, `{"resource_class":"DISK_GB","total":9}`},
	{"PUT", "/resource_providers/P/inventories", 0, "JM", 200, `{"resource_provider_generation":G,"inventories":{"VCPU":{"total":9},"DISK_GB":{"total":9}}}`},
	{"GET", "/resource_providers/P/inventories/VCPU", 0, "AM", 200, ""},
	{"PUT", "/resource_providers/P/inventories/VCPU", 0, "JM", 200, `{"resource_provider_generation":G,"total":9}`},
	{"DELETE", "/resource_providers/P/inventories/DISK_GB", 0, "", 204, ""},
	{"GET", "/resource_providers/P/usages", 0, "AM", 200, ""},
	{"GET", "/resource_providers/P/aggregates", 1, "AM", 200, ""},
	{"PUT", "/resource_providers/P/aggregates", 1, "JM", 200, `{"resource_provider_generation":G,"aggregates":[]}`},
	{"GET", "/resource_providers/P/traits", 6, "AM", 200, ""},
	{"PUT", "/resource_providers/P/traits", 6, "JM", 200, `{"resource_provider_generation":G,"traits":["HW_CPU_X86_AVX"]}`},
	{"GET", "/resource_providers/P/allocations", 0, "AM", 200, ""},
	{"GET", "/allocations/C", 0, "AM", 200, ""},
	{"PUT", "/allocations/C", 0, "J", 204, `{"allocations":{"P":{"resources":{"VCPU":1}}},"project_id":"p","user_id":"u","consumer_generation":1,"consumer_type":"T"}`},
	{"POST", "/allocations", 13, "J", 204, `{"C":{"allocations":{},"project_id":"p","user_id":"u","consumer_generation":2,"consumer_type":"T"}}`},
	{"POST", "/reshaper", 30, "J", 204, `{"inventories":{"P":{"resource_provider_generation":G,"inventories":{"VCPU":{"total":9}}}},"allocations":{}}`},
	{"GET", "/resource_classes", 2, "AM", 200, ""},
	{"POST", "/resource_classes", 2, "JL", 201, `{"name":"CUSTOM_NEW"}`},
	{"GET", "/resource_classes/CUSTOM_NEW", 2, "AM", 200, ""},
	{"PUT", "/resource_classes/CUSTOM_OTHER", 2, "L", 201, ""},
	{"DELETE", "/resource_classes/CUSTOM_OTHER", 2, "", 204, ""},
	{"GET", "/traits", 6, "AM", 200, ""},
	{"PUT", "/traits/CUSTOM_NEW", 6, "ML", 201, ""},
	{"PUT", "/traits/CUSTOM_NEW", 6, "ML", 204, ""},
	{"GET", "/traits/CUSTOM_NEW", 6, "M", 204, ""},
	{"DELETE", "/traits/CUSTOM_NEW", 6, "", 204, ""},
	{"GET", "/usages?project_id=p", 9, "AM", 200, ""},
	{"GET", "/allocation_candidates?resources=VCPU:1", 10, "AM", 200, ""},
	{"DELETE", "/resource_providers/P/traits", 6, "", 204, ""},
	{"DELETE", "/resource_providers/P/inventories", 5, "", 204, ""},
	{"DELETE", "/resource_providers/P", 0, "", 204, ""},
}

// stage makes what operations work on and returns how their templates are filled in.
func stage(c *client) func(string) string {
	c.t.Helper()
	p, consumer := c.provider("p"), uuid.NewString()
	c.stock(p, `{"VCPU":{"total":8}}`)
	c.want(204, "", "1.38", "PUT", "/allocations/"+consumer, fmt.Sprintf(
		`{"allocations":{%q:{"resources":{"VCPU":1}}},"project_id":"p","user_id":"u","consumer_generation":null,"consumer_type":"T"}`, p))
	return func(s string) string {
		s = strings.NewReplacer(`"P"`, `"`+p+`"`, `"C"`, `"`+consumer+`"`, "/P", "/"+p, "/C", "/"+consumer, `"NEW"`, `"`+uuid.NewString()+`"`).Replace(
			strings.ReplaceAll(s, "/CUSTOM", "/\x00CUSTOM"))
		if s = strings.ReplaceAll(s, "\x00", ""); strings.Contains(s, ":G,") {
			s = strings.ReplaceAll(s, ":G,", fmt.Sprintf(":%v,", c.generation(p)))
		}
		return s
	}
}

func TestOperationsKeepTheManners(t *testing.T) {
	t.Parallel()
	c := serve(t)
	fill := stage(c)
	for _, o := range operations {
		name, path, body := o.method+" "+o.path, fill(o.path), fill(o.body)
		if o.from > 0 {
			status := 404
			if o.method == "DELETE" && strings.HasSuffix(o.path, "P/inventories") {
				status = 405
			}
			a := c.want(status, "", fmt.Sprintf("1.%d", o.from-1), o.method, path, body, "Content-Type", "application/json")
			if a.header.Get("Allow") != "" {
				t.Errorf("%s before its version: Allow %q", name, a.header.Get("Allow"))
			}
		}
		if strings.Contains(o.flags, "A") {
			c.want(406, "", "1.39", o.method, path, body, "Accept", "text/plain")
		}
		if strings.Contains(o.flags, "J") {
			c.want(415, "The media type text/plain is not supported, use application/json", "1.39", o.method, path, body, "Content-Type", "text/plain; x=y")
			c.want(415, "The media type None is not supported, use application/json", "1.39", o.method, path, "")
		}

		a := c.want(o.status, "", "1.39", o.method, path, body, "Content-Type", map[bool]string{true: "Application/JSON; charset=utf-8"}[body != ""])

		got := map[string]bool{"M": a.header.Get("Last-Modified") != "" && a.header.Get("Cache-Control") == "no-cache", "L": a.header.Get("Location") != "",
			"typed": a.header.Get("Content-Type") == "application/json", "untyped": a.header["Content-Type"] == nil}
		want := map[string]bool{"M": strings.Contains(o.flags, "M"), "L": strings.Contains(o.flags, "L"), "typed": a.raw != "", "untyped": a.raw == ""}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s %v", name, d, a.header)
		}
		if at := a.header.Get("Location"); at != "" && !strings.HasPrefix(at, c.url+"/") {
			t.Errorf("%s: Location %q", name, at)
		}
		if a.header.Get("OpenStack-API-Version") != "placement 1.39" || a.header.Get("Vary") != "openstack-api-version" || !strings.HasPrefix(a.header.Get("X-OpenStack-Request-Id"), "req-") {
			t.Errorf("%s: %v", name, a.header)
		}
	}
}

func TestAnswersAreDatedFrom115(t *testing.T) {
	t.Parallel()
	c := serve(t)
	fill := stage(c)
	for _, o := range operations {
		if o.method != "GET" || strings.HasPrefix(o.path, "/traits/") {
			continue
		}
		for _, minor := range []int{14, 15, 39} {
			if minor < o.from {
				continue
			}
			a := c.want(200, "", fmt.Sprintf("1.%d", minor), o.method, strings.ReplaceAll(fill(o.path), "CUSTOM_NEW", "VCPU"), "")
			_, dated := a.header["Last-Modified"]
			_, fresh := a.header["Cache-Control"]
			if want := minor >= 15; dated != want || fresh != want {
				t.Errorf("%s at 1.%d: %v", o.path, minor, a.header)
			}
		}
	}
}

func TestOtherMethodsAreNotAllowed(t *testing.T) {
	t.Parallel()
	c := serve(t)
	fill := stage(c)
	methods := map[string][]string{}
	for _, o := range operations {
		path, _, _ := strings.Cut(o.path, "?")
		if !slices.Contains(methods[path], o.method) {
			methods[path] = append(methods[path], o.method)
		}
	}
	for _, path := range []string{"/allocations/C", "/resource_providers/P/inventories/VCPU"} {
		methods[path] = []string{"DELETE", "GET", "PUT"}
	}
	for path, allowed := range methods {
		if strings.Contains(path, "CUSTOM") || strings.HasSuffix(path, "DISK_GB") {
			continue
		}
		slices.Sort(allowed)
		for _, method := range []string{"HEAD", "OPTIONS", "PATCH", "TRACE", "GET", "PUT", "POST", "DELETE"} {
			if slices.Contains(allowed, method) {
				continue
			}
			for _, version := range []string{"1.0", "1.39"} { // whatever the version
				a := c.want(405, "", version, method, fill(path), "", "X-Roles", "")
				if got := a.header.Get("Allow"); got != strings.Join(allowed, ", ") || a.header.Get("Vary") == "" {
					t.Errorf("%s %s at %s: Allow %q, want %q", method, path, version, got, allowed)
				}
				if method != "HEAD" && !strings.Contains(a.raw, "The method "+method+" is not allowed for this resource.") {
					t.Errorf("%s %s: %s", method, path, a.raw)
				}
			}
		}
	}
	c.want(405, "", "", "POST", "/", "", "X-Auth-Token", "") // the root is open
}

func TestRefusalsComeInTheFormThatTheClientTakes(t *testing.T) {
	t.Parallel()
	c := serve(t)
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/json": "application/json", "application/*": "application/json", "text/html, application/json;q=0.1": "application/json",
		"text/html": "text/html", "text/*": "text/html", "text/html,application/xhtml+xml": "text/html", "text/plain": "text/plain", "image/png": "text/plain", "application/json;q=0": "text/plain",
		"nonsense": "application/json", ",,;;": "application/json",
	} {
		for path, status := range map[string]int{"/nowhere": 404, "/resource_providers/x": 404, "/resource_providers?x=1": 400} {
			if status != 404 && want != "application/json" || path == "/resource_providers/x" && want != "application/json" {
				status = 406
			}
			a := c.want(status, strconv.Itoa(status), "1.39", "GET", path, "", "Accept", accept)
			if got, _, _ := strings.Cut(a.header.Get("Content-Type"), ";"); got != want {
				t.Errorf("%s with Accept %q: %q", path, accept, got)
			}
		}
	}
	c.want(406, "acceptable to your browser (content of type text/plain.", "1.39", "GET", "/traits", "", "Accept", "text/plain")
	c.want(415, "The request media type text/plain is not supported by this server.", "1.39", "POST", "/resource_classes", "{}", "Content-Type", "text/plain")
}

// TestErrorsAreWordedAsPromised compares whole refusals: status, title, explanation, message, code and ID.
func TestErrorsAreWordedAsPromised(t *testing.T) {
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
		a := c.want(tc.status, "", tc.version, tc.method, tc.path, tc.body)
		object := map[string]any{"status": float64(tc.status), "title": tc.title, "detail": tc.explanation + "\n\n " + tc.message + "  ",
			"request_id": a.header.Get("X-OpenStack-Request-Id")}
		if tc.code != nil {
			object["code"] = tc.code
		}
		if d := cmp.Diff(map[string]any{"errors": []any{object}}, a.body); d != "" {
			t.Errorf("%s %s at %s: %s", tc.method, tc.path, tc.version, d)
		}
	}
	a := c.send("1.39", "GET", "/traits", "", "X-Auth-Token", "")
	if d := cmp.Diff(map[string]any{"message": "The request you have made requires authentication.", "code": "401 Unauthorized", "title": "Unauthorized"}, a.body); d != "" || a.status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", a.status, d)
	}
	if a.header.Get("OpenStack-API-Version") != "" {
		t.Error("who is not known is told a version")
	}
}
