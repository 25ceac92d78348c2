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

// bruteForce finds the allocation candidates by trying, for each tree, every assignment of providers to the
// parts of the query.
func bruteForce(q inventory.CandidateQuery, d deployment) []string {
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
			groups, allocated := map[*inventory.Group][]*inventory.Node{}, map[*inventory.Node]map[string]int64{}
			for j, p := range parts {
				groups[p.g] = append(groups[p.g], picks[j])
				for class, n := range p.needs {
					if allocated[picks[j]] == nil {
						allocated[picks[j]] = map[string]int64{}
					}
					allocated[picks[j]][class] += n
					if r := picks[j].InventoryOf(class); r == nil || n%r.Inventory.StepSize != 0 {
						return
					}
				}
			}
			if (combination{q, anchor, groups, allocated}).isCandidate() {
				found[format(groups, allocated)] = true
			}
		}
		try(0)
	}
	return slices.Sorted(maps.Keys(found))
}

// combination is a choice of providers for a query. isCandidate reports whether the choice is an allocation
// candidate of the tree `anchor`.
type combination struct {
	q         inventory.CandidateQuery
	anchor    *inventory.Tree
	groups    map[*inventory.Group][]*inventory.Node
	allocated map[*inventory.Node]map[string]int64
}

func traitsOf(n *inventory.Node) []string     { return n.Traits }
func aggregatesOf(n *inventory.Node) []string { return n.Aggregates }

// anyHas reports whether at least one of the providers has at least one of the given traits or aggregates.
func anyHas(nodes []*inventory.Node, names []string, of func(*inventory.Node) []string) bool {
	return slices.ContainsFunc(nodes, func(n *inventory.Node) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(of(n), name) })
	})
}

// meets reports whether the providers together meet a rule about traits or aggregates.
func meets(r inventory.Rule, nodes []*inventory.Node, of func(*inventory.Node) []string) bool {
	for _, alternatives := range r.Required {
		if !anyHas(nodes, alternatives, of) {
			return false
		}
	}
	return !anyHas(nodes, r.Forbidden, of)
}

// isCandidate reports whether the combination of providers is an allocation candidate.
func (c combination) isCandidate() bool {
	if !meets(c.q.RootTraits, []*inventory.Node{c.anchor.Root}, traitsOf) {
		return false
	}
	for g, nodes := range c.groups {
		if !meets(g.Traits, nodes, traitsOf) {
			return false
		}
		for _, n := range nodes {
			if !c.canServe(g, n) {
				return false
			}
		}
	}
	return c.fitsCapacity() && c.isIsolated() && c.hasSubtreeRoots()
}

// canServe reports whether a provider may serve a request group.
func (c combination) canServe(g *inventory.Group, n *inventory.Node) bool {
	own := n.Tree == c.anchor
	shares := slices.Contains(n.Traits, inventory.TraitSharesViaAggregate) &&
		anyHas(c.anchor.Nodes, n.Aggregates, aggregatesOf)
	if !own && !shares || g.InTree != "" && n.Tree.Root.UUID != g.InTree {
		return false
	}
	if g.Suffix != "" {
		return meets(g.Aggregates, []*inventory.Node{n}, aggregatesOf)
	}
	members := []*inventory.Node{n}
	if own {
		members = append(members, c.anchor.Root)
	}
	return (own || g.InTree == "") && meets(g.Aggregates, members, aggregatesOf) &&
		!anyHas([]*inventory.Node{c.anchor.Root}, g.Aggregates.Forbidden, aggregatesOf)
}

// fitsCapacity reports whether the allocated amounts fit the capacity and max_unit of every inventory.
func (c combination) fitsCapacity() bool {
	for n, classes := range c.allocated {
		for class, amount := range classes {
			if r := n.InventoryOf(class); float64(r.Used+amount) > r.Inventory.Capacity() ||
				amount > r.Inventory.MaxUnit {
				return false
			}
		}
	}
	return true
}

// isIsolated checks two conditions of the query. If the query has group_policy=isolate, the groups with a
// suffix must use different providers. If the query has SingleProviders, the combination must not use two
// different providers of the same tree.
func (c combination) isIsolated() bool {
	alone, byTree := map[*inventory.Node]int{}, map[*inventory.Tree]*inventory.Node{}
	for g, nodes := range c.groups {
		for _, n := range nodes {
			if g.Suffix != "" {
				alone[n]++
			}
			if other := byTree[n.Tree]; c.q.GroupPolicyIsolate && alone[n] > 1 ||
				c.q.SingleProviders && other != nil && other != n {
				return false
			}
			byTree[n.Tree] = n
		}
	}
	return true
}

// hasSubtreeRoots reports whether each same_subtree condition is met: among the providers of the groups that
// the condition names, one provider must be an ancestor of all the others or be the only provider.
func (c combination) hasSubtreeRoots() bool {
	for _, suffixes := range c.q.SameSubtrees {
		var members []*inventory.Node
		for g, nodes := range c.groups {
			if g.Suffix != "" && slices.Contains(suffixes, g.Suffix) {
				members = append(members, nodes...)
			}
		}
		above := func(top *inventory.Node) bool {
			return !slices.ContainsFunc(members, func(n *inventory.Node) bool {
				for ; n != nil && n != top; n = n.Parent {
				}
				return n == nil
			})
		}
		if len(members) > 0 && !slices.ContainsFunc(members, above) {
			return false
		}
	}
	return true
}

func format(
	groups map[*inventory.Group][]*inventory.Node,
	allocated map[*inventory.Node]map[string]int64,
) string {
	var parts []string
	for n, classes := range allocated {
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

// runSearch runs a complete candidate search and formats the candidates in the format of bruteForce.
func runSearch(q inventory.CandidateQuery, d deployment, shortTurns bool) []string {
	d = d.clone()
	s := inventory.NewSearch(q)
	if shortTurns {
		s.ShortenTurns()
	}
	s.AddSharingTrees(slices.DeleteFunc(slices.Clone(d.trees), func(t *inventory.Tree) bool {
		return !slices.ContainsFunc(t.Nodes, func(n *inventory.Node) bool {
			return slices.Contains(n.Traits, inventory.TraitSharesViaAggregate)
		})
	}))
	for _, t := range d.trees {
		s.SearchTree(t)
	}
	for s.Continue() {
	}
	found := s.Result()
	all := []string{}
	var portions []inventory.CandidateAllocation
	for _, c := range found.Candidates {
		allocated := map[*inventory.Node]map[string]int64{}
		portions = found.Allocations(c, portions)
		for _, p := range portions {
			allocated[p.Provider] = map[string]int64{}
			for _, r := range p.Resources {
				allocated[p.Provider][r.Class] = r.Amount
			}
		}
		groups := map[*inventory.Group][]*inventory.Node{}
		for suffix, nodes := range found.Mappings(c) {
			groups[&inventory.Group{Suffix: suffix}] = nodes
		}
		all = append(all, format(groups, allocated))
	}
	slices.Sort(all)
	return all
}

func TestSearch_FindsExactlyTheCandidatesOfBruteForce(t *testing.T) {
	t.Parallel()
	for range 4 { // four times rapid's default number of cases
		rapid.Check(t, checkSearch)
	}
}

func checkSearch(t *rapid.T) {
	d := drawDeployment(t)
	q := drawQuery(t, d)
	if len(q.Groups) == 0 {
		t.Skip("the query has no groups")
	}
	want := bruteForce(q, d)

	q.Limits.DepthFirst = rapid.Bool().Draw(t, "depth first")
	q.Limits.Seed = rapid.Uint64Range(0, 2).Draw(t, "seed")
	if d := cmp.Diff(append([]string{}, want...), runSearch(q, d, rapid.Bool().Draw(t, "short turns"))); d != "" {
		t.Fatalf(
			"candidates of the search differ from the candidates of brute force (-brute force +search):\n%s",
			d,
		)
	}
	q.Limits.Candidates = rapid.IntRange(1, 4).Draw(t, "limit")
	got := runSearch(q, d, false)
	if len(got) != min(len(want), q.Limits.Candidates) {
		t.Fatalf("search with a limit: found %d of %d candidates, want %d",
			len(got), len(want), min(len(want), q.Limits.Candidates))
	}
	for _, c := range got {
		if !slices.Contains(want, c) {
			t.Fatalf(
				"search with a limit: found the candidate %s, want only candidates that brute force also finds",
				c,
			)
		}
	}
}
