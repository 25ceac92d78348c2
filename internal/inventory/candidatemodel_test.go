package inventory_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/internal/inventory"
)

// deployment is a few small trees and how many nodes they have.
type deployment struct {
	trees []*inventory.Tree
	nodes []*inventory.Node
}

var (
	someClasses    = []string{"MEMORY_MB", "VCPU"}
	someTraits     = []string{"T0", "T1", "T2"}
	someAggregates = []string{"A0", "A1", "A2"}
)

func subset(t *rapid.T, of []string, label string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, len(of), rapid.ID[string]).Draw(t, label)
}

// few picks rarely, so that not everything is ruled out.
func few(t *rapid.T, of []string, label string) []string {
	if rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, "no "+label) {
		return nil
	}
	return subset(t, of, label)
}

func drawRule(t *rapid.T, of []string, label string) (r inventory.Rule) {
	if alternatives := few(t, of, label); len(alternatives) > 0 {
		r.Required = append(r.Required, alternatives)
	}
	if one := few(t, of, label+" and"); len(one) > 0 {
		r.Required = append(r.Required, one[:1])
	}
	if one := few(t, of, label+" not"); len(one) > 0 {
		r.Forbidden = one[:1]
	}
	return r
}

func drawDeployment(t *rapid.T) (d deployment) {
	for i := range rapid.SampledFrom([]int{2, 3, 1}).Draw(t, "trees") {
		var nodes []*inventory.Node
		for j := range rapid.SampledFrom([]int{2, 3, 1}).Draw(t, "nodes") {
			n := &inventory.Node{ID: int64(100*i + j), UUID: fmt.Sprintf("%d%d", i, j),
				Traits: subset(t, someTraits, "traits"), Aggregates: subset(t, someAggregates, "aggregates")}
			if j > 0 {
				n.Parent = nodes[rapid.IntRange(0, j-1).Draw(t, "parent")]
			}
			if rapid.IntRange(0, 3).Draw(t, "shares") == 0 {
				n.Traits = append(n.Traits, inventory.Sharing)
			}
			for _, class := range someClasses {
				total := rapid.SampledFrom([]int64{4, 3, 2, 1, 0}).Draw(t, "total")
				if total == 0 {
					continue
				}
				r := &inventory.Room{Class: class, Inventory: inventory.Of(total), Used: rapid.Int64Range(0, 2).Draw(t, "used")}
				r.Inventory.MaxUnit = rapid.SampledFrom([]int64{4, 3, 2, 1}).Draw(t, "max")
				r.Inventory.StepSize = rapid.SampledFrom([]int64{1, 1, 2}).Draw(t, "step")
				r.Inventory.AllocationRatio = rapid.SampledFrom([]float64{1, 1.5, 0.5}).Draw(t, "ratio")
				n.Rooms = append(n.Rooms, r)
			}
			nodes = append(nodes, n)
		}
		d.nodes = append(d.nodes, nodes...)
		d.trees = append(d.trees, inventory.NewTree(rapid.Permutation(nodes).Draw(t, "order")))
	}
	return d
}

func drawQuery(t *rapid.T, d deployment) (q inventory.CandidateQuery) {
	q = inventory.CandidateQuery{Isolate: rapid.Bool().Draw(t, "isolate"),
		Flat: rapid.IntRange(0, 3).Draw(t, "flat") == 0}
	if rapid.IntRange(0, 3).Draw(t, "of the root") == 0 {
		q.Root = drawRule(t, someTraits, "root")
	}
	for i, suffix := range subset(t, []string{"", "1", "2", "3"}, "groups") {
		g := inventory.Group{Suffix: suffix, Resources: map[string]int64{}, Traits: drawRule(t, someTraits, "required"),
			Aggregates: drawRule(t, someAggregates, "member_of")}
		classes := subset(t, someClasses, "asked")
		if suffix == "" && len(classes) == 0 || i == 0 {
			classes = append(classes[:0:0], someClasses[rapid.IntRange(0, 1).Draw(t, "class"):]...)
		}
		for _, class := range classes {
			g.Resources[class] = rapid.SampledFrom([]int64{1, 2}).Draw(t, "amount")
		}
		if rapid.IntRange(0, 5).Draw(t, "in_tree") == 0 {
			g.InTree = rapid.SampledFrom(d.trees).Draw(t, "tree").Root.UUID
		}
		q.Groups = append(q.Groups, g)
	}
	if rapid.Bool().Draw(t, "subtree") {
		q.Subtrees = [][]string{[]string{"1", "2", "3"}[:rapid.SampledFrom([]int{3, 2}).Draw(t, "members")]}
	}
	return q
}

// every finds the candidates in the simplest way: it tries every provider for everything under every root.
func every(q inventory.CandidateQuery, d deployment) []string {
	type part struct {
		g     *inventory.Group
		needs map[string]int64
	}
	var parts []part
	for i := range q.Groups {
		g := &q.Groups[i]
		if g.Suffix != "" {
			parts = append(parts, part{g, g.Resources})
			continue
		}
		for class, n := range g.Resources {
			parts = append(parts, part{g, map[string]int64{class: n}})
		}
	}
	found := map[string]bool{}
	for _, anchor := range d.trees {
		picks := make([]*inventory.Node, len(parts))
		var try func(int)
		try = func(i int) {
			if i < len(parts) {
				for _, n := range d.nodes {
					picks[i] = n
					try(i + 1)
				}
				return
			}
			groups, takes := map[*inventory.Group][]*inventory.Node{}, map[*inventory.Node]map[string]int64{}
			for j, p := range parts {
				groups[p.g] = append(groups[p.g], picks[j])
				for class, n := range p.needs {
					if takes[picks[j]] == nil {
						takes[picks[j]] = map[string]int64{}
					}
					takes[picks[j]][class] += n
					if r := picks[j].Room(class); r == nil || n%r.Inventory.StepSize != 0 {
						return
					}
				}
			}
			if right(q, anchor, groups, takes) {
				found[written(groups, takes)] = true
			}
		}
		try(0)
	}
	return slices.Sorted(maps.Keys(found))
}

// right tells whether a choice of providers is a candidate.
func right(q inventory.CandidateQuery, anchor *inventory.Tree, groups map[*inventory.Group][]*inventory.Node,
	takes map[*inventory.Node]map[string]int64) bool {
	all := func(nodes []*inventory.Node, holds func(*inventory.Node) bool) bool {
		return !slices.ContainsFunc(nodes, func(n *inventory.Node) bool { return !holds(n) })
	}
	any := func(nodes []*inventory.Node, names []string, of func(*inventory.Node) []string) bool {
		return slices.ContainsFunc(nodes, func(n *inventory.Node) bool {
			return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(of(n), name) })
		})
	}
	traits := func(n *inventory.Node) []string { return n.Traits }
	aggregates := func(n *inventory.Node) []string { return n.Aggregates }
	meets := func(r inventory.Rule, nodes []*inventory.Node, of func(*inventory.Node) []string) bool {
		for _, alternatives := range r.Required {
			if !any(nodes, alternatives, of) {
				return false
			}
		}
		return !any(nodes, r.Forbidden, of)
	}
	serves := func(n *inventory.Node) bool {
		return n.Tree == anchor || slices.Contains(n.Traits, inventory.Sharing) && any(anchor.Nodes, n.Aggregates, aggregates)
	}
	if !meets(q.Root, []*inventory.Node{anchor.Root}, traits) {
		return false
	}
	alone, byRoot := map[*inventory.Node]int{}, map[*inventory.Node]map[*inventory.Node]bool{}
	for g, nodes := range groups {
		if !all(nodes, serves) || !meets(g.Traits, nodes, traits) {
			return false
		}
		for _, n := range nodes {
			if g.Suffix != "" {
				if alone[n]++; alone[n] > 1 && q.Isolate {
					return false
				}
				if !meets(g.Aggregates, nodes, aggregates) || g.InTree != "" && n.Tree.Root.UUID != g.InTree {
					return false
				}
				continue
			}
			own := []*inventory.Node{n}
			if g.InTree != "" && (n.Tree.Root.UUID != g.InTree || n.Tree != anchor) || any([]*inventory.Node{n, anchor.Root}, g.Aggregates.Forbidden, aggregates) {
				return false
			}
			if n.Tree == anchor {
				own = append(own, anchor.Root)
			}
			if !meets(g.Aggregates, own, aggregates) {
				return false
			}
		}
	}
	for n, classes := range takes {
		root := n.Tree.Root
		if byRoot[root] == nil {
			byRoot[root] = map[*inventory.Node]bool{}
		}
		byRoot[root][n] = true
		for class, amount := range classes {
			r := n.Room(class)
			if float64(r.Used+amount) > r.Inventory.Capacity() || amount > r.Inventory.MaxUnit {
				return false
			}
		}
	}
	for g, nodes := range groups { // those without resources use a provider too
		if len(g.Resources) == 0 {
			if byRoot[nodes[0].Tree.Root] == nil {
				byRoot[nodes[0].Tree.Root] = map[*inventory.Node]bool{}
			}
			byRoot[nodes[0].Tree.Root][nodes[0]] = true
		}
	}
	for _, used := range byRoot {
		if q.Flat && len(used) > 1 {
			return false
		}
	}
	for _, suffixes := range q.Subtrees {
		var members []*inventory.Node
		for g, nodes := range groups {
			if g.Suffix != "" && slices.Contains(suffixes, g.Suffix) {
				members = append(members, nodes...)
			}
		}
		above := func(top *inventory.Node) bool {
			return all(members, func(n *inventory.Node) bool {
				for ; n != nil; n = n.Parent {
					if n == top {
						return true
					}
				}
				return false
			})
		}
		if len(members) > 0 && !slices.ContainsFunc(members, above) {
			return false
		}
	}
	return true
}

func written(groups map[*inventory.Group][]*inventory.Node, takes map[*inventory.Node]map[string]int64) string {
	var parts []string
	for n, classes := range takes {
		for class, amount := range classes {
			parts = append(parts, fmt.Sprintf("%s:%s=%d", n.UUID, class, amount))
		}
	}
	for g, nodes := range groups {
		var ids []string
		for _, n := range nodes {
			ids = append(ids, n.UUID)
		}
		slices.Sort(ids)
		parts = append(parts, fmt.Sprintf("%q>%s", g.Suffix, strings.Join(slices.Compact(ids), "+")))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// copied makes the same deployment again: a search writes into its trees.
func (d deployment) copied() (c deployment) {
	for _, t := range d.trees {
		twins := map[*inventory.Node]*inventory.Node{}
		var nodes []*inventory.Node
		for _, n := range t.Nodes {
			twins[n] = &inventory.Node{ID: n.ID, UUID: n.UUID, Traits: n.Traits, Aggregates: n.Aggregates}
			for _, r := range n.Rooms {
				twins[n].Rooms = append(twins[n].Rooms, &inventory.Room{Class: r.Class, Inventory: r.Inventory, Used: r.Used})
			}
			nodes = append(nodes, twins[n])
		}
		for _, n := range t.Nodes {
			twins[n].Parent = twins[n.Parent]
		}
		c.trees = append(c.trees, inventory.NewTree(nodes))
	}
	return c
}

// search runs a whole search and writes what it found in the same way.
func search(q inventory.CandidateQuery, d deployment, hurry bool) []string {
	d = d.copied()
	s := inventory.NewSearch(q)
	if hurry {
		s.Hurry()
	}
	s.Share(slices.DeleteFunc(slices.Clone(d.trees), func(t *inventory.Tree) bool {
		return !slices.ContainsFunc(t.Nodes, func(n *inventory.Node) bool { return slices.Contains(n.Traits, inventory.Sharing) })
	}))
	for _, t := range d.trees {
		s.Visit(t)
	}
	for s.Resume() {
	}
	found := s.Found()
	all := []string{}
	var portions []inventory.Portion
	for _, c := range found.Candidates {
		takes := map[*inventory.Node]map[string]int64{}
		portions = found.Portions(c, portions)
		for _, p := range portions {
			takes[p.Provider] = map[string]int64{}
			for _, r := range p.Resources {
				takes[p.Provider][r.Class] = r.Amount
			}
		}
		groups := map[*inventory.Group][]*inventory.Node{}
		for suffix, nodes := range found.Mappings(c) {
			groups[&inventory.Group{Suffix: suffix}] = nodes
		}
		all = append(all, written(groups, takes))
	}
	slices.Sort(all)
	return all
}

func TestSearchFindsExactlyTheCandidates(t *testing.T) {
	t.Parallel()
	for range 4 { // times the usual number of cases
		rapid.Check(t, checkSearch)
	}
}

func checkSearch(t *rapid.T) {
	d := drawDeployment(t)
	q := drawQuery(t, d)
	if len(q.Groups) == 0 {
		t.Skip("nothing is asked for")
	}
	want := every(q, d)

	q.Bounds.DepthFirst = rapid.Bool().Draw(t, "depth first")
	q.Bounds.Seed = rapid.Uint64Range(0, 2).Draw(t, "seed")
	if d := cmp.Diff(append([]string{}, want...), search(q, d, rapid.Bool().Draw(t, "hurry"))); d != "" {
		t.Fatal(d)
	}
	q.Bounds.Candidates = rapid.IntRange(1, 4).Draw(t, "limit")
	got := search(q, d, false)
	if len(got) != min(len(want), q.Bounds.Candidates) {
		t.Fatalf("%d of %d, at most %d", len(got), len(want), q.Bounds.Candidates)
	}
	for _, c := range got {
		if !slices.Contains(want, c) {
			t.Fatal(c)
		}
	}
}
