package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestQuery_UsagesAndTraits(t *testing.T) {
	t.Parallel()
	c := serve(t)
	fill := prepare(c)
	const invalid = "Invalid query string parameters: "
	long := strings.Repeat("x", 256)
	for _, tc := range []struct {
		status        int
		part, version string
		query         string
	}{
		{400, invalid + "'project_id' is a required property", "1.9", "/usages"},
		{400, invalid + "'' should be non-empty", "1.9", "/usages?project_id="},
		{400, "is too long Failed validating 'maxLength'", "1.9", "/usages?project_id=" + long},
		{400, "is too long", "1.9", "/usages?project_id=p&user_id=" + long},
		{400, "Additional properties are not allowed ('x' was unexpected)", "1.9", "/usages?project_id=p&x=1"},
		{400, "('consumer_type' was unexpected)", "1.37", "/usages?project_id=p&consumer_type=T"},
		{400, "'t' does not match", "1.38", "/usages?project_id=p&consumer_type=t"},
		{200, `{"usages":{}}`, "1.38", "/usages?project_id=p&consumer_type=allx"},
		{200, `{"usages":{"T":{"VCPU":1,"consumer_count":1}}}`, "1.38", "/usages?project_id=p"},
		{200, `{"usages":{"all":{"VCPU":1,"consumer_count":1}}}`, "1.38", "/usages?project_id=p&consumer_type=all"},
		{200, `{"usages":{}}`, "1.38", "/usages?project_id=p&consumer_type=unknown"},
		{200, `{"usages":{}}`, "1.38", "/usages?project_id=p&consumer_type=ALL"},
		{200, `{"usages":{"VCPU":1}}`, "1.9", "/usages?project_id=x&project_id=p"},
		{200, `{"usages":{}}`, "1.9", "/usages?project_id=p&project_id=x"},
		{200, `{"usages":{}}`, "1.9", "/usages?project_id=p'%20or%20'1'='1"},
		{400, "", "1.9", "/usages?project_id=%ff"},
		{200, "COMPUTE_NODE", "1.6", "/traits?name=no:COMPUTE_NODE"},
		{200, `{"traits":[]}`, "1.6", "/traits?name=startswith:COMPUTE%25"},
		{200, `{"traits":[]}`, "1.6", "/traits?name=in:"},
		{400, "should be non-empty", "1.6", "/traits?name="},
		{200, `{"traits":[]}`, "1.6", "/traits?name=in:CUSTOM_B&name=startswith:CUSTOM_"},
		{200, "", "1.39", "/resource_classes?x=%E2%98%83"},
		{200, `"name":"p"`, "1.0", "/resource_providers?name="}, // an empty name is no filter
		{200, `"name":"p"`, "1.0", "/resource_providers?name=x&name=p"},
		{400, "does not match", "1.0", "/resource_providers?uuid=" + strings.ReplaceAll(uuid.NewString(), "-", "")},
	} {
		t.Run(tc.part, func(t *testing.T) {
			c := c.in(t)
			c.want(tc.status, tc.part, tc.version, "GET", fill(tc.query), "")
		})
	}
}

func TestUsages_GroupedByConsumerType(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	c.stock(p, `{"VCPU":{"total":100},"DISK_GB":{"total":100}}`)
	put := func(project, user, kind string, cpu, disk int) {
		t.Helper()
		version, more := "1.28", ""
		if kind != "" {
			version, more = "1.38", fmt.Sprintf(`,"consumer_type":%q`, kind)
		}
		allocations := fmt.Sprintf(
			`{"allocations":{%q:{"resources":{"VCPU":%d,"DISK_GB":%d}}},
			"project_id":%q,"user_id":%q,"consumer_generation":null%s}`,
			p, cpu, disk, project, user, more,
		)
		c.want(204, "", version, "PUT", "/allocations/"+uuid.NewString(), allocations)
	}
	put("p", "u", "INSTANCE", 1, 10)
	put("p", "u", "INSTANCE", 2, 10)
	put("p", "v", "MIGRATION", 4, 10)
	put("p", "v", "", 8, 10)
	put("q", "u", "INSTANCE", 16, 10)

	for query, want := range map[string]string{
		"1.9 project_id=p":                          `{"VCPU":15,"DISK_GB":40}`,
		"1.37 project_id=p&user_id=u":               `{"VCPU":3,"DISK_GB":20}`,
		"1.9 project_id=nobody":                     `{}`,
		"1.38 project_id=nobody":                    `{}`,
		"1.38 project_id=nobody&consumer_type=all":  `{}`,
		"1.38 project_id=p&user_id=u":               `{"INSTANCE":{"VCPU":3,"DISK_GB":20,"consumer_count":2}}`,
		"1.38 project_id=p&consumer_type=all":       `{"all":{"VCPU":15,"DISK_GB":40,"consumer_count":4}}`,
		"1.38 project_id=p&consumer_type=unknown":   `{"unknown":{"VCPU":8,"DISK_GB":10,"consumer_count":1}}`,
		"1.38 project_id=p&consumer_type=MIGRATION": `{"MIGRATION":{"VCPU":4,"DISK_GB":10,"consumer_count":1}}`,
		"1.38 project_id=p": `{"INSTANCE":{"VCPU":3,"DISK_GB":20,"consumer_count":2},
			"MIGRATION":{"VCPU":4,"DISK_GB":10,"consumer_count":1},"unknown":{"VCPU":8,"DISK_GB":10,"consumer_count":1}}`,
	} {
		t.Run(query, func(t *testing.T) {
			c := c.in(t)
			version, parameters, _ := strings.Cut(query, " ")
			c.same(c.want(200, "", version, "GET", "/usages?"+parameters, ""), `{"usages":`+want+`}`)
		})
	}
	c.want(400, "'project_id' is a required property", "1.9", "GET", "/usages", "")
	c.want(400, "'consumer_type' was unexpected", "1.37", "GET", "/usages?project_id=p&consumer_type=all", "")
	c.want(400, "does not match", "1.38", "GET", "/usages?project_id=p&consumer_type=x", "")
}
