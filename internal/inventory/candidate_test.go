package inventory_test

import (
	"fmt"
	"testing"

	"berth/internal/inventory"
)

// wide is a host with so many cards below it, each with so many functions, every one that divides odd with a trait.
func wide(cards int, functions int64) *inventory.Tree {
	root := &inventory.Node{UUID: "host", Rooms: []*inventory.Room{{Class: "VCPU", Inventory: inventory.Of(1000)}}}
	nodes := []*inventory.Node{root}
	for i := range cards {
		nodes = append(nodes, &inventory.Node{ID: int64(i + 1), UUID: fmt.Sprint("card", i), Parent: root,
			Rooms: []*inventory.Room{{Class: "VGPU", Inventory: inventory.Of(functions)}}})
	}
	return inventory.NewTree(nodes)
}

// asking is a query for so many groups of one class.
func asking(groups int, class string) (q inventory.CandidateQuery) {
	for i := range groups {
		q.Groups = append(q.Groups, inventory.Group{Suffix: fmt.Sprint(i), Resources: map[string]int64{class: 1}})
	}
	return q
}

// within runs a search to its end and insists on its bounds.
func within(t *testing.T, q inventory.CandidateQuery, trees ...*inventory.Tree) *inventory.Found {
	t.Helper()
	q.Bounds.Choices, q.Bounds.Steps = 10_000, 100_000
	s := inventory.NewSearch(q)
	for _, tree := range trees {
		s.Visit(tree)
	}
	for s.Resume() {
	}
	found, choices := s.Found(), 0
	for _, c := range found.Candidates {
		choices += len(c)
	}
	// One step may cost as much as the options that it looks at.
	if over := -s.Steps(); choices > q.Bounds.Choices || over > 10_000 {
		t.Errorf("%d choices, %d steps too many", choices, over)
	}
	return found
}

// These queries have more combinations than there are atoms.
func TestHostileQueriesEndWithinTheirBounds(t *testing.T) {
	t.Parallel()
	related := asking(40, "VGPU")
	related.Subtrees = [][]string{{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}}
	traits := inventory.CandidateQuery{Groups: []inventory.Group{{Resources: map[string]int64{"VGPU": 1, "VCPU": 1},
		Traits: inventory.Rule{Required: [][]string{{"CUSTOM_NOWHERE"}}}}}}
	isolated := asking(40, "VGPU")
	isolated.Isolate = true
	isolated.Groups[39].Resources["VCPU"] = 1 // which no card has: no candidate
	crowded := asking(300, "VGPU")
	deep := asking(40, "VGPU")
	deep.Bounds.DepthFirst = true

	for name, tc := range map[string]struct {
		query inventory.CandidateQuery
		tree  *inventory.Tree
		some  bool
	}{
		"many groups, many cards":            {asking(40, "VGPU"), wide(1000, 4), true},
		"depth first":                        {deep, wide(1000, 4), true},
		"more groups than functions":         {crowded, wide(299, 1), false},
		"groups that nobody stands above":    {related, wide(200, 3), false},
		"a trait that nobody has":            {traits, wide(5000, 4), false},
		"a group that nobody serves":         {isolated, wide(1000, 4), false},
		"groups that must share their cards": {asking(100, "VGPU"), wide(3, 40), true},
	} {
		if found := within(t, tc.query, tc.tree); (len(found.Candidates) > 0) != tc.some {
			t.Errorf("%s: %d candidates", name, len(found.Candidates))
		}
	}
}

// A tree in which the search does not get anywhere must not keep it from looking into the next one.
func TestHopelessTreesDoNotStarveTheOthers(t *testing.T) {
	t.Parallel()
	q := asking(21, "VGPU")
	for _, g := range q.Groups {
		g.Resources["VGPU"] = 2
	}
	hopeless := func() *inventory.Tree { return wide(20, 3) } // enough in all, but one card too few
	var trees []*inventory.Tree
	for range 50 {
		trees = append(trees, hopeless())
	}
	trees = append(trees, wide(1, 42))
	for _, depthFirst := range []bool{false, true} {
		q.Bounds.DepthFirst = depthFirst
		if found := within(t, q, trees...); len(found.Candidates) != 1 {
			t.Errorf("depth first %v: %d candidates", depthFirst, len(found.Candidates))
		}
		trees = []*inventory.Tree{hopeless(), wide(1, 42)}
	}
}

// Of trees with many candidates each gives one before any gives the next, unless depth comes first.
func TestLimitIsSpreadOverTheTrees(t *testing.T) {
	t.Parallel()
	for depthFirst, want := range map[bool]int{false: 4, true: 1} {
		q := asking(1, "VGPU")
		q.Bounds = inventory.Bounds{Candidates: 4, DepthFirst: depthFirst}
		s := inventory.NewSearch(q)
		for range 4 {
			s.Visit(wide(10, 1))
		}
		for s.Resume() {
		}
		trees := map[*inventory.Tree]bool{}
		for _, c := range s.Found().Candidates {
			trees[c[0].Tree] = true
		}
		if len(trees) != want || len(s.Found().Candidates) != 4 {
			t.Errorf("depth first %v: %d candidates of %d trees", depthFirst, len(s.Found().Candidates), len(trees))
		}
	}
}

// A tree in which the search finds one candidate after the other is not stopped by one in which it finds none.
func TestHopelessTreesTakeLittleFromTheOthers(t *testing.T) {
	t.Parallel()
	q := asking(21, "VGPU")
	for _, g := range q.Groups {
		g.Resources["VGPU"] = 2
	}
	if found := within(t, q, wide(20, 3), wide(2, 42)); len(found.Candidates) < 100 {
		t.Errorf("%d candidates", len(found.Candidates))
	}
}

func TestNothingOfAWideTreeIsLost(t *testing.T) {
	t.Parallel()
	for name, depthFirst := range map[string]bool{"breadth first": false, "depth first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := asking(2, "VGPU")
			q.Bounds.DepthFirst = depthFirst
			if found := within(t, q, wide(60, 1)); len(found.Candidates) != 60*59 {
				t.Errorf("%d candidates", len(found.Candidates))
			}
		})
	}
}
