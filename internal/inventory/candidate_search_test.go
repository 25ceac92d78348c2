package inventory_test

import (
	"fmt"
	"testing"

	"berth/internal/inventory"
)

// wideTree returns the provider tree of a host with the given number of child providers ("cards"). Each of
// the child providers has `functions` units of VGPU.
func wideTree(cards int, functions int64) *inventory.Tree {
	root := &inventory.Node{
		UUID:        "host",
		Inventories: []*inventory.NodeInventory{{Class: "VCPU", Inventory: inventory.NewInventory(1000)}},
	}
	nodes := []*inventory.Node{root}
	for i := range cards {
		nodes = append(nodes, &inventory.Node{
			ID:     int64(i + 1),
			UUID:   fmt.Sprint("card", i),
			Parent: root,
			Inventories: []*inventory.NodeInventory{
				{Class: "VGPU", Inventory: inventory.NewInventory(functions)},
			},
		})
	}
	return inventory.NewTree(nodes)
}

// groupsOf returns a query with the given number of groups, each of which requests one unit of the resource
// class.
func groupsOf(groups int, class string) (q inventory.CandidateQuery) {
	for i := range groups {
		q.Groups = append(q.Groups,
			inventory.Group{Suffix: fmt.Sprint(i), Resources: map[string]int64{class: 1}})
	}
	return q
}

// runWithinLimits runs a search until its end and checks that the search respects its limits.
func runWithinLimits(
	t *testing.T,
	q inventory.CandidateQuery,
	trees ...*inventory.Tree,
) *inventory.SearchResult {
	t.Helper()
	q.Limits.Choices, q.Limits.Steps = 10_000, 100_000
	s := inventory.NewSearch(q)
	for _, tree := range trees {
		s.SearchTree(tree)
	}
	for s.Continue() {
	}
	found, choices := s.Result(), 0
	for _, c := range found.Candidates {
		choices += len(c)
	}
	// The search checks Limits.Steps before each choice of a provider. One choice can take several steps, so
	// the search may exceed the limit.
	if over := -s.Steps(); choices > q.Limits.Choices || over > 10_000 {
		t.Errorf(
			"search with limits: made %d choices (limit %d) and %d steps more than the limit of steps; want both within the limits",
			choices, q.Limits.Choices, over,
		)
	}
	return found
}

// Each query in this test has more combinations of providers than the limits allow the search to try.
func TestSearch_ExpensiveQueriesRespectTheLimits(t *testing.T) {
	t.Parallel()
	related := groupsOf(40, "VGPU")
	related.SameSubtrees = [][]string{{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}}
	traits := inventory.CandidateQuery{
		Groups: []inventory.Group{{Resources: map[string]int64{"VGPU": 1, "VCPU": 1},
			Traits: inventory.Rule{Required: [][]string{{"CUSTOM_MISSING"}}}}},
	}
	isolated := groupsOf(40, "VGPU")
	isolated.GroupPolicyIsolate = true
	isolated.Groups[39].Resources["VCPU"] = 1 // no card has VCPU: no candidate
	crowded := groupsOf(300, "VGPU")
	deep := groupsOf(40, "VGPU")
	deep.Limits.DepthFirst = true

	for name, tc := range map[string]struct {
		query         inventory.CandidateQuery
		tree          *inventory.Tree
		hasCandidates bool
	}{
		"many groups, many cards":            {groupsOf(40, "VGPU"), wideTree(1000, 4), true},
		"depth first":                        {deep, wideTree(1000, 4), true},
		"more groups than cards":             {crowded, wideTree(299, 1), false},
		"groups without a common ancestor":   {related, wideTree(200, 3), false},
		"a trait that no provider has":       {traits, wideTree(5000, 4), false},
		"a group that no provider can serve": {isolated, wideTree(1000, 4), false},
		"groups that must share their cards": {groupsOf(100, "VGPU"), wideTree(3, 40), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := runWithinLimits(t, tc.query, tc.tree); (len(found.Candidates) > 0) != tc.hasCandidates {
				t.Errorf("expensive query: found %d candidates, want some (true) or none (false): %t",
					len(found.Candidates), tc.hasCandidates)
			}
		})
	}
}

func TestSearch_TreesWithoutCandidatesDoNotStarveOthers(t *testing.T) {
	t.Parallel()
	q := groupsOf(21, "VGPU")
	for _, g := range q.Groups {
		g.Resources["VGPU"] = 2
	}
	// enough units in total, but one card too few
	impossible := func() *inventory.Tree { return wideTree(20, 3) }
	var trees []*inventory.Tree
	for range 50 {
		trees = append(trees, impossible())
	}
	trees = append(trees, wideTree(1, 42))
	for _, depthFirst := range []bool{false, true} {
		q.Limits.DepthFirst = depthFirst
		if found := runWithinLimits(t, q, trees...); len(found.Candidates) != 1 {
			t.Errorf(
				"search (depth first: %v) of impossible trees and one possible tree: found %d candidates, want 1",
				depthFirst,
				len(found.Candidates),
			)
		}
		trees = []*inventory.Tree{impossible(), wideTree(1, 42)}
	}
}

// Unless the search is depth first, each tree contributes one candidate before any tree contributes a second
// candidate.
func TestSearch_LimitIsSpreadOverTrees(t *testing.T) {
	t.Parallel()
	for depthFirst, want := range map[bool]int{false: 4, true: 1} {
		q := groupsOf(1, "VGPU")
		q.Limits = inventory.SearchLimits{Candidates: 4, DepthFirst: depthFirst}
		s := inventory.NewSearch(q)
		for range 4 {
			s.SearchTree(wideTree(10, 1))
		}
		for s.Continue() {
		}
		trees := map[*inventory.Tree]bool{}
		for _, c := range s.Result().Candidates {
			trees[c[0].Tree] = true
		}
		if len(trees) != want || len(s.Result().Candidates) != 4 {
			t.Errorf(
				"search (depth first: %v) with a limit of 4 candidates: found %d in %d trees, want 4 in %d trees",
				depthFirst, len(s.Result().Candidates), len(trees), want,
			)
		}
	}
}

func TestSearch_TreesWithoutCandidatesTakeFewSteps(t *testing.T) {
	t.Parallel()
	q := groupsOf(21, "VGPU")
	for _, g := range q.Groups {
		g.Resources["VGPU"] = 2
	}
	if found := runWithinLimits(t, q, wideTree(20, 3), wideTree(2, 42)); len(found.Candidates) < 100 {
		t.Errorf(
			"search of one tree without and one tree with candidates: found %d candidates, want at least 100",
			len(found.Candidates),
		)
	}
}

func TestSearch_FindsAllCandidatesOfAWideTree(t *testing.T) {
	t.Parallel()
	for name, depthFirst := range map[string]bool{"breadth first": false, "depth first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := groupsOf(2, "VGPU")
			q.Limits.DepthFirst = depthFirst
			if found := runWithinLimits(t, q, wideTree(60, 1)); len(found.Candidates) != 60*59 {
				t.Errorf(
					"search of a tree with 60 cards for two units on different cards: found %d candidates, want %d",
					len(found.Candidates),
					60*59,
				)
			}
		})
	}
}
