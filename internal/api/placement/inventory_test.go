package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestInventory_GenerationMustMatch(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	all := "/resource_providers/" + p + "/inventories"
	full := `"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1`

	a := c.want(201, "", "1.39", "POST", all,
		`{"resource_class":"VCPU","total":8,"resource_provider_generation":77}`)
	c.same(a, `{"resource_provider_generation":1,"total":8,`+full+`}`)
	if !strings.Contains(a.raw, `"allocation_ratio":1.0`) {
		t.Errorf("inventory %s: want the allocation_ratio 1 written as 1.0", a.raw)
	}
	if at := a.header.Get("Location"); at != c.url+all+"/VCPU" {
		t.Error(at)
	}
	a = c.want(409, "Update conflict", "1.39", "POST", all, `{"resource_class":"VCPU","total":8}`)
	if a.code() != "placement.concurrent_update" {
		t.Error(a.code())
	}
	c.want(
		400,
		"Unable to create inventory for resource provider "+p+": No such resource class CUSTOM_X.",
		"1.39", "POST", all, `{"resource_class":"CUSTOM_X","total":8}`,
	)

	a = c.want(409, "resource provider generation conflict", "1.39", "PUT", all,
		`{"resource_provider_generation":0,"inventories":{}}`)
	if a.code() != "placement.concurrent_update" {
		t.Error(a.code())
	}
	const inventories = `{"DISK_GB":{"total":10,"allocation_ratio":1.5},
		"VCPU":{"total":8,"resource_provider_generation":9}}`
	fullDisk := strings.Replace(full, "ratio\":1", "ratio\":1.5", 1)
	c.same(
		c.want(200, "", "1.39", "PUT", all, `{"resource_provider_generation":1,"inventories":`+inventories+`}`),
		`{"resource_provider_generation":2,
		"inventories":{"VCPU":{"total":8,`+full+`},"DISK_GB":{"total":10,`+fullDisk+`}}}`,
	)
	c.want(
		400,
		"Unknown resource class in inventory for resource provider "+p+": No such resource class no.",
		"1.39", "PUT", all, `{"resource_provider_generation":2,"inventories":{"no":{"total":10}}}`,
	)

	c.same(c.want(200, "", "1.39", "PUT", all+"/VCPU", `{"resource_provider_generation":2,"total":4}`),
		`{"resource_provider_generation":3,"total":4,`+full+`}`)
	c.want(409, "resource provider generation conflict", "1.39", "PUT", all+"/VCPU",
		`{"resource_provider_generation":2,"total":4}`)
	c.want(
		400,
		"No inventory record with resource class for resource provider "+p+": No inventory of class PGPU found.",
		"1.39", "PUT", all+"/PGPU", `{"resource_provider_generation":3,"total":4}`,
	)
	c.want(404, "No such resource class CUSTOM_NO.", "1.39", "PUT", all+"/CUSTOM_NO",
		`{"resource_provider_generation":3,"total":4}`)
	c.want(404, "No inventory of class PGPU for "+p, "1.39", "GET", all+"/PGPU", "")

	c.want(400, "The reserved value is greater than or equal to total.", "1.25", "PUT", all+"/VCPU",
		`{"resource_provider_generation":3,"total":4,"reserved":4}`)
	c.want(400, "The reserved value is greater than total.", "1.26", "PUT", all+"/VCPU",
		`{"resource_provider_generation":3,"total":4,"reserved":5}`)
	c.want(409, "generation conflict", "1.26", "PUT", all+"/VCPU",
		`{"resource_provider_generation":2,"total":4,"reserved":5}`)
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

func TestInventory_InUseCannotBeDeleted(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	c.stock(p, `{"DISK_GB":{"total":10},"VCPU":{"total":10},"MEMORY_MB":{"total":10}}`)
	allocations := fmt.Sprintf(`{"allocations":{%q:{"resources":{"VCPU":1,"DISK_GB":1}}},
		"project_id":"p","user_id":"u","consumer_generation":null}`, p)
	c.want(204, "", "1.28", "PUT", "/allocations/"+uuid.NewString(), allocations)
	all := "/resource_providers/" + p + "/inventories"

	for _, tc := range []struct{ method, path, body, text, code string }{
		{"PUT", all, `{"resource_provider_generation":2,"inventories":{}}`, "update conflict: Inventory for 'VCPU, DISK_GB' on resource provider", "placement.inventory.inuse"},
		{"DELETE", all, "", "Inventory for 'VCPU, DISK_GB' on resource provider", "placement.inventory.inuse"},
		{"DELETE", all + "/VCPU", "", "Unable to delete inventory of class VCPU: Inventory for 'VCPU' on", "placement.concurrent_update"},
		{"DELETE", "/resource_providers/" + p, "", "Unable to delete resource provider " + p + ": Resource provider has allocations.", "placement.resource_provider.inuse"},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			c := c.in(t)
			if a := c.want(409, tc.text, "1.39", tc.method, tc.path, tc.body); a.code() != tc.code {
				t.Errorf("%s %s: got the error code %v, want the one in the test case",
					tc.method, tc.path, a.code())
			}
		})
	}
	c.want(200, "", "1.39", "PUT", all,
		`{"resource_provider_generation":2,"inventories":{"VCPU":{"total":1},"DISK_GB":{"total":1}}}`)
	c.same(c.want(200, "", "1.39", "GET", "/resource_providers/"+p+"/usages", ""),
		`{"resource_provider_generation":3,"usages":{"VCPU":1,"DISK_GB":1}}`)
}

func TestInventory_NumbersAreBounded(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	all := "/resource_providers/" + p + "/inventories"
	for fields, want := range map[string]string{
		`"total":0`:                                     "0 is less than the minimum of 1 Failed validating 'minimum' in schema['properties']['total']",
		`"total":2147483648`:                            "2147483648 is greater than the maximum of 2147483647 Failed validating 'maximum' in schema['properties']['total']",
		`"total":true`:                                  "True is not of type 'integer' Failed validating 'type' in schema['properties']['total']",
		`"total":"8"`:                                   "'8' is not of type 'integer'",
		`"total":8.5`:                                   "8.5 is not of type 'integer'",
		`"total":null`:                                  "None is not of type 'integer'",
		`"total":1e400`:                                 "is not of type 'integer'",
		`"total":99999999999999999999999999`:            "is greater than the maximum of 2147483647",
		`"total":8,"reserved":-1`:                       "-1 is less than the minimum of 0",
		`"total":8,"min_unit":0`:                        "0 is less than the minimum of 1",
		`"total":8,"step_size":0`:                       "0 is less than the minimum of 1",
		`"total":8,"max_unit":2147483648`:               "is greater than the maximum",
		`"total":8,"allocation_ratio":3.5e38`:           "3.5e38 is greater than the maximum of 3.40282e+38",
		`"total":8,"allocation_ratio":1e400`:            "is greater than the maximum",
		`"total":8,"allocation_ratio":-1`:               "Unable to create inventory for resource provider " + p + ": Invalid inventory for 'VCPU' on resource provider '" + p + "'. The reserved value is greater than total.",
		`"total":8,"x":1,"y":2`:                         "Additional properties are not allowed ('x', 'y' were unexpected)",
		`"total":8,"x":1,"reserved":"no"`:               "Additional properties are not allowed ('x' was unexpected) Failed validating 'additionalProperties' in schema",
		`"reserved":1`:                                  "'total' is a required property Failed validating 'required' in schema",
		`"total":8,"resource_provider_generation":true`: "True is not of type 'integer'",
	} {
		t.Run(fields, func(t *testing.T) {
			c := c.in(t)
			c.want(400, want, "1.39", "POST", all, `{"resource_class":"VCPU",`+fields+`}`)
		})
	}
	c.want(400, "'vcpu' does not match '^[A-Z0-9_]+$'",
		"1.39", "POST", all, `{"resource_class":"vcpu","total":1}`)
	c.want(400, "'resource_class' was unexpected", "1.39", "PUT", all+"/VCPU",
		`{"resource_class":"VCPU","total":1,"resource_provider_generation":0}`)
	c.same(c.want(200, "", "1.39", "GET", all, ""), `{"resource_provider_generation":0,"inventories":{}}`)

	c.want(
		201, `"total":10,`, "1.39", "POST", all,
		`{"resource_class":"VCPU","total":10.0,"min_unit":9,"max_unit":1,"resource_provider_generation":99}`,
	)
}
