package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// operation describes one operation of the Placement API: method, path, first microversion, headers, status
// and body.
type operation struct {
	method, path string
	from         int    // minor number of the first microversion with the operation
	flags        string // A: checks Accept; J: checks Content-Type; M: sends Last-Modified; L: sends Location
	status       int    // status of the response if a request at microversion 1.39 succeeds
	body         string
}

// operations lists all operations. In the paths and bodies of the operations, P stands for the UUID of a
// provider with an aggregate, a trait and VCPU, and C stands for the UUID of a consumer. In the paths and
// bodies of the operations, G stands for the generation of the provider P, and NEW stands for an unused UUID
// or name.
var operations = []operation{
	{"GET", "/", 0, "M", 200, ""},
	{"GET", "/resource_providers", 0, "AM", 200, ""},
	{"POST", "/resource_providers", 0, "JML", 200, `{"name":"NEW"}`},
	{"GET", "/resource_providers/P", 0, "AM", 200, ""},
	{"PUT", "/resource_providers/P", 0, "JM", 200, `{"name":"renamed"}`},
	{"GET", "/resource_providers/P/inventories", 0, "AM", 200, ""},
	{"POST", "/resource_providers/P/inventories", 0, "JML", 201, `{"resource_class":"DISK_GB","total":9}`},
	{
		"PUT",
		"/resource_providers/P/inventories",
		0,
		"JM",
		200,
		`{"resource_provider_generation":G,"inventories":{"VCPU":{"total":9},"DISK_GB":{"total":9}}}`,
	},
	{"GET", "/resource_providers/P/inventories/VCPU", 0, "AM", 200, ""},
	{
		"PUT",
		"/resource_providers/P/inventories/VCPU",
		0,
		"JM",
		200,
		`{"resource_provider_generation":G,"total":9}`,
	},
	{"DELETE", "/resource_providers/P/inventories/DISK_GB", 0, "", 204, ""},
	{"GET", "/resource_providers/P/usages", 0, "AM", 200, ""},
	{"GET", "/resource_providers/P/aggregates", 1, "AM", 200, ""},
	{
		"PUT",
		"/resource_providers/P/aggregates",
		1,
		"JM",
		200,
		`{"resource_provider_generation":G,"aggregates":[]}`,
	},
	{"GET", "/resource_providers/P/traits", 6, "AM", 200, ""},
	{
		"PUT",
		"/resource_providers/P/traits",
		6,
		"JM",
		200,
		`{"resource_provider_generation":G,"traits":["HW_CPU_X86_AVX"]}`,
	},
	{"GET", "/resource_providers/P/allocations", 0, "AM", 200, ""},
	{"GET", "/allocations/C", 0, "AM", 200, ""},
	{
		"PUT",
		"/allocations/C",
		0,
		"J",
		204,
		`{"allocations":{"P":{"resources":{"VCPU":1}}},"project_id":"p","user_id":"u","consumer_generation":1,"consumer_type":"T"}`,
	},
	{
		"POST",
		"/allocations",
		13,
		"J",
		204,
		`{"C":{"allocations":{},"project_id":"p","user_id":"u","consumer_generation":2,"consumer_type":"T"}}`,
	},
	{
		"POST",
		"/reshaper",
		30,
		"J",
		204,
		`{"inventories":{"P":{"resource_provider_generation":G,"inventories":{"VCPU":{"total":9}}}},"allocations":{}}`,
	},
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

// prepare creates the objects for the operations. prepare returns the function that replaces the placeholders
// P, C, G and NEW in a path or body by their values.
func prepare(c *client) func(string) string {
	c.t.Helper()
	p, consumer := c.provider("p"), uuid.NewString()
	c.stock(p, `{"VCPU":{"total":8}}`)
	c.want(204, "", "1.38", "PUT", "/allocations/"+consumer, fmt.Sprintf(
		`{"allocations":{%q:{"resources":{"VCPU":1}}},"project_id":"p","user_id":"u","consumer_generation":null,"consumer_type":"T"}`,
		p,
	))
	return func(s string) string {
		ids := strings.NewReplacer(
			`"P"`, `"`+p+`"`, "/P", "/"+p,
			`"C"`, `"`+consumer+`"`, "/C", "/"+consumer,
			`"NEW"`, `"`+uuid.NewString()+`"`,
		)
		s = ids.Replace(strings.ReplaceAll(s, "/CUSTOM", "/\x00CUSTOM"))
		if s = strings.ReplaceAll(s, "\x00", ""); strings.Contains(s, ":G,") {
			s = strings.ReplaceAll(s, ":G,", fmt.Sprintf(":%v,", c.generation(p)))
		}
		return s
	}
}

func TestOperations_HeadersAndStatuses(t *testing.T) {
	t.Parallel()
	c := serve(t)
	fill := prepare(c)
	for _, o := range operations {
		name, path, body := o.method+" "+o.path, fill(o.path), fill(o.body)
		if o.from > 0 {
			status := 404
			if o.method == "DELETE" && strings.HasSuffix(o.path, "P/inventories") {
				status = 405
			}
			a := c.want(status, "",
				fmt.Sprintf("1.%d", o.from-1), o.method, path, body, "Content-Type", "application/json")
			if a.header.Get("Allow") != "" {
				t.Errorf("%s before its first microversion: got Allow %q, want none",
					name, a.header.Get("Allow"))
			}
		}
		if strings.Contains(o.flags, "A") {
			c.want(406, "", "1.39", o.method, path, body, "Accept", "text/plain")
		}
		if strings.Contains(o.flags, "J") {
			c.want(415, "The media type text/plain is not supported, use application/json",
				"1.39", o.method, path, body, "Content-Type", "text/plain; x=y")
			c.want(415, "The media type None is not supported, use application/json",
				"1.39", o.method, path, "")
		}

		a := c.want(o.status, "", "1.39", o.method, path, body, "Content-Type",
			map[bool]string{true: "Application/JSON; charset=utf-8"}[body != ""])

		got := map[string]bool{
			"M":       a.header.Get("Last-Modified") != "" && a.header.Get("Cache-Control") == "no-cache",
			"L":       a.header.Get("Location") != "",
			"typed":   a.header.Get("Content-Type") == "application/json",
			"untyped": a.header["Content-Type"] == nil,
		}
		want := map[string]bool{
			"M":       strings.Contains(o.flags, "M"),
			"L":       strings.Contains(o.flags, "L"),
			"typed":   a.raw != "",
			"untyped": a.raw == "",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: response headers (-want +got):\n%s\nall headers: %v", name, d, a.header)
		}
		if at := a.header.Get("Location"); at != "" && !strings.HasPrefix(at, c.url+"/") {
			t.Errorf("%s: got Location %q, want a URL of this server", name, at)
		}
		if a.header.Get("OpenStack-API-Version") != "placement 1.39" ||
			a.header.Get("Vary") != "openstack-api-version" ||
			!strings.HasPrefix(a.header.Get("X-OpenStack-Request-Id"), "req-") {
			t.Errorf("%s: got headers %v, want OpenStack-API-Version, Vary and a request ID", name, a.header)
		}
	}
}

func TestResponse_LastModifiedFrom115(t *testing.T) {
	t.Parallel()
	c := serve(t)
	fill := prepare(c)
	for _, o := range operations {
		if o.method != "GET" || strings.HasPrefix(o.path, "/traits/") {
			continue
		}
		for _, minor := range []int{14, 15, 39} {
			if minor < o.from {
				continue
			}
			a := c.want(200, "", fmt.Sprintf("1.%d", minor), o.method,
				strings.ReplaceAll(fill(o.path), "CUSTOM_NEW", "VCPU"), "")
			_, dated := a.header["Last-Modified"]
			_, fresh := a.header["Cache-Control"]
			if want := minor >= 15; dated != want || fresh != want {
				t.Errorf(
					"GET %s at microversion 1.%d: got headers %v, want Last-Modified and Cache-Control from microversion 1.15 on, and neither before",
					o.path, minor, a.header,
				)
			}
		}
	}
}
