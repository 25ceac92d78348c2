package placement_test

import (
	"testing"
)

func TestResourceClasses_FormatOfEveryVersion(t *testing.T) {
	t.Parallel()
	c := serve(t)

	a := c.want(201, "", "1.2", "POST", "/resource_classes", `{"name":"CUSTOM_A"}`)
	if at := a.header.Get("Location"); at != c.url+"/resource_classes/CUSTOM_A" {
		t.Error(at)
	}
	c.want(409, "Conflicting resource class already exists: CUSTOM_A",
		"1.2", "POST", "/resource_classes", `{"name":"CUSTOM_A"}`)
	c.want(400,
		"does not match '^CUSTOM_[A-Z0-9_]+$'", "1.2", "POST", "/resource_classes", `{"name":"VCPU2"}`)
	c.same(c.want(200, "", "1.6", "PUT", "/resource_classes/CUSTOM_A", `{"name":"CUSTOM_B"}`),
		`{"name":"CUSTOM_B","links":[{"rel":"self","href":"/placement/resource_classes/CUSTOM_B"}]}`)
	c.want(404, "No such resource class CUSTOM_A.",
		"1.6", "PUT", "/resource_classes/CUSTOM_A", `{"name":"CUSTOM_C"}`)
	c.want(415, "", "1.6", "PUT", "/resource_classes/CUSTOM_A", "")
	c.want(400, "Cannot update standard resource class VCPU",
		"1.6", "PUT", "/resource_classes/VCPU", `{"name":"CUSTOM_C"}`)
	c.want(201, "", "1.7", "PUT", "/resource_classes/CUSTOM_A", "")
	c.want(204, "", "1.7", "PUT", "/resource_classes/CUSTOM_A", "")
	c.want(400, "does not match", "1.7", "PUT", "/resource_classes/VCPU", "")
	c.want(409, "Resource class already exists: CUSTOM_B",
		"1.6", "PUT", "/resource_classes/CUSTOM_A", `{"name":"CUSTOM_B"}`)
	all := c.want(200, "", "1.39", "GET", "/resource_classes", "").body["resource_classes"].([]any)
	if first := all[0].(map[string]any)["name"]; len(all) != 23 || first != "VCPU" {
		t.Errorf(
			"list of resource classes: got %d, the first is %v; want 23 classes, the first of them VCPU",
			len(all),
			first,
		)
	}

	p := c.provider("p")
	c.stock(p, `{"CUSTOM_A":{"total":1}}`)
	c.want(
		409,
		"Error in delete resource class: Cannot delete resource class CUSTOM_A. Class is in use in inventory.",
		"1.2", "DELETE", "/resource_classes/CUSTOM_A", "",
	)
	c.want(204, "", "1.2", "DELETE", "/resource_classes/CUSTOM_B", "")
	c.want(404, "No such resource class CUSTOM_B.", "1.2", "DELETE", "/resource_classes/CUSTOM_B", "")
	c.want(404, "", "1.2", "GET", "/resource_classes/CUSTOM_B", "")
	c.want(400, "Cannot delete standard resource class VCPU.", "1.2", "DELETE", "/resource_classes/VCPU", "")
}
