package placement_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func manyGroups(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "resources%d=VCPU:1&", i+1)
	}
	return b.String()
}

// manyAggregates returns the UUIDs of aggregates, with the separator between them.
func manyAggregates(n int, separator string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("5a000000-0000-4000-8000-%012d", i)
	}
	return strings.Join(list, separator)
}

// A query may name as many aggregates as a parameter may have values.
func TestQuery_ThousandAggregates(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, path := range []string{"/allocation_candidates?resources=VCPU:1&", "/resource_providers?resources=VCPU:1&"} {
		for _, separator := range []string{",", "%2C"} {
			for _, n := range []int{500, 998} {
				t.Run(fmt.Sprint(path, n, separator), func(t *testing.T) {
					for _, query := range []string{"member_of=in:" + s.query("{zone},{rack}") + separator + manyAggregates(n, separator), "member_of=!in:" + manyAggregates(n, separator)} {
						s.want(200, "", "1.39", "GET", path+query, "")
					}
				})
			}
		}
	}
}

func TestQuery_ErrorMessages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const (
		candidates = "/allocation_candidates?"
		providers  = "/resource_providers?"
		badForm    = "Badly formed resources parameter. Expected resources query string parameter in form: ?resources=VCPU:2,MEMORY_MB:1024. Got: "
	)
	for _, tc := range []struct{ version, path, part, code string }{
		{"1.10", candidates, "Invalid query string parameters: 'resources' is a required property", ""},
		{"1.10", candidates + "resources=", badForm + "empty string.", ""},
		{"1.10", candidates + "resources=VCPU", badForm + "VCPU.", ""},
		{"1.10", candidates + "resources=VCPU:1:2", badForm + "VCPU:1:2.", ""},
		{"1.10", candidates + "resources=VCPU:1,", badForm + ".", ""},
		{"1.10", candidates + "resources=VCPU:a", "Requested resource VCPU expected positive integer amount. Got: a.", ""},
		{"1.10", candidates + "resources=VCPU:1.5", "Requested resource VCPU expected positive integer amount. Got: 1.5.", ""},
		{"1.10", candidates + "resources=VCPU:0", "Requested resource VCPU requires amount >= 1. Got: 0.", ""},
		{"1.10", candidates + "resources=VCPU:-1", "Requested resource VCPU requires amount >= 1. Got: -1.", ""},
		{"1.10", candidates + "resources=NOPE:1", "Invalid resource class in resources parameter: No such resource class NOPE.", ""},
		{"1.15", candidates + "resources=VCPU:1&limit=1", "Additional properties are not allowed ('limit' was unexpected)", ""},
		{"1.16", candidates + "resources=VCPU:1&limit=0", "'0' does not match '^[1-9][0-9]*$'", ""},
		{"1.16", candidates + "resources=VCPU:1&limit=x&limit=1", "Failed validating 'pattern' in schema", ""},
		{"1.16", candidates + "resources=VCPU:1&required=CUSTOM_FAST", "'required' was unexpected", ""},
		{"1.17", candidates + "resources=VCPU:1&required=!CUSTOM_FAST", "Invalid query string parameters: Expected 'required' parameter value of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC. Got: !CUSTOM_FAST", ""},
		{"1.17", candidates + "resources=VCPU:1&required=", "of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: ", ""},
		{"1.22", candidates + "resources=VCPU:1&required=COMPUTE_NODE,,x", "HW_CPU_X86_VMX,!CUSTOM_MAGIC. Got an empty trait in: COMPUTE_NODE,,x", ""},
		{"1.22", candidates + "resources=VCPU:1&required=CUSTOM_NOPE", "No such trait(s): CUSTOM_NOPE.", ""},
		{"1.22", candidates + "resources=VCPU:1&required=!CUSTOM_NOPE", "No such trait(s): CUSTOM_NOPE.", ""},
		{"1.22", candidates + "resources=VCPU:1&required=!CUSTOM_FAST,CUSTOM_FAST", "Conflicting required and forbidden traits found in the following traits keys: required: (CUSTOM_FAST)", ""},
		{"1.38", candidates + "resources=VCPU:1&required=in:CUSTOM_FAST", "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' only supported since microversion 1.39. Got: in:CUSTOM_FAST", ""},
		{"1.39", candidates + "resources=VCPU:1&required=in:!CUSTOM_FAST", "does not support forbidden traits. Got: in:!CUSTOM_FAST", ""},
		{"1.39", candidates + "resources1=VCPU:1&required1=in:CUSTOM_FAST,CUSTOM_SLOW&required1=!CUSTOM_SLOW,!CUSTOM_FAST", "required1: (CUSTOM_FAST, CUSTOM_SLOW)", ""},
		{"1.20", candidates + "resources=VCPU:1&member_of={zone}", "'member_of' was unexpected", ""},
		{"1.21", candidates + "resources=VCPU:1&member_of=", "Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). Got: ", ""},
		{"1.21", candidates + "resources=VCPU:1&member_of={zone},{rack}", "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid microversion. Got: " + zone, ""},
		{"1.23", candidates + "resources=VCPU:1&member_of={zone}&member_of={rack}", "Multiple member_of parameters are not supported", "placement.undefined_code"},
		{"1.31", candidates + "resources=VCPU:1&member_of=!{zone}", "Forbidden member_of parameters are not supported in the specified microversion", ""},
		{"1.32", candidates + "resources=VCPU:1&member_of=in:!{zone},{rack}", "to contain valid UUID(s). Got: !" + zone, ""},
		{"1.24", candidates + "resources=VCPU:1&resources1=VCPU:1", "'resources1' was unexpected", ""},
		{"1.25", candidates + "resources=VCPU:1&resources01=VCPU:1", "'resources01' does not match any of the regexes: '^member_of([1-9][0-9]*)?$', '^required([1-9][0-9]*)?$', '^resources([1-9][0-9]*)?$'", ""},
		{"1.32", candidates + "resources_A=VCPU:1", "'resources_A' does not match any of the regexes: '^in_tree", ""},
		{"1.33", candidates + "resources" + strings.Repeat("a", 65) + "=VCPU:1", "does not match any of the regexes: '^in_tree([a-zA-Z0-9_-]{1,64})?$'", ""},
		{"1.30", candidates + "resources=VCPU:1&in_tree={n1}", "'in_tree' does not match any of the regexes", ""},
		{"1.31", candidates + "resources=VCPU:1&in_tree=x", "Expected 'in_tree' parameter to be a format of uuid. Got: x", ""},
		{"1.25", candidates + "resources1=VCPU:1&resources2=VCPU:1", `The \"group_policy\" parameter is required when specifying more than one \"resources{N}\" parameter.`, ""},
		{"1.25", candidates + "resources1=VCPU:1&group_policy=both", "'both' is not one of ['none', 'isolate']", ""},
		{"1.25", candidates, "At least one request group (`resources` or `resources{$S}`) is required.", ""},
		{"1.25", candidates + "resources1=VCPU:1&required=CUSTOM_FAST&required2=CUSTOM_FAST", "All traits parameters must be associated with resources.  Found the following orphaned traits keys: required, required2", ""},
		{"1.25", candidates + "resources1=VCPU:1&member_of={zone}&member_of3={zone}", "All member_of parameters must be associated with resources. Found the following orphaned member_of keys: member_of, member_of3", ""},
		{"1.31", candidates + "resources1=VCPU:1&in_tree={n1}", "All request groups must specify resources.", ""},
		{"1.36", candidates + "required1=CUSTOM_FAST", "There must be at least one resources or resources[$S] parameter.", "placement.query.missing_value"},
		{"1.36", candidates, "There must be at least one resources or resources[$S] parameter.", "placement.query.missing_value"},
		{"1.36", candidates + "resources1=VCPU:1&required=CUSTOM_FAST", "should be specified in `same_subtree` query param: bad group(s) - ['']", "placement.query.bad_value"},
		{"1.36", candidates + "resources1=VCPU:1&required_A=CUSTOM_FAST&same_subtree=1", "bad group(s) - ['_A']", "placement.query.bad_value"},
		{"1.36", candidates + "resources1=VCPU:1&same_subtree=1,9", "Real suffixes should be specified in `same_subtree`: ", "placement.query.bad_value"},
		{"1.36", candidates + "resources1=VCPU:1&same_subtree=1,", "Empty string (unsuffixed group) can not be specified in `same_subtree`", "placement.query.bad_value"},
		{"1.35", candidates + "resources1=VCPU:1&same_subtree=1", "'same_subtree' does not match any of the regexes", ""},
		{"1.34", candidates + "resources1=VCPU:1&root_required=CUSTOM_FAST", "'root_required' does not match any of the regexes", ""},
		{"1.35", candidates + "resources1=VCPU:1&root_required=CUSTOM_FAST&root_required=CUSTOM_FAST", "root_required", "placement.query.duplicate_key"},
		{"1.35", candidates + "resources1=VCPU:1&root_required=CUSTOM_FAST,!CUSTOM_FAST", "Conflicting required and forbidden traits found in root_required: CUSTOM_FAST", "placement.query.bad_value"},
		{"1.39", candidates + "resources1=VCPU:1&root_required=in:CUSTOM_FAST", "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC'", ""},
		{"1.35", candidates + "resources1=VCPU:1&root_required=CUSTOM_NOPE", "No such trait(s): CUSTOM_NOPE.", ""},
		{"1.39", candidates + "resources=VCPU:1&limit=" + strings.Repeat("1", 50000), "The query is longer than 49152 bytes.", ""},
		{"1.39", candidates + "resources=VCPU:1%00", "", ""},
		{"1.10", candidates + "resources=VCPU:0&resources=VCPU:1", "Requested resource VCPU requires amount >= 1. Got: 0.", ""},
		{"1.39", candidates + "resources=VCPU&resources=VCPU:1", badForm + "VCPU.", ""},
		{"1.39", candidates + "resources1=VCPU:x&resources1=VCPU:1", "Requested resource VCPU expected positive integer amount. Got: x.", ""},
		{"1.31", candidates + "resources=VCPU:1&in_tree=x&in_tree={n1}", "Expected 'in_tree' parameter to be a format of uuid. Got: x", ""},
		{"1.39", providers + "member_of=in:" + manyAggregates(1001, ","), "'member_of' has 1001 values, more than 1000.", ""},

		{"1.39", candidates + manyGroups(129) + "group_policy=none", "No more than 128 request groups are supported.", ""},

		{"1.2", providers + "member_of={zone}", "'member_of' was unexpected", ""},
		{"1.3", providers + "member_of=x", "Expected 'member_of' parameter to contain valid UUID(s). Got: x", ""},
		{"1.3", providers + "member_of={zone}&member_of={zone}", "Multiple member_of parameters are not supported", ""},
		{"1.17", providers + "required=CUSTOM_FAST", "'required' was unexpected", ""},
		{"1.18", providers + "required=CUSTOM_NOPE", `Invalid trait(s) in \"required\" parameter: No such trait(s): CUSTOM_NOPE.`, ""},
		{"1.18", providers + "required=!CUSTOM_FAST", "Got: !CUSTOM_FAST", ""},
		{"1.4", providers + "resources=NOPE:1", "Invalid resource class in resources parameter: No such resource class NOPE.", ""},
		{"1.4", providers + "resources=VCPU", badForm + "VCPU.", ""},
		{"1.39", providers + "name=" + strings.Repeat("a", 50000), "The query is longer", ""},
	} {
		t.Run(tc.version, func(t *testing.T) {
			path, query, _ := strings.Cut(s.query(tc.path), "?")
			a := s.want(400, tc.part, tc.version, "GET", path+"?"+query, "")
			if tc.code != "" && a.code() != tc.code {
				t.Errorf("GET %s: got the error code %v, want the one in the test case", tc.path, a.code())
			}
		})
	}
	s.want(200, `"allocation_requests":[`, "1.39", "GET",
		candidates+manyGroups(127)+"group_policy=none&limit=3", "")
	s.want(200, `"allocation_requests":[]`, "1.39", "GET",
		candidates+"resources=VCPU:"+url.QueryEscape(strings.Repeat("9", 400)), "")
}
