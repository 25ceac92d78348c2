package placement_test

import (
	"slices"
	"strings"
	"testing"
)

func TestRouting_LongAndOddPaths(t *testing.T) {
	t.Parallel()
	c := serve(t)
	long := strings.Repeat("x", 8000)
	for path, status := range map[string]int{
		"/resource_providers/" + long:                           404,
		"/" + long:                                              404,
		"/resource_providers?name=" + long:                      200,
		"/resource_providers?" + long + "=1":                    400,
		"/traits/" + long:                                       404,
		"/usages?project_id=" + long:                            400,
		"/traits?name=startswith:" + long:                       200,
		"/allocations/" + long:                                  200,
		"/resource_classes/" + long:                             404,
		"/resource_providers/%2e%2e":                            404,
		"/resource_providers/..%2f":                             404,
		"/resource_providers//":                                 404,
		"//resource_providers":                                  404,
		"/resource_providers%2f":                                404,
		"/traits?%":                                             400,
		"/traits?a;b":                                           400,
		"/resource_providers/'; drop table provider; --/usages": 404,
		"/allocations/%E2%98%83":                                200,
		"/allocations/%F0%9F%92%A9%00":                          404,
	} {
		t.Run(path, func(t *testing.T) {
			c := c.in(t)
			a := c.want(status, "", "1.39", "GET", strings.ReplaceAll(path, " ", "%20"), "")
			if len(a.raw) > 8192 || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("GET %.60s: got %.200s, want a JSON body of at most 8192 bytes", path, a.raw)
			}
		})
	}
}

func TestRouting_OtherMethodsAreNotAllowed(t *testing.T) {
	t.Parallel()
	c := serve(t)
	fill := prepare(c)
	methods := map[string][]string{}
	for _, o := range operations {
		path, _, _ := strings.Cut(o.path, "?")
		if !slices.Contains(methods[path], o.method) {
			methods[path] = append(methods[path], o.method)
		}
	}
	for _, path := range []string{"/allocations/C", "/resource_providers/P/inventories/VCPU"} {
		t.Run(path, func(t *testing.T) {
			methods[path] = []string{"DELETE", "GET", "PUT"}
		})
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
			for _, version := range []string{"1.0", "1.39"} { // at the oldest and the newest microversion
				a := c.want(405, "", version, method, fill(path), "", "X-Roles", "")
				if got := a.header.Get("Allow"); got != strings.Join(allowed, ", ") ||
					a.header.Get("Vary") == "" {
					t.Errorf("%s %s at %s: got Allow %q, want %q", method, path, version, got, allowed)
				}
				if method != "HEAD" &&
					!strings.Contains(a.raw, "The method "+method+" is not allowed for this resource.") {
					t.Errorf("%s %s: got %s, want an error that names the method", method, path, a.raw)
				}
			}
		}
	}
	c.want(405, "", "", "POST", "/", "", "X-Auth-Token", "") // the root path needs no credentials
}
