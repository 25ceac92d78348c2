package neutron_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTag_EveryResource(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, subnet := c.createNetwork("10.0.0.0/24")
	port := c.port(net, "")["id"].(string)
	trunk := c.must(201, "POST", "/v2.0/trunks", fmt.Sprintf(`{"trunk":{"port_id":%q}}`, port))["trunk"].(object)["id"].(string)
	for kind, id := range map[string]string{
		"network":        net,
		"subnet":         subnet,
		"port":           port,
		"trunk":          trunk,
		"security_group": c.group("g"),
	} {
		t.Run(kind, func(t *testing.T) {
			c := c.in(t)
			path := "/v2.0/" + strings.ReplaceAll(kind, "_", "-") + "s/" + id
			before := c.must(200, "GET", path, "")[kind].(object)

			if d := cmp.Diff(object{"tags": []any{"a b.json", "red"}}, c.must(200, "PUT", path+"/tags", `{"tags":["red","a b.json","red"]}`)); d != "" {
				t.Errorf("%s: response to replacing the tags (-want +got):\n%s", kind, d)
			}
			c.must(201, "PUT", path+"/tags/blue", "")
			c.must(201, "PUT", path+"/tags/blue", "")
			c.must(204, "DELETE", path+"/tags/a%20b.json", "")
			c.must(204, "GET", path+"/tags/blue", "")

			after := c.must(200, "GET", path, "")[kind].(object)
			if d := cmp.Diff([]any{"blue", "red"}, after["tags"]); d != "" {
				t.Errorf("%s: tags shown by GET (-want +got):\n%s", kind, d)
			}
			if after["revision_number"] != before["revision_number"].(float64)+3 {
				t.Errorf(
					"%s: three changes of tags increased the revision from %v to %v, want an increase of three",
					kind, before["revision_number"], after["revision_number"],
				)
			}
			for _, method := range []string{"GET", "DELETE"} {
				if got := c.fault(method, path+"/tags/green", ""); got != "404 TagNotFound" {
					t.Errorf("%s: %s of a tag that the object does not have: got %s, want 404",
						kind, method, got)
				}
			}
			if got := c.fault("PUT", strings.TrimSuffix(path, path[len(path)-1:])+"x/tags/red", ""); got != "404 TagResourceNotFound" {
				t.Errorf("%s: set a tag of an unknown object: got %s, want 404 TagResourceNotFound",
					kind, got)
			}
			for body, want := range map[string]string{
				`{"tags":[""]}`:  "400 HTTPBadRequest",
				`{"tags":"red"}`: "400 HTTPBadRequest",
				`{"tag":[]}`:     "400 HTTPBadRequest",
				`{"tags":["` + strings.Repeat("x", 256) + `"]}`: "400 HTTPBadRequest",
			} {
				if got := c.fault("PUT", path+"/tags", body); got != want {
					t.Errorf(
						"%s: replace the tags by the invalid body %.40s: got %s, want 400 HTTPBadRequest",
						kind, body, got,
					)
				}
			}
			if got := c.fault("DELETE", path+"/tags/red", "", "If-Match", "revision_number=0"); got != "412 RevisionNumberConstraintFailed" {
				t.Errorf(
					"%s: delete a tag with an old revision in If-Match: got %s, want 412 RevisionNumberConstraintFailed",
					kind,
					got,
				)
			}
			if d := cmp.Diff(object{"tags": []any{"blue", "gold", "red"}}, c.must(201, "POST", path+"/tags", `{"tags":["gold","red"]}`)); d != "" {
				t.Errorf("%s: tags after one was added (-want +got):\n%s", kind, d)
			}
			many := strings.TrimSuffix(strings.Repeat(`"%d",`, 48), ",")
			numbers := make([]any, 48)
			for i := range numbers {
				numbers[i] = i
			}
			if got := c.fault("POST", path+"/tags", fmt.Sprintf(`{"tags":[`+many+`]}`, numbers...)); got != "400 HTTPBadRequest" {
				t.Errorf("%s: add more than fifty tags: got %s, want 400 HTTPBadRequest", kind, got)
			}
			c.must(204, "DELETE", path+"/tags", "")
		})
	}
}

func TestTag_SetOnPortCreate(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	created := c.must(201, "POST", "/v2.0/ports", fmt.Sprintf(`{"ports":[{"network_id":%[1]q,"tags":["a","b","a"]},{"network_id":%[1]q}]}`, net))["ports"].([]any)
	for i, want := range [][]any{{"a", "b"}, {}} {
		p := created[i].(object)
		if d := cmp.Diff(want, p["tags"]); d != "" || p["revision_number"] != 1.0 {
			t.Errorf("port created with tags: got revision %v, want 1; tags (-want +got):\n%s",
				p["revision_number"], d)
		}
	}
	if got := ids(c.must(200, "GET", "/v2.0/ports?tags=b", ""), "ports"); len(got) != 1 {
		t.Errorf("ports with the tag b: got %v, want one", got)
	}
	for _, tags := range []string{`"a"`, `[7]`, `[""]`, `null`} {
		t.Run(tags, func(t *testing.T) {
			c := c.in(t)
			if got := c.fault("POST", "/v2.0/ports", fmt.Sprintf(`{"port":{"network_id":%q,"tags":%s}}`, net, tags)); got != "400 HTTPBadRequest" {
				t.Errorf("create a port with the tags %s: got %s, want 400 HTTPBadRequest", tags, got)
			}
		})
	}
}

func TestTag_Filters(t *testing.T) {
	t.Parallel()
	c := open(t)
	for name, tags := range map[string]string{
		"a": `"red"`,
		"b": `"blue"`,
		"c": `"red","blue"`,
		"d": ``,
	} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			id := c.must(201, "POST", "/v2.0/networks", fmt.Sprintf(`{"network":{"name":%q}}`, name))["network"].(object)["id"].(string)
			c.must(200, "PUT", "/v2.0/networks/"+id+"/tags", `{"tags":[`+tags+`]}`)
		})
	}
	for query, want := range map[string]string{
		"tags=red":               "ac",
		"tags=red,blue":          "c",
		"tags=red&tags=blue":     "c",
		"tags-any=red,blue":      "abc",
		"not-tags=red,blue":      "abd",
		"not-tags-any=red,blue":  "d",
		"tags=red&not-tags=blue": "a",
		"tags=green":             "",
	} {
		t.Run(query, func(t *testing.T) {
			c := c.in(t)
			got := ""
			for _, n := range c.must(200, "GET", "/v2.0/networks?sort_key=name&sort_dir=asc&"+query, "")["networks"].([]any) {
				got += n.(object)["name"].(string)
			}
			if got != want {
				t.Errorf("list networks with the filter %s: want the names %q, got %q", query, want, got)
			}
		})
	}
	if got := c.fault("GET", "/v2.0/agents?tags=red", ""); got != "400 HTTPBadRequest" {
		t.Errorf("filter agents by tag: got %s, want 400 HTTPBadRequest", got)
	}
}

// PostgreSQL compares each tag of a filter with each object, so a filter has a limited number of them.
func TestTag_FilterHasFewTags(t *testing.T) {
	t.Parallel()
	c := open(t)
	many := make([]string, 51)
	for i := range many {
		many[i] = fmt.Sprintf("tag%d", i)
	}
	for _, name := range []string{"tags", "tags-any", "not-tags", "not-tags-any"} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			path := "/v2.0/networks?" + name + "="
			c.must(200, "GET", path+strings.Join(many[:50], ",")+strings.Repeat("&"+name+"=tag0,tag1", 100), "")
			for _, more := range []string{",", "&" + name + "="} {
				if got := c.fault("GET", path+strings.Join(many[:50], ",")+more+many[50], ""); got != "400 HTTPBadRequest" {
					t.Errorf("filter by 51 tags: got %s, want 400 HTTPBadRequest", got)
				}
			}
		})
	}
}

func TestTag_ConcurrentAddsAreAllKept(t *testing.T) {
	t.Parallel()
	c := open(t)
	net, _ := c.createNetwork("10.0.0.0/24")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if status, o, _ := c.raw("PUT", fmt.Sprintf("/v2.0/networks/%s/tags/t%d", net, i), ""); status != 201 {
				t.Errorf("PUT of a tag during eight concurrent additions: got %d %v, want 201", status, o)
			}
		})
	}
	all.Wait()
	if tags := c.must(200, "GET", "/v2.0/networks/"+net+"/tags", "")["tags"].([]any); len(tags) != 8 {
		t.Errorf("tags after eight concurrent additions: got %v, want all eight", tags)
	}
}
