package placement_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/api/placement"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// site is a test deployment with three compute nodes. The first compute node of the test deployment has two
// NUMA cells and a network card below each cell. The second compute node of the test deployment has one NUMA
// cell. The first and the second compute node share a disk pool; the third compute node does not use this
// pool.
type site struct {
	*client
	store *store.Store
	ids   map[string]string // by name
}

const (
	rack    = "5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f01"
	zone    = "5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f02"
	nowhere = "5d2e7c6e-2c3c-4a06-8f1c-0f2f0c0a7f03"
)

func newSite(t *testing.T) *site {
	t.Helper()
	rows := storetest.New(t)
	s := &site{serveOver(t, rows, identity.Noauth{}, policy.Options{}), rows, map[string]string{}}
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
	s.add(
		"alone", "",
		`{"VCPU":{"total":1},"MEMORY_MB":{"total":100},"DISK_GB":{"total":10,"reserved":1,"allocation_ratio":1.55}}`,
		[]string{"COMPUTE_NODE", "CUSTOM_FAST"}, zone,
	)
	return s
}

func (s *site) add(name, parent, stock string, traits []string, aggregates ...string) {
	s.t.Helper()
	id, under := uuid.NewString(), ""
	if parent != "" {
		under = fmt.Sprintf(`,"parent_provider_uuid":%q`, s.ids[parent])
	}
	s.ids[name] = id
	s.want(200, id, "1.39", "POST", "/resource_providers",
		fmt.Sprintf(`{"name":%q,"uuid":%q%s}`, name, id, under))
	s.stock(id, stock)
	raw, _ := json.Marshal(append([]string{}, traits...))
	s.want(200, "", "1.39", "PUT", "/resource_providers/"+id+"/traits",
		fmt.Sprintf(`{"resource_provider_generation":1,"traits":%s}`, raw))
	raw, _ = json.Marshal(append([]string{}, aggregates...))
	s.want(200, "", "1.18", "PUT", "/resource_providers/"+id+"/aggregates", string(raw))
}

// named replaces the UUIDs in a response by the providers' names.
func (s *site) named(raw string) string {
	for name, id := range s.ids {
		raw = strings.ReplaceAll(raw, id, name)
	}
	return raw
}

// query replaces provider names in braces by UUIDs.
func (s *site) query(q string) string {
	for name, id := range s.ids {
		q = strings.ReplaceAll(q, "{"+name+"}", id)
	}
	return strings.NewReplacer("{rack}", rack, "{zone}", zone, "{nowhere}", nowhere, "!", "%21").Replace(q)
}

// candidates requests allocation candidates. candidates returns each allocation candidate as a text of sorted
// items provider:CLASS=n. If the responses of the microversion contain mappings, the text also contains the
// mappings of the candidate.
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
		s.t.Fatalf("decode the response with allocation candidates: want valid JSON, got %s: %v", raw, err)
	}
	found := []string{}
	for _, r := range answer.Requests {
		var parts []string
		for provider, a := range r.Allocations {
			if answer.Summaries[provider] == nil {
				s.t.Errorf("query %s: want provider %s in provider_summaries, but it is missing",
					query, provider)
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

func TestCandidates_EveryKindOfGroup(t *testing.T) {
	t.Parallel()
	s := newSite(t)

	for _, tc := range []struct {
		version, query string
		want           []string
	}{
		// candidates from one provider, or from several providers of a tree
		{"1.28", "resources=VCPU:1,MEMORY_MB:10", []string{"alone:MEMORY_MB=10 alone:VCPU=1"}},
		{"1.29", "resources=VCPU:1,MEMORY_MB:10", []string{"alone:MEMORY_MB=10 alone:VCPU=1", "n1:MEMORY_MB=10 n1c0:VCPU=1",
			"n1:MEMORY_MB=10 n1c1:VCPU=1", "n2:MEMORY_MB=10 n2c0:VCPU=1"}},
		{"1.29", "resources=VCPU:5,MEMORY_MB:10", []string{"n2:MEMORY_MB=10 n2c0:VCPU=5"}},
		{"1.29", "resources=VCPU:9", []string{}},
		// the shared pool
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
		// aggregates: an aggregate of the root applies to the whole tree, but a group with a suffix needs an
		// aggregate of the provider itself
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
		t.Run(tc.version, func(t *testing.T) {
			if d := cmp.Diff(tc.want, s.candidates(tc.version, tc.query)); d != "" {
				t.Errorf("allocation candidates at %s for %s (-want +got):\n%s", tc.version, tc.query, d)
			}
		})
	}
	for limit, want := range map[string]int{
		"1":                       1,
		"3":                       3,
		"4":                       4,
		"1000":                    4,
		"99999999999999999999999": 4,
		"1&limit=3":               1,
	} {
		t.Run(limit, func(t *testing.T) {
			if got := s.candidates("1.29", "resources=VCPU:1,MEMORY_MB:10&limit="+limit); len(got) != want {
				t.Errorf(
					"allocation candidates with limit %s: got %v, want as many as in the test case",
					limit,
					got,
				)
			}
		})
	}
}

func TestCandidates_FormatOfEveryVersion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	holder := uuid.NewString()
	s.want(204, "", "1.28", "PUT", "/allocations/"+holder,
		fmt.Sprintf(`{"allocations":{%q:{"resources":{"DISK_GB":3}}},`+
			`"project_id":"p","user_id":"u","consumer_generation":null}`, s.ids["alone"]))
	found := s.want(200, "", "1.29", "GET",
		"/allocation_candidates?resources=DISK_GB:11&in_tree="+s.ids["alone"],
		"", "OpenStack-API-Version", "placement 1.31")
	usedUp := s.named(found.raw)
	if usedUp != `{"allocation_requests":[],"provider_summaries":{}}` {
		t.Errorf("candidates for more disk than is left: got %s, want none", usedUp)
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
		t.Run(tc.version, func(t *testing.T) {
			a := s.want(200, "", tc.version, "GET", q+zone, "")
			a.body = nil
			if err := json.Unmarshal([]byte(s.named(a.raw)), &a.body); err != nil {
				t.Fatal(err)
			}
			s.same(
				a,
				`{"allocation_requests":[`+tc.requests+`],"provider_summaries":{"alone":{`+tc.summary+`}}}`,
			)
		})
	}
	early := s.want(200, "", "1.10", "GET", "/allocation_candidates?resources=DISK_GB:101", "")
	if early.raw != `{"allocation_requests":[],"provider_summaries":{}}` ||
		early.header.Get("Last-Modified") != "" {
		t.Errorf(
			"candidates at microversion 1.10 for more disk than exists: got %s, want no candidates and no Last-Modified header",
			early.raw,
		)
	}
	list := s.named(s.want(200, "", "1.11", "GET", "/allocation_candidates?resources=DISK_GB:10", "").raw)
	const request = `{"allocations":[{"resource_provider":{"uuid":"alone"},"resources":{"DISK_GB":10}}]}`
	const summary = `"alone":{"resources":{"DISK_GB":{"capacity":13,"used":3}}}`
	if !strings.Contains(list, request) || !strings.Contains(list, summary) {
		t.Errorf(
			"candidates at microversion 1.11: got %s, want 10 GB of the separate node, and its capacity 13 and its usage 3",
			list,
		)
	}
	h := s.want(200, "", "1.15", "GET", "/allocation_candidates?resources=VCPU:1", "").header
	if h.Get("Last-Modified") == "" || h.Get("Cache-Control") != "no-cache" {
		t.Errorf("headers at microversion 1.15: got %v, want Last-Modified and Cache-Control no-cache", h)
	}
	s.want(404, "The resource could not be found.", "1.9", "GET",
		"/allocation_candidates?resources=VCPU:1", "")
	s.want(403, "placement:allocation_candidates:list",
		"1.10", "GET", "/allocation_candidates", "", "X-Auth-Token", "u:p")
}

func TestCandidates_SummariesCoverContributingTrees(t *testing.T) {
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
		t.Run(tc.version, func(t *testing.T) {
			a := s.want(200, "", tc.version, "GET", "/allocation_candidates?"+s.query(tc.query), "")
			var got []string
			for id := range a.body["provider_summaries"].(map[string]any) {
				got = append(got, s.named(id))
			}
			slices.Sort(got)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("allocation candidates at %s for %s (-want +got):\n%s", tc.version, tc.query, d)
			}
		})
	}
	found := s.want(200, "", "1.29", "GET",
		"/allocation_candidates?resources=SRIOV_NET_VF:1&required=CUSTOM_FAST", "")
	raw := s.named(found.raw)
	const summary = `"n1f0":{"resources":{"SRIOV_NET_VF":{"capacity":2,"used":0}},` +
		`"traits":["CUSTOM_FAST"],"parent_provider_uuid":"n1c0","root_provider_uuid":"n1"}`
	if !strings.Contains(raw, summary) {
		t.Errorf("summary of provider n1f0: got %s, want its resources, traits, parent and root", raw)
	}
}

func TestCandidates_OperatorLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	rules, err := policy.Open(policy.Options{}, placement.Policy...)
	if err != nil {
		t.Fatal(err)
	}
	with := func(set placement.Candidates) *site {
		c := *s.client
		c.url = serveAPI(t, placement.Options{
			Store:      s.store.Inventory,
			Identity:   identity.Noauth{},
			Policy:     rules,
			Candidates: set,
		})
		return &site{&c, s.store, s.ids}
	}
	const all = "resources=VCPU:1"
	if got := with(placement.Candidates{Max: 2}).candidates("1.29", all); len(got) != 2 {
		t.Errorf("candidates with a configured maximum of 2: got %v, want 2", got)
	}
	if got := with(placement.Candidates{Max: 2}).candidates("1.29", all+"&limit=1"); len(got) != 1 {
		t.Errorf("candidates with a maximum of 2 and limit 1: got %v, want 1", got)
	}
	got := with(placement.Candidates{DepthFirst: true}).candidates("1.29", all+"&limit=2")
	if !slices.Equal(got, []string{"n1c0:VCPU=1", "n1c1:VCPU=1"}) {
		t.Errorf("candidates of a depth-first search: got %v, want both cells of the first node", got)
	}
	got = s.candidates("1.29", all+"&limit=2")
	if !slices.Equal(got, []string{"n1c0:VCPU=1", "n2c0:VCPU=1"}) {
		t.Errorf("candidates of a breadth-first search: got %v, want one cell of each node", got)
	}
	random, seen := with(placement.Candidates{Random: true}), map[string]bool{}
	for range 200 { // in 200 searches, each of the four providers is practically certain to be first once
		seen[random.candidates("1.29", all+"&limit=1")[0]] = true
	}
	if len(seen) != 4 || len(random.candidates("1.29", all)) != 4 {
		t.Errorf("first candidates of random searches: got %v, want each of the four at least once", seen)
	}
}
