package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func TestProviderIsShownAsItsVersionKnowsIt(t *testing.T) {
	t.Parallel()
	c := serve(t)
	id := strings.ToUpper(uuid.NewString())

	a := c.want(201, "", "1.19", "POST", "/resource_providers", `{"name":"☃","uuid":"`+id+`"}`)
	id = strings.ToLower(id)
	self := "/placement/resource_providers/" + id
	if at := a.header.Get("Location"); a.raw != "" || at != strings.TrimSuffix(c.url, "/placement")+self {
		t.Errorf("creation before 1.20: body %q, location %q", a.raw, at)
	}

	for version, want := range map[string]string{
		"1.0":  `"links":[R,I,U]`,
		"1.5":  `"links":[R,I,U,A]`,
		"1.10": `"links":[R,I,U,A,T]`,
		"1.13": `"links":[R,I,U,A,T,L]`,
		"1.14": `"links":[R,I,U,A,T,L],"parent_provider_uuid":null,"root_provider_uuid":"` + id + `"`,
		"1.39": `"links":[R,I,U,A,T,L],"parent_provider_uuid":null,"root_provider_uuid":"` + id + `"`,
	} {
		want = strings.NewReplacer("R", rel(self, "self", ""), "I", rel(self, "inventories", "/inventories"),
			"U", rel(self, "usages", "/usages"), "A", rel(self, "aggregates", "/aggregates"),
			"T", rel(self, "traits", "/traits"), "L", rel(self, "allocations", "/allocations")).Replace(want)
		want = fmt.Sprintf(`{"uuid":%q,"name":"☃","generation":0,%s}`, id, want)
		shown := c.want(200, "", version, "GET", "/resource_providers/"+id, "")
		c.same(shown, want)
		c.same(c.want(200, "", version, "GET", "/resource_providers?name=%E2%98%83", ""), `{"resource_providers":[`+want+`]}`)
		if dated := shown.header.Get("Last-Modified") != ""; dated != (version == "1.39") {
			t.Errorf("%s: dated %v", version, dated)
		}
	}
	c.want(404, "No resource provider with uuid "+strings.ToUpper(id)+" found", "1.39", "GET", "/resource_providers/"+strings.ToUpper(id), "")
}

func rel(self, name, path string) string { return fmt.Sprintf(`{"rel":%q,"href":%q}`, name, self+path) }

func TestProvidersFormTrees(t *testing.T) {
	t.Parallel()
	c := serve(t)
	root, other := c.provider("root"), c.provider("other")
	child, grandchild := uuid.NewString(), uuid.NewString()
	move := func(status int, part, version, id, name, parent string) {
		t.Helper()
		c.want(status, part, version, "PUT", "/resource_providers/"+id, fmt.Sprintf(`{"name":%q,"parent_provider_uuid":%s}`, name, parent))
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

	c.want(200, "", "1.39", "POST", "/resource_providers", fmt.Sprintf(`{"name":"child","uuid":%q,"parent_provider_uuid":%q}`, child, root))
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
		t.Errorf("a refused rename moved the provider: %s", d)
	}
	move(200, "", "1.39", child, "kid", "null")
	c.want(200, child, "1.39", "PUT", "/resource_providers/"+grandchild, `{"name":"grandkid"}`)

	a := c.want(409, "Unable to delete parent resource provider "+child, "1.39", "DELETE", "/resource_providers/"+child, "")
	if a.code() != "placement.resource_provider.cannot_delete_parent" {
		t.Error(a.code())
	}
	c.want(204, "", "1.39", "DELETE", "/resource_providers/"+grandchild, "")
	c.want(204, "", "1.39", "DELETE", "/resource_providers/"+child, "")
	c.want(404, "found for delete", "1.39", "DELETE", "/resource_providers/"+child, "")
}

func TestProviderNamesAndUUIDsAreUnique(t *testing.T) {
	t.Parallel()
	c := serve(t)
	id := c.provider("a")

	a := c.want(409, "Conflicting resource provider name: a already exists.", "1.39", "POST", "/resource_providers", `{"name":"a"}`)
	if a.code() != "placement.duplicate_name" {
		t.Error(a.code())
	}
	c.want(409, "Conflicting resource provider uuid: "+id+" already exists.", "1.39", "POST", "/resource_providers",
		`{"name":"b","uuid":"`+strings.ToUpper(id)+`"}`)
	c.want(400, "name is required", "1.39", "POST", "/resource_providers", `{"name":""}`)
}

func TestInventoriesFollowTheProvidersGeneration(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	all := "/resource_providers/" + p + "/inventories"
	full := `"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1`

	a := c.want(201, "", "1.39", "POST", all, `{"resource_class":"VCPU","total":8,"resource_provider_generation":77}`)
	c.same(a, `{"resource_provider_generation":1,"total":8,`+full+`}`)
	if !strings.Contains(a.raw, `"allocation_ratio":1.0`) {
		t.Errorf("a ratio that is a whole number looks like a count: %s", a.raw)
	}
	if at := a.header.Get("Location"); at != c.url+all+"/VCPU" {
		t.Error(at)
	}
	a = c.want(409, "Update conflict", "1.39", "POST", all, `{"resource_class":"VCPU","total":8}`)
	if a.code() != "placement.concurrent_update" {
		t.Error(a.code())
	}
	c.want(400, "Unable to create inventory for resource provider "+p+": No such resource class CUSTOM_X.", "1.39", "POST", all,
		`{"resource_class":"CUSTOM_X","total":8}`)

	a = c.want(409, "resource provider generation conflict", "1.39", "PUT", all, `{"resource_provider_generation":0,"inventories":{}}`)
	if a.code() != "placement.concurrent_update" {
		t.Error(a.code())
	}
	c.same(c.want(200, "", "1.39", "PUT", all,
		`{"resource_provider_generation":1,"inventories":{"DISK_GB":{"total":10,"allocation_ratio":1.5},"VCPU":{"total":8,"resource_provider_generation":9}}}`),
		`{"resource_provider_generation":2,"inventories":{"VCPU":{"total":8,`+full+`},"DISK_GB":{"total":10,`+strings.Replace(full, "ratio\":1", "ratio\":1.5", 1)+`}}}`)
	c.want(400, "Unknown resource class in inventory for resource provider "+p+": No such resource class no.", "1.39", "PUT", all,
		`{"resource_provider_generation":2,"inventories":{"no":{"total":10}}}`)

	c.same(c.want(200, "", "1.39", "PUT", all+"/VCPU", `{"resource_provider_generation":2,"total":4}`),
		`{"resource_provider_generation":3,"total":4,`+full+`}`)
	c.want(409, "resource provider generation conflict", "1.39", "PUT", all+"/VCPU", `{"resource_provider_generation":2,"total":4}`)
	c.want(400, "No inventory record with resource class for resource provider "+p+": No inventory of class PGPU found.", "1.39", "PUT",
		all+"/PGPU", `{"resource_provider_generation":3,"total":4}`)
	c.want(404, "No such resource class CUSTOM_NO.", "1.39", "PUT", all+"/CUSTOM_NO", `{"resource_provider_generation":3,"total":4}`)
	c.want(404, "No inventory of class PGPU for "+p, "1.39", "GET", all+"/PGPU", "")

	c.want(400, "The reserved value is greater than or equal to total.", "1.25", "PUT", all+"/VCPU", `{"resource_provider_generation":3,"total":4,"reserved":4}`)
	c.want(400, "The reserved value is greater than total.", "1.26", "PUT", all+"/VCPU", `{"resource_provider_generation":3,"total":4,"reserved":5}`)
	c.want(409, "generation conflict", "1.26", "PUT", all+"/VCPU", `{"resource_provider_generation":2,"total":4,"reserved":5}`)
	c.want(200, "", "1.26", "PUT", all+"/VCPU", `{"resource_provider_generation":3,"total":4,"reserved":4}`)

	c.want(404, "No inventory of class PGPU found for delete", "1.39", "DELETE", all+"/PGPU", "")
	c.want(204, "", "1.39", "DELETE", all+"/VCPU", "")
	c.want(204, "", "1.39", "DELETE", all, "")
	c.want(204, "", "1.39", "DELETE", all, "")
	c.same(c.want(200, "", "1.39", "GET", all, ""), `{"resource_provider_generation":7,"inventories":{}}`)
	missing := "/resource_providers/" + uuid.NewString() + "/inventories"
	c.want(404, "", "1.39", "POST", missing, `{"bad":1}`)
	c.want(404, "", "1.39", "PUT", missing, `{"bad":1}`)
	c.want(404, "", "1.39", "GET", missing, "")
}

func TestInventoryInUseStays(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	c.stock(p, `{"DISK_GB":{"total":10},"VCPU":{"total":10},"MEMORY_MB":{"total":10}}`)
	c.want(204, "", "1.28", "PUT", "/allocations/"+uuid.NewString(), fmt.Sprintf(
		`{"allocations":{%q:{"resources":{"VCPU":1,"DISK_GB":1}}},"project_id":"p","user_id":"u","consumer_generation":null}`, p))
	all := "/resource_providers/" + p + "/inventories"

	for _, tc := range []struct{ method, path, body, text, code string }{
		{"PUT", all, `{"resource_provider_generation":2,"inventories":{}}`, "update conflict: Inventory for 'VCPU, DISK_GB' on resource provider", "placement.inventory.inuse"},
		{"DELETE", all, "", "Inventory for 'VCPU, DISK_GB' on resource provider", "placement.inventory.inuse"},
		{"DELETE", all + "/VCPU", "", "Unable to delete inventory of class VCPU: Inventory for 'VCPU' on", "placement.concurrent_update"},
		{"DELETE", "/resource_providers/" + p, "", "Unable to delete resource provider " + p + ": Resource provider has allocations.", "placement.resource_provider.inuse"},
	} {
		if a := c.want(409, tc.text, "1.39", tc.method, tc.path, tc.body); a.code() != tc.code {
			t.Errorf("%s %s: code %v", tc.method, tc.path, a.code())
		}
	}
	c.want(200, "", "1.39", "PUT", all, `{"resource_provider_generation":2,"inventories":{"VCPU":{"total":1},"DISK_GB":{"total":1}}}`)
	c.same(c.want(200, "", "1.39", "GET", "/resource_providers/"+p+"/usages", ""),
		`{"resource_provider_generation":3,"usages":{"VCPU":1,"DISK_GB":1}}`)
}

func TestAggregatesHaveTwoForms(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	path := "/resource_providers/" + p + "/aggregates"
	a, b := uuid.NewString(), strings.ToUpper(uuid.NewString())

	c.same(c.want(200, "", "1.1", "PUT", path, fmt.Sprintf(`[%q,%q]`, b, a)), fmt.Sprintf(`{"aggregates":[%q,%q]}`, b, a))
	c.want(200, b, "1.18", "GET", path, "")
	if g := c.generation(p); g != 0.0 {
		t.Errorf("a write before 1.19 moved the generation to %v", g)
	}
	body := func(g int, list string) string {
		return fmt.Sprintf(`{"aggregates":[%s],"resource_provider_generation":%d}`, list, g)
	}
	c.same(c.want(200, "", "1.19", "PUT", path, body(0, `"`+a+`"`)), body(1, `"`+a+`"`))
	c.same(c.want(200, "", "1.19", "PUT", path, body(1, `"`+a+`"`)), body(2, `"`+a+`"`))
	conflict := c.want(409, "Resource provider's generation already changed. Please update the generation and try again.", "1.23", "PUT", path, body(1, ""))
	if conflict.code() != "placement.concurrent_update" {
		t.Error(conflict.code())
	}
	c.same(c.want(200, "", "1.19", "GET", path, ""), body(2, `"`+a+`"`))
	c.want(400, "is not of type 'array'", "1.18", "PUT", path, body(2, ""))
	c.want(400, "is not of type 'object'", "1.19", "PUT", path, "[]")
	c.want(400, "has non-unique elements", "1.1", "PUT", path, fmt.Sprintf(`[%q,%q]`, a, a))
	c.want(400, "is too long", "1.1", "PUT", path, fmt.Sprintf(`[%q]`, a+strings.Repeat("-", 100000)))
	c.want(400, "'x' is not a 'uuid'", "1.1", "PUT", path, `["x"]`)
	c.want(404, "No resource provider", "1.19", "PUT", "/resource_providers/"+uuid.NewString()+"/aggregates", `{"bad":1}`)
	c.same(c.want(200, "", "1.39", "PUT", path, body(2, "")), body(3, ""))
}
