package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func TestProvider_FormatOfEveryVersion(t *testing.T) {
	t.Parallel()
	c := serve(t)
	id := strings.ToUpper(uuid.NewString())

	a := c.want(201, "", "1.19", "POST", "/resource_providers", `{"name":"☃","uuid":"`+id+`"}`)
	id = strings.ToLower(id)
	self := "/placement/resource_providers/" + id
	if at := a.header.Get("Location"); a.raw != "" || at != strings.TrimSuffix(c.url, "/placement")+self {
		t.Errorf(
			"create a provider before microversion 1.20: got body %q and Location %q, want no body and the provider's URL",
			a.raw,
			at,
		)
	}

	for version, want := range map[string]string{
		"1.0":  `"links":[R,I,U]`,
		"1.5":  `"links":[R,I,U,A]`,
		"1.10": `"links":[R,I,U,A,T]`,
		"1.13": `"links":[R,I,U,A,T,L]`,
		"1.14": `"links":[R,I,U,A,T,L],"parent_provider_uuid":null,"root_provider_uuid":"` + id + `"`,
		"1.39": `"links":[R,I,U,A,T,L],"parent_provider_uuid":null,"root_provider_uuid":"` + id + `"`,
	} {
		t.Run(version, func(t *testing.T) {
			c := c.in(t)
			want = strings.NewReplacer("R", rel(self, "self", ""), "I", rel(self, "inventories", "/inventories"),
				"U", rel(self, "usages", "/usages"), "A", rel(self, "aggregates", "/aggregates"),
				"T", rel(self, "traits", "/traits"), "L", rel(self, "allocations", "/allocations")).
				Replace(want)
			want = fmt.Sprintf(`{"uuid":%q,"name":"☃","generation":0,%s}`, id, want)
			shown := c.want(200, "", version, "GET", "/resource_providers/"+id, "")
			c.same(shown, want)
			c.same(
				c.want(200, "", version, "GET", "/resource_providers?name=%E2%98%83", ""),
				`{"resource_providers":[`+want+`]}`,
			)
			if dated := shown.header.Get("Last-Modified") != ""; dated != (version == "1.39") {
				t.Errorf(
					"GET at microversion %s: has Last-Modified: %v, want it only at microversion 1.39",
					version,
					dated,
				)
			}
		})
	}
	c.want(404, "No resource provider with uuid "+strings.ToUpper(id)+" found",
		"1.39", "GET", "/resource_providers/"+strings.ToUpper(id), "")
}

func rel(self, name, path string) string { return fmt.Sprintf(`{"rel":%q,"href":%q}`, name, self+path) }

func TestProvider_Tree(t *testing.T) {
	t.Parallel()
	c := serve(t)
	root, other := c.provider("root"), c.provider("other")
	child, grandchild := uuid.NewString(), uuid.NewString()
	move := func(status int, part, version, id, name, parent string) {
		t.Helper()
		c.want(status, part, version, "PUT", "/resource_providers/"+id,
			fmt.Sprintf(`{"name":%q,"parent_provider_uuid":%s}`, name, parent))
	}
	names := func(tree string) string {
		t.Helper()
		var all []string
		a := c.want(200, "", "1.39", "GET", "/resource_providers?in_tree="+tree, "")
		for _, p := range a.body["resource_providers"].([]any) {
			all = append(all, p.(map[string]any)["name"].(string))
		}
		return strings.Join(all, " ")
	}

	c.want(200, "", "1.39", "POST", "/resource_providers",
		fmt.Sprintf(`{"name":"child","uuid":%q,"parent_provider_uuid":%q}`, child, root))
	c.want(200, root, "1.39", "POST", "/resource_providers",
		fmt.Sprintf(`{"name":"grandchild","uuid":%q,"parent_provider_uuid":%q}`, grandchild, child))
	c.want(400, "parent provider UUID does not exist.", "1.39", "POST", "/resource_providers",
		fmt.Sprintf(`{"name":"x","parent_provider_uuid":%q}`, uuid.NewString()))
	c.want(400, "parent provider UUID cannot be same as UUID.", "1.39", "POST", "/resource_providers",
		fmt.Sprintf(`{"name":"x","uuid":%[1]q,"parent_provider_uuid":%[1]q}`, uuid.NewString()))
	c.want(400, "'parent_provider_uuid' was unexpected", "1.13", "POST", "/resource_providers",
		fmt.Sprintf(`{"name":"x","parent_provider_uuid":%q}`, root))
	if d := cmp.Diff("root child grandchild", names(grandchild)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("", names(uuid.NewString())); d != "" {
		t.Error(d)
	}

	move(400, "re-parenting a provider is not currently allowed.", "1.36", child, "child", `"`+other+`"`)
	move(400, "un-parenting a provider is not currently allowed.", "1.36", child, "child", "null")
	move(200, root, "1.36", child, "child", `"`+root+`"`)
	move(400, "creating loop in the provider tree is not allowed.", "1.39", root, "root", `"`+grandchild+`"`)
	move(400, "creating loop", "1.14", root, "root", `"`+root+`"`)
	move(400, "parent provider UUID does not exist.", "1.39", child, "child", `"`+uuid.NewString()+`"`)
	move(200, other, "1.39", child, "kid", `"`+other+`"`)
	if d := cmp.Diff("other kid grandchild", names(grandchild)); d != "" {
		t.Error(d)
	}
	move(409, "Conflicting resource provider other already exists.", "1.39", child, "other", "null")
	if d := cmp.Diff("other kid grandchild", names(child)); d != "" {
		t.Errorf("names in the tree after a refused rename (-want +got):\n%s", d)
	}
	move(200, "", "1.39", child, "kid", "null")
	c.want(200, child, "1.39", "PUT", "/resource_providers/"+grandchild, `{"name":"grandkid"}`)

	a := c.want(409, "Unable to delete parent resource provider "+child,
		"1.39", "DELETE", "/resource_providers/"+child, "")
	if a.code() != "placement.resource_provider.cannot_delete_parent" {
		t.Error(a.code())
	}
	c.want(204, "", "1.39", "DELETE", "/resource_providers/"+grandchild, "")
	c.want(204, "", "1.39", "DELETE", "/resource_providers/"+child, "")
	c.want(404, "found for delete", "1.39", "DELETE", "/resource_providers/"+child, "")
}

func TestProvider_NamesAndUUIDsAreUnique(t *testing.T) {
	t.Parallel()
	c := serve(t)
	id := c.provider("a")

	a := c.want(409, "Conflicting resource provider name: a already exists.",
		"1.39", "POST", "/resource_providers", `{"name":"a"}`)
	if a.code() != "placement.duplicate_name" {
		t.Error(a.code())
	}
	c.want(409, "Conflicting resource provider uuid: "+id+" already exists.",
		"1.39", "POST", "/resource_providers", `{"name":"b","uuid":"`+strings.ToUpper(id)+`"}`)
	c.want(400, "name is required", "1.39", "POST", "/resource_providers", `{"name":""}`)
}

func TestProviders_Filters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.want(204, "", "1.28", "PUT", "/allocations/"+uuid.NewString(),
		fmt.Sprintf(`{"allocations":{%q:{"resources":{"DISK_GB":60}}},`+
			`"project_id":"p","user_id":"u","consumer_generation":null}`, s.ids["pool"]))

	for query, want := range map[string][]string{
		"resources=DISK_GB:13":                                {"pool", "alone"},
		"resources=DISK_GB:41":                                {},
		"resources=DISK_GB:14":                                {"pool"},
		"resources=DISK_GB:1,VCPU:1":                          {"alone"},
		"required=COMPUTE_NODE":                               {"n1", "alone"},
		"required=COMPUTE_NODE,!CUSTOM_FAST":                  {"n1"},
		"required=in:CUSTOM_FAST,CUSTOM_SLOW":                 {"n1f0", "n1f1", "alone"},
		"required=COMPUTE_NODE&required=CUSTOM_FAST":          {"alone"},
		"member_of={zone}":                                    {"n1", "alone"},
		"member_of={zone}&member_of={rack}":                   {"n1"},
		"member_of=in:{zone},{rack}":                          {"n1", "n2", "pool", "alone"},
		"member_of=in:{zone},{rack}&member_of=!{zone}":        {"n2", "pool"},
		"member_of=!in:{zone},{rack}&in_tree={n1}":            {"n1c0", "n1c1", "n1f0", "n1f1"},
		"in_tree={n1c0}&resources=VCPU:3":                     {"n1c0"},
		"in_tree={nowhere}":                                   {},
		"name=alone&member_of={zone}&resources=MEMORY_MB:100": {"alone"},
	} {
		t.Run(query, func(t *testing.T) {
			a := s.want(200, "", "1.39", "GET", "/resource_providers?"+s.query(query), "")
			got := []string{}
			for _, p := range a.body["resource_providers"].([]any) {
				got = append(got, p.(map[string]any)["name"].(string))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("list of providers with the query %s (-want +got):\n%s", query, d)
			}
		})
	}
}
