package placement_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// site is a deployment: two compute nodes with two NUMA cells each, one of them with a network card below each
// cell, and a disk pool that both nodes share; a node that stands alone.
type site struct {
	*client
	ids map[string]string // by name
}

const (
	rack    = "5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f01"
	zone    = "5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f02"
	nowhere = "5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f03"
)

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{serve(t), map[string]string{}}
	for _, name := range []string{"CUSTOM_FAST", "CUSTOM_SLOW"} {
		s.want(201, "", "1.6", "PUT", "/traits/"+name, "")
	}
	s.add("n1", "", `{"MEMORY_MB":{"total":1000}}`, []string{"COMPUTE_NODE"}, rack, zone)
	s.add("n1c0", "n1", `{"VCPU":{"total":4}}`, []string{"HW_NUMA_ROOT"})
	s.add("n1c1", "n1", `{"VCPU":{"total":2}}`, []string{"HW_NUMA_ROOT"})
	s.add("n1f0", "n1c0", `{"SRIOV_NET_VF":{"total":2}}`, []string{"CUSTOM_FAST"})
	s.add("n1f1", "n1c1", `{"SRIOV_NET_VF":{"total":2}}`, []string{"CUSTOM_SLOW"})
	s.add("n2", "", `{"MEMORY_MB":{"total":2000}}`, nil, rack)
	s.add("n2c0", "n2", `{"VCPU":{"total":8}}`, []string{"HW_NUMA_ROOT"})
	s.add("pool", "", `{"DISK_GB":{"total":100}}`, []string{"MISC_SHARES_VIA_AGGREGATE"}, rack)
	s.add("alone", "", `{"VCPU":{"total":1},"MEMORY_MB":{"total":100},"DISK_GB":{"total":10,"reserved":1,"allocation_ratio":1.55}}`,
		[]string{"COMPUTE_NODE", "CUSTOM_FAST"}, zone)
	return s
}

func (s *site) add(name, parent, stock string, traits []string, aggregates ...string) {
	s.t.Helper()
	id, under := uuid.NewString(), ""
	if parent != "" {
		under = fmt.Sprintf(`,"parent_provider_uuid":%q`, s.ids[parent])
	}
	s.ids[name] = id
	s.want(200, id, "1.39", "POST", "/resource_providers", fmt.Sprintf(`{"name":%q,"uuid":%q%s}`, name, id, under))
	s.stock(id, stock)
	raw, _ := json.Marshal(append([]string{}, traits...))
	s.want(200, "", "1.39", "PUT", "/resource_providers/"+id+"/traits",
		fmt.Sprintf(`{"resource_provider_generation":1,"traits":%s}`, raw))
	raw, _ = json.Marshal(append([]string{}, aggregates...))
	s.want(200, "", "1.18", "PUT", "/resource_providers/"+id+"/aggregates", string(raw))
}

// named replaces the UUIDs of an answer by the providers' names.
func (s *site) named(raw string) string {
	for name, id := range s.ids {
		raw = strings.ReplaceAll(raw, id, name)
	}
	return raw
}

// query is a query with names in braces for UUIDs.
func (s *site) query(q string) string {
	for name, id := range s.ids {
		q = strings.ReplaceAll(q, "{"+name+"}", id)
	}
	return strings.NewReplacer("{rack}", rack, "{zone}", zone, "{nowhere}", nowhere, "!", "%21").Replace(q)
}

// candidates asks and writes every candidate as provider:CLASS=n, sorted, with mappings if the version has them.
func (s *site) candidates(version, query string) []string {
	s.t.Helper()
	raw := s.named(s.want(200, "", version, "GET", "/allocation_candidates?"+s.query(query), "").raw)
	var answer struct {
		Requests []struct {
			Allocations map[string]struct{ Resources map[string]int }
			Mappings    map[string][]string
		} `json:"allocation_requests"`
		Summaries map[string]any `json:"provider_summaries"`
	}
	if err := json.Unmarshal([]byte(raw), &answer); err != nil {
		s.t.Fatalf("%s: %v", raw, err)
	}
	found := []string{}
	for _, r := range answer.Requests {
		var parts []string
		for provider, a := range r.Allocations {
			if answer.Summaries[provider] == nil {
				s.t.Errorf("%s: %s is not described", query, provider)
			}
			for class, n := range a.Resources {
				parts = append(parts, fmt.Sprintf("%s:%s=%d", provider, class, n))
			}
		}
		slices.Sort(parts)
		for suffix, providers := range r.Mappings {
			slices.Sort(providers)
			parts = append(parts, fmt.Sprintf("%q>%s", suffix, strings.Join(providers, "+")))
		}
		slices.Sort(parts[slices.IndexFunc(append(parts, `"`), func(p string) bool { return p[0] == '"' }):])
		found = append(found, strings.Join(parts, " "))
	}
	slices.Sort(found)
	return found
}

func TestCandidatesOfEveryKindOfGroup(t *testing.T) {
	t.Parallel()
	s := newSite(t)

	for _, tc := range []struct {
		version, query string
		want           []string
	}{
		// one provider, or several of a tree
		{"1.28", "resources=VCPU:1,MEMORY_MB:10", []string{"alone:MEMORY_MB=10 alone:VCPU=1"}},
		{"1.29", "resources=VCPU:1,MEMORY_MB:10", []string{"alone:MEMORY_MB=10 alone:VCPU=1", "n1:MEMORY_MB=10 n1c0:VCPU=1",
			"n1:MEMORY_MB=10 n1c1:VCPU=1", "n2:MEMORY_MB=10 n2c0:VCPU=1"}},
		{"1.29", "resources=VCPU:5,MEMORY_MB:10", []string{"n2:MEMORY_MB=10 n2c0:VCPU=5"}},
		{"1.29", "resources=VCPU:9", []string{}},
		// the pool that is shared
		{"1.28", "resources=MEMORY_MB:10,DISK_GB:5", []string{"alone:DISK_GB=5 alone:MEMORY_MB=10", "n1:MEMORY_MB=10 pool:DISK_GB=5",
			"n2:MEMORY_MB=10 pool:DISK_GB=5"}},
		{"1.29", "resources=DISK_GB:5", []string{"alone:DISK_GB=5", "pool:DISK_GB=5"}},
		{"1.29", "resources=DISK_GB:1&resources1=MEMORY_MB:1", []string{"alone:DISK_GB=1 alone:MEMORY_MB=1", "n1:MEMORY_MB=1 pool:DISK_GB=1",
			"n2:MEMORY_MB=1 pool:DISK_GB=1"}},
		{"1.31", "resources=DISK_GB:5&in_tree={n1}", []string{}},
		{"1.31", "resources=DISK_GB:5&in_tree={pool}", []string{"pool:DISK_GB=5"}},
		{"1.31", "resources=MEMORY_MB:5&resources1=DISK_GB:5&in_tree1={pool}", []string{"n1:MEMORY_MB=5 pool:DISK_GB=5", "n2:MEMORY_MB=5 pool:DISK_GB=5"}},
		// traits
		{"1.29", "resources=VCPU:1&required=CUSTOM_FAST", []string{"alone:VCPU=1"}},
		{"1.29", "resources=VCPU:1,SRIOV_NET_VF:1&required=CUSTOM_FAST,HW_NUMA_ROOT", []string{"n1c0:VCPU=1 n1f0:SRIOV_NET_VF=1", "n1c1:VCPU=1 n1f0:SRIOV_NET_VF=1"}},
		{"1.29", "resources=VCPU:1&required=!HW_NUMA_ROOT", []string{"alone:VCPU=1"}},
		{"1.29", "resources1=SRIOV_NET_VF:1&required1=!CUSTOM_SLOW", []string{"n1f0:SRIOV_NET_VF=1"}},
		{"1.38", "resources=SRIOV_NET_VF:1&required=CUSTOM_SLOW&required=CUSTOM_FAST", []string{`n1f0:SRIOV_NET_VF=1 "">n1f0`}},
		{"1.39", "resources=SRIOV_NET_VF:1&required=CUSTOM_SLOW&required=CUSTOM_FAST", []string{}},
		{"1.39", "resources=SRIOV_NET_VF:1&required=in:CUSTOM_SLOW,CUSTOM_FAST", []string{`n1f0:SRIOV_NET_VF=1 "">n1f0`, `n1f1:SRIOV_NET_VF=1 "">n1f1`}},
		{"1.39", "resources=SRIOV_NET_VF:1&required=in:CUSTOM_SLOW,CUSTOM_FAST&required=!CUSTOM_FAST", []string{`n1f1:SRIOV_NET_VF=1 "">n1f1`}},
		{"1.35", "resources=VCPU:1&root_required=COMPUTE_NODE,!CUSTOM_FAST", []string{`n1c0:VCPU=1 "">n1c0`, `n1c1:VCPU=1 "">n1c1`}},
		// aggregates: of the root for all the tree, but of a group with a suffix the provider's own
		{"1.29", "resources=VCPU:1&member_of={zone}", []string{"alone:VCPU=1", "n1c0:VCPU=1", "n1c1:VCPU=1"}},
		{"1.29", "resources1=VCPU:1&member_of1={zone}", []string{"alone:VCPU=1"}},
		{"1.29", "resources=MEMORY_MB:1,DISK_GB:1&member_of={zone}", []string{"alone:DISK_GB=1 alone:MEMORY_MB=1"}},
		{"1.29", "resources=MEMORY_MB:1,DISK_GB:1&member_of=in:{zone},{rack}", []string{"alone:DISK_GB=1 alone:MEMORY_MB=1",
			"n1:MEMORY_MB=1 pool:DISK_GB=1", "n2:MEMORY_MB=1 pool:DISK_GB=1"}},
		{"1.29", "resources=MEMORY_MB:1&member_of={zone}&member_of={rack}", []string{"n1:MEMORY_MB=1"}},
		{"1.32", "resources=VCPU:1&member_of=!{zone}", []string{"n2c0:VCPU=1"}},
		{"1.32", "resources=VCPU:1&member_of=!in:{zone},{rack}", []string{}},
		{"1.32", "resources=VCPU:1&member_of={nowhere}", []string{}},
		{"1.32", "resources=VCPU:1&in_tree={nowhere}", []string{}},
		{"1.31", "resources=VCPU:1&in_tree=%20{n1f1}%20", []string{"n1c0:VCPU=1", "n1c1:VCPU=1"}},
		// several groups
		{"1.29", "resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate", []string{"n1c0:VCPU=1 n1c1:VCPU=1", "n1c0:VCPU=1 n1c1:VCPU=1"}},
		{"1.34", "resources_A=VCPU:2&resources_B=VCPU:2&group_policy=none&in_tree_A={n1}", []string{
			`n1c0:VCPU=2 n1c1:VCPU=2 "_A">n1c0 "_B">n1c1`, `n1c0:VCPU=2 n1c1:VCPU=2 "_A">n1c1 "_B">n1c0`, `n1c0:VCPU=4 "_A">n1c0 "_B">n1c0`}},
		{"1.36", "resources_C=VCPU:1&resources_F=SRIOV_NET_VF:1&group_policy=none&same_subtree=_C,_F", []string{
			`n1c0:VCPU=1 n1f0:SRIOV_NET_VF=1 "_C">n1c0 "_F">n1f0`, `n1c1:VCPU=1 n1f1:SRIOV_NET_VF=1 "_C">n1c1 "_F">n1f1`}},
		{"1.36", "resources_F=SRIOV_NET_VF:1&required_N=HW_NUMA_ROOT&group_policy=none&same_subtree=_N,_F", []string{
			`n1f0:SRIOV_NET_VF=1 "_F">n1f0 "_N">n1c0`, `n1f1:SRIOV_NET_VF=1 "_F">n1f1 "_N">n1c1`}},
		{"1.36", "resources_F=SRIOV_NET_VF:1&required_N=!HW_NUMA_ROOT&in_tree_N={n2}&group_policy=none&same_subtree=_N,_F", []string{}},
	} {
		if d := cmp.Diff(tc.want, s.candidates(tc.version, tc.query)); d != "" {
			t.Errorf("%s %s: %s", tc.version, tc.query, d)
		}
	}
	for limit, want := range map[string]int{"1": 1, "3": 3, "4": 4, "1000": 4, "99999999999999999999999": 4, "1&limit=3": 1} {
		if got := s.candidates("1.29", "resources=VCPU:1,MEMORY_MB:10&limit="+limit); len(got) != want {
			t.Errorf("limit %s: %v", limit, got)
		}
	}
}

func TestCandidatesLookAsTheirVersionSays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	holder := uuid.NewString()
	s.want(204, "", "1.28", "PUT", "/allocations/"+holder, fmt.Sprintf(`{"allocations":{%q:{"resources":{"DISK_GB":3}}},`+
		`"project_id":"p","user_id":"u","consumer_generation":null}`, s.ids["alone"]))
	usedUp := s.named(s.want(200, "", "1.29", "GET", "/allocation_candidates?resources=DISK_GB:11&in_tree="+s.ids["alone"], "", "OpenStack-API-Version", "placement 1.31").raw)
	if usedUp != `{"allocation_requests":[],"provider_summaries":{}}` {
		t.Errorf("more than there is left: %s", usedUp)
	}

	const (
		q       = "/allocation_candidates?resources=DISK_GB:2&member_of="
		portion = `"resources":{"DISK_GB":2}`
		disk    = `"DISK_GB":{"capacity":13,"used":3}`
		all     = disk + `,"VCPU":{"capacity":1,"used":0},"MEMORY_MB":{"capacity":100,"used":0}`
		traits  = `,"traits":["COMPUTE_NODE","CUSTOM_FAST"]`
		tree    = `,"parent_provider_uuid":null,"root_provider_uuid":"alone"`
		object  = `{"allocations":{"alone":{` + portion + `}}}`
	)
	for _, tc := range []struct{ version, requests, summary string }{
		{"1.21", object, `"resources":{` + disk + `}` + traits},
		{"1.26", object, `"resources":{` + disk + `}` + traits},
		{"1.27", object, `"resources":{` + all + `}` + traits},
		{"1.29", object, `"resources":{` + all + `}` + traits + tree},
		{"1.34", `{"allocations":{"alone":{` + portion + `}},"mappings":{"":["alone"]}}`, `"resources":{` + all + `}` + traits + tree},
	} {
		a := s.want(200, "", tc.version, "GET", q+zone, "")
		a.body = nil
		if err := json.Unmarshal([]byte(s.named(a.raw)), &a.body); err != nil {
			t.Fatal(err)
		}
		s.same(a, `{"allocation_requests":[`+tc.requests+`],"provider_summaries":{"alone":{`+tc.summary+`}}}`)
	}
	early := s.want(200, "", "1.10", "GET", "/allocation_candidates?resources=DISK_GB:101", "")
	if early.raw != `{"allocation_requests":[],"provider_summaries":{}}` || early.header.Get("Last-Modified") != "" {
		t.Errorf("1.10: %s", early.raw)
	}
	list := s.named(s.want(200, "", "1.11", "GET", "/allocation_candidates?resources=DISK_GB:10", "").raw)
	if !strings.Contains(list, `{"allocations":[{"resource_provider":{"uuid":"alone"},"resources":{"DISK_GB":10}}]}`) ||
		!strings.Contains(list, `"alone":{"resources":{"DISK_GB":{"capacity":13,"used":3}}}`) {
		t.Errorf("1.11: %s", list)
	}
	if h := s.want(200, "", "1.15", "GET", "/allocation_candidates?resources=VCPU:1", "").header; h.Get("Last-Modified") == "" || h.Get("Cache-Control") != "no-cache" {
		t.Errorf("1.15: %v", h)
	}
	s.want(404, "The resource could not be found.", "1.9", "GET", "/allocation_candidates?resources=VCPU:1", "")
	s.want(403, "placement:allocation_candidates:list", "1.10", "GET", "/allocation_candidates", "", "X-Auth-Token", "u:p")
}

func TestSummariesCoverTheTreesThatContribute(t *testing.T) {
	t.Parallel()
	s := newSite(t)

	for _, tc := range []struct {
		version, query string
		want           []string
	}{
		{"1.28", "resources=SRIOV_NET_VF:1&required=CUSTOM_FAST", []string{"n1f0"}},
		{"1.29", "resources=SRIOV_NET_VF:1&required=CUSTOM_FAST", []string{"n1", "n1c0", "n1c1", "n1f0", "n1f1"}},
		{"1.29", "resources=DISK_GB:50", []string{"pool"}},
		{"1.29", "resources=MEMORY_MB:1500,DISK_GB:50", []string{"n2", "n2c0", "pool"}},
	} {
		a := s.want(200, "", tc.version, "GET", "/allocation_candidates?"+s.query(tc.query), "")
		var got []string
		for id := range a.body["provider_summaries"].(map[string]any) {
			got = append(got, s.named(id))
		}
		slices.Sort(got)
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s %s: %s", tc.version, tc.query, d)
		}
	}
	raw := s.named(s.want(200, "", "1.29", "GET", "/allocation_candidates?resources=SRIOV_NET_VF:1&required=CUSTOM_FAST", "").raw)
	if !strings.Contains(raw, `"n1f0":{"resources":{"SRIOV_NET_VF":{"capacity":2,"used":0}},"traits":["CUSTOM_FAST"],"parent_provider_uuid":"n1c0","root_provider_uuid":"n1"}`) {
		t.Error(raw)
	}
}

func TestProvidersAreFiltered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.want(204, "", "1.28", "PUT", "/allocations/"+uuid.NewString(), fmt.Sprintf(`{"allocations":{%q:{"resources":{"DISK_GB":60}}},`+
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
		a := s.want(200, "", "1.39", "GET", "/resource_providers?"+s.query(query), "")
		got := []string{}
		for _, p := range a.body["resource_providers"].([]any) {
			got = append(got, p.(map[string]any)["name"].(string))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
}

func TestQueriesAreRefusedInTheWordsClientsLookFor(t *testing.T) {
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
		{"1.10", candidates + "resources=VCPU:0", "Requested resource VCPU requires amount \\u003e= 1. Got: 0.", ""},
		{"1.10", candidates + "resources=VCPU:-1", "Requested resource VCPU requires amount \\u003e= 1. Got: -1.", ""},
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
		{"1.39", candidates + "resources=VCPU:1&limit=" + strings.Repeat("1", 17000), "The query is longer than 16384 bytes.", ""},
		{"1.39", candidates + "resources=VCPU:1%00", "", ""},

		{"1.2", providers + "member_of={zone}", "'member_of' was unexpected", ""},
		{"1.3", providers + "member_of=x", "Expected 'member_of' parameter to contain valid UUID(s). Got: x", ""},
		{"1.3", providers + "member_of={zone}&member_of={zone}", "Multiple member_of parameters are not supported", ""},
		{"1.17", providers + "required=CUSTOM_FAST", "'required' was unexpected", ""},
		{"1.18", providers + "required=CUSTOM_NOPE", `Invalid trait(s) in \"required\" parameter: No such trait(s): CUSTOM_NOPE.`, ""},
		{"1.18", providers + "required=!CUSTOM_FAST", "Got: !CUSTOM_FAST", ""},
		{"1.4", providers + "resources=NOPE:1", "Invalid resource class in resources parameter: No such resource class NOPE.", ""},
		{"1.4", providers + "resources=VCPU", badForm + "VCPU.", ""},
		{"1.39", providers + "name=" + strings.Repeat("a", 17000), "The query is longer", ""},
	} {
		path, query, _ := strings.Cut(s.query(tc.path), "?")
		a := s.want(400, tc.part, tc.version, "GET", path+"?"+query, "")
		if tc.code != "" && a.code() != tc.code {
			t.Errorf("%s: code %v", tc.path, a.code())
		}
	}
	s.want(200, `"allocation_requests":[]`, "1.39", "GET", candidates+"resources=VCPU:"+url.QueryEscape(strings.Repeat("9", 400)), "")
}
