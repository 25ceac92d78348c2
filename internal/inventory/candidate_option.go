package inventory

import (
	"math"
	"math/rand/v2"
	"slices"
)

// newWalk returns the walk over the candidates of a tree, or nil if the tree obviously has no candidate.
func (s *Search) newWalk(t *Tree) *walk {
	sharing := s.sharingProviders(t)
	w := s.spare
	if s.spare = nil; w == nil {
		w = &walk{choices: make([]choice, len(s.slots)), picks: make([]int, len(s.slots))}
	}
	for i := range s.slots {
		c := &w.choices[i]
		c.slot, c.options, c.inventories = i, c.options[:0], c.inventories[:0]
		for _, n := range t.Nodes {
			s.addOption(c, n, t)
		}
		for _, n := range sharing {
			s.addOption(c, n, t)
		}
		if len(c.options) == 0 {
			s.spare = w
			return nil
		}
	}
	if !s.hasEnough(t, sharing) || !s.hasEnoughProviders(w) {
		s.spare = w
		return nil
	}
	if s.query.Limits.Seed != 0 {
		s.shuffleOptions(w, t)
	}
	slices.SortStableFunc(w.choices, func(a, b choice) int { return len(a.options) - len(b.options) })
	w.lastSpread = -1
	for depth := range w.choices {
		if s.slots[w.choices[depth].slot].isSpread {
			w.lastSpread = depth
		}
	}
	w.depth, w.isChosen = 0, false
	w.picks[0] = -1
	return w
}

// addOption adds a provider to the options of a choice if the provider is suitable and has enough free
// capacity.
func (s *Search) addOption(c *choice, n *Node, t *Tree) {
	sl := &s.slots[c.slot]
	from := len(c.inventories)
	for _, need := range sl.needs {
		r := n.InventoryOf(need.Class)
		if r == nil || !r.CanAllocate(need.Amount) {
			c.inventories = c.inventories[:from]
			return
		}
		c.inventories = append(c.inventories, r)
	}
	if !isSuitable(&s.query.Groups[sl.group], n, t) {
		c.inventories = c.inventories[:from]
		return
	}
	c.options = append(c.options, option{node: n, from: int32(from)})
}

// isSuitable reports whether a provider may serve a request group in a tree. isSuitable expects a provider
// that is in the tree or is a sharing provider that serves the tree. If the group has no suffix, an aggregate
// of the root provider counts as an aggregate of the whole tree. The required traits of this group are
// checked later, because all chosen providers together must have them.
func isSuitable(g *Group, n *Node, t *Tree) bool {
	switch {
	case g.Suffix != "":
		return (g.InTree == "" || g.InTree == n.Tree.Root.UUID) && g.Traits.MetBy(n.Traits) &&
			g.Aggregates.MetBy(n.Aggregates)
	case g.InTree != "" && (n.Tree != t || g.InTree != t.Root.UUID), overlap(g.Traits.Forbidden, n.Traits):
		return false
	case n.Tree == t:
		return g.Aggregates.MetBy(n.Aggregates, t.Root.Aggregates)
	default:
		return g.Aggregates.MetBy(n.Aggregates) && !overlap(g.Aggregates.Forbidden, t.Root.Aggregates)
	}
}

// hasEnough checks every resource class that several slots request, and reports whether the tree and its
// sharing providers together have enough of the class.
func (s *Search) hasEnough(t *Tree, sharing []*Node) bool {
	for class, amount := range s.contested {
		available := 0.0
		for _, nodes := range [2][]*Node{t.Nodes, sharing} {
			for _, n := range nodes {
				if r := n.InventoryOf(class); r != nil {
					available += max(
						0,
						min(math.Trunc(r.Inventory.Capacity())-float64(r.Used), float64(r.Inventory.MaxUnit)),
					)
				}
			}
		}
		if available < amount {
			return false
		}
	}
	return true
}

// hasEnoughProviders reports whether the number of suitable providers is at least the number of groups that
// need different providers (group_policy=isolate).
func (s *Search) hasEnoughProviders(w *walk) bool {
	if !s.query.GroupPolicyIsolate {
		return true
	}
	s.passes++
	groups, nodes := 0, 0
	for i := range w.choices {
		if s.slots[w.choices[i].slot].isSpread {
			continue
		}
		groups++
		for _, o := range w.choices[i].options {
			if o.node.visitedIn != s.passes {
				o.node.visitedIn = s.passes
				nodes++
			}
		}
	}
	return nodes >= groups
}

// shuffleOptions reorders the options of a walk within one tree; the order of the trees comes from the
// database. The order of the options depends only on the seed of the query and on the root provider of the
// tree.
func (s *Search) shuffleOptions(w *walk, t *Tree) {
	r := rand.New(rand.NewPCG(s.query.Limits.Seed, uint64(t.Root.ID)))
	for i := range w.choices {
		options := w.choices[i].options
		r.Shuffle(len(options), func(a, b int) { options[a], options[b] = options[b], options[a] })
	}
}
