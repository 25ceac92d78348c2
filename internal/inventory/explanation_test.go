package inventory_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/internal/inventory"
)

// explain explains a query for all trees of a deployment.
func explain(q inventory.CandidateQuery, d deployment) inventory.Explanation {
	x := inventory.NewExplainer(q, d.sharingTrees())
	for _, t := range d.trees {
		x.AddTree(t)
	}
	return x.Explanation
}

func (d deployment) sharingTrees() (sharing []*inventory.Tree) {
	shares := func(n *inventory.Node) bool {
		return slices.Contains(n.Traits, inventory.TraitSharesViaAggregate)
	}
	for _, t := range d.trees {
		if slices.ContainsFunc(t.Nodes, shares) {
			sharing = append(sharing, t)
		}
	}
	return sharing
}

// For any deployment and query, an explanation finds a candidate in the same trees as the search, and the
// numbers in the explanation add up.
func TestExplainer_AgreesWithTheSearch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawDeployment(t)
		q := drawQuery(t, d)
		if len(q.Groups) == 0 {
			return // the API refuses such a query
		}
		want := 0
		for i := range d.trees {
			alone := d.clone()
			s := inventory.NewSearch(q)
			s.AddSharingTrees(alone.sharingTrees())
			s.SearchTree(alone.trees[i])
			for s.Continue() {
			}
			want += min(len(s.Result().Candidates), 1)
		}
		e := explain(q, d)
		removed := 0
		for _, r := range e.Combination {
			removed += r.Trees
			if r.Filter == "undecided" && r.Trees > 0 {
				t.Errorf("trees that are not decided: got %d, want none in a small deployment", r.Trees)
			}
		}
		if e.CandidateTrees != want || e.Trees != len(d.trees) || e.CandidateTrees+removed != e.Trees ||
			e.Providers != len(d.nodes) {
			t.Errorf("explanation of %+v: got %+v, want %d of %d trees with a candidate",
				q, e, want, len(d.trees))
		}
		for _, s := range e.Slots {
			providers := s.Providers
			for _, r := range s.Removals {
				providers += r.Providers
				if len(r.Examples) != min(r.Providers, 3) {
					t.Errorf("examples of the filter %s: got %v, want at most 3 of %d",
						r.Filter, r.Examples, r.Providers)
				}
			}
			if providers != len(d.nodes) {
				t.Errorf("providers that the filters of a slot remove or leave: got %d of %+v, want %d",
					providers, s, len(d.nodes))
			}
		}
	})
}

// host returns the tree of a host with 8 VCPUs; `used` is the number of used VCPUs.
func host(id string, used int64, traits, aggregates []string) *inventory.Tree {
	return inventory.NewTree([]*inventory.Node{{
		UUID:       id,
		Traits:     traits,
		Aggregates: aggregates,
		Inventories: []*inventory.NodeInventory{
			{Class: "VCPU", Inventory: inventory.NewInventory(8), Used: used},
		},
	}})
}

func TestExplainer_NamesTheFilterAndTheReason(t *testing.T) {
	t.Parallel()
	d := deployment{
		trees: []*inventory.Tree{
			host("full", 6, []string{"T"}, nil),
			host("plain", 0, nil, nil),
			host("forbidden", 0, []string{"T", "F"}, nil),
			host("elsewhere", 0, []string{"T"}, []string{"B"}),
			host("good", 0, []string{"T"}, []string{"A"}),
		},
	}
	q := inventory.CandidateQuery{
		Groups: []inventory.Group{{
			Suffix:    "1",
			Resources: map[string]int64{"VCPU": 4},
			Traits: inventory.Rule{
				Required:  [][]string{{"T"}},
				Forbidden: []string{"F"},
			},
			Aggregates: inventory.Rule{Required: [][]string{{"A", "C"}}},
		}},
	}
	one := func(filter, id, reason string) inventory.Removal {
		return inventory.Removal{
			Filter:    filter,
			Providers: 1,
			Trees:     1,
			Examples:  []inventory.RemovalExample{{UUID: id, Reason: reason}},
		}
	}
	want := inventory.SlotExplanation{
		Suffix:    "1",
		Resources: []inventory.ResourceAmount{{Class: "VCPU", Amount: 4}},
		Providers: 1,
		Trees:     1,
		Removals: []inventory.Removal{
			{Filter: "in_tree"},
			{Filter: "inventory"},
			one("capacity", "full", "has 2 of 8 VCPU free, and 4 is requested"),
			one("required", "plain", "does not have T"),
			one("forbidden", "forbidden", "has the forbidden F"),
			one("member_of", "elsewhere", "does not have A or C"),
		},
	}
	e := explain(q, d)
	if d := cmp.Diff([]inventory.SlotExplanation{want}, e.Slots); d != "" || e.CandidateTrees != 1 {
		t.Errorf(
			"explanation of a query for which one host is left: got %d trees with a candidate, want 1; filters (-want +got):\n%s",
			e.CandidateTrees,
			d,
		)
	}
	if got := removedTrees(e); got["groups"] != 4 || len(got) != 1 {
		t.Errorf(
			"trees that the filters on trees remove: got %v, want 4 trees without a provider for the group",
			got,
		)
	}
}

// removedTrees returns the number of trees that each filter on whole trees removes.
func removedTrees(e inventory.Explanation) map[string]int {
	removed := map[string]int{}
	for _, r := range e.Combination {
		if r.Trees > 0 {
			removed[r.Filter] = r.Trees
		}
	}
	return removed
}

func TestExplainer_FiltersOnWholeTrees(t *testing.T) {
	t.Parallel()
	isolated := groupsOf(2, "VCPU")
	isolated.GroupPolicyIsolate = true
	cards := groupsOf(2, "VGPU")
	cards.GroupPolicyIsolate = true
	cards.SameSubtrees = [][]string{{"0", "1"}}
	spread := func(traits ...string) inventory.CandidateQuery {
		return inventory.CandidateQuery{
			Groups: []inventory.Group{
				{
					Resources: map[string]int64{"VCPU": 1},
					Traits:    inventory.Rule{Required: [][]string{traits}},
				},
			},
		}
	}
	root := spread("T")
	root.RootTraits.Required = [][]string{{"R"}}
	elsewhere := groupsOf(1, "VCPU")
	elsewhere.Groups[0].InTree = "another tree"
	together := groupsOf(2, "VCPU")
	together.Groups[0].Resources["VCPU"], together.Groups[1].Resources["VCPU"] = 5, 5
	for name, tc := range map[string]struct {
		query inventory.CandidateQuery
		tree  *inventory.Tree
		want  string
	}{
		"root_required": {root, host("h", 0, []string{"T"}, nil), "root_required"},
		"required":      {spread("T", "U"), host("h", 0, nil, nil), "required"},
		"in_tree":       {elsewhere, host("h", 0, nil, nil), "groups"},
		"isolation":     {isolated, host("h", 0, nil, nil), "group_policy"},
		"same_subtree":  {cards, wideTree(2, 1), "same_subtree"},
		"together":      {together, host("h", 0, nil, nil), "together"},
		"none":          {spread("T"), host("h", 0, []string{"T"}, nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := map[string]int{}
			if tc.want != "" {
				want[tc.want] = 1
			}
			if d := cmp.Diff(want, removedTrees(explain(tc.query, deployment{trees: []*inventory.Tree{tc.tree}}))); d != "" {
				t.Errorf("trees that the filters on whole trees remove (-want +got):\n%s", d)
			}
		})
	}
}
