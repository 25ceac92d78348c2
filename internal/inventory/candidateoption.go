package inventory

import (
	"math"
	"math/rand/v2"
	"slices"
)

// begin makes the walk through a tree, nil if it cannot end anywhere.
func (s *Search) begin(t *Tree) *walk {
	visitors := s.visitors(t)
	w := s.spare
	if s.spare = nil; w == nil {
		w = &walk{choices: make([]choice, len(s.slots)), picks: make([]int, len(s.slots))}
	}
	for i := range s.slots {
		c := &w.choices[i]
		c.slot, c.options, c.rooms = i, c.options[:0], c.rooms[:0]
		for _, n := range t.Nodes {
			s.offer(c, n, t)
		}
		for _, n := range visitors {
			s.offer(c, n, t)
		}
		if len(c.options) == 0 {
			s.spare = w
			return nil
		}
	}
	if !s.enough(t, visitors) || !s.distinct(w) {
		s.spare = w
		return nil
	}
	if s.query.Bounds.Seed != 0 {
		s.shuffle(w, t)
	}
	slices.SortStableFunc(w.choices, func(a, b choice) int { return len(a.options) - len(b.options) })
	w.spread = -1
	for depth := range w.choices {
		if s.slots[w.choices[depth].slot].spread {
			w.spread = depth
		}
	}
	w.depth, w.here = 0, false
	w.picks[0] = -1
	return w
}

// offer makes a provider an option if it suits.
func (s *Search) offer(c *choice, n *Node, t *Tree) {
	sl := &s.slots[c.slot]
	from := len(c.rooms)
	for _, need := range sl.needs {
		room := n.Room(need.Class)
		if room == nil || !room.Offers(need.Amount) {
			c.rooms = c.rooms[:from]
			return
		}
		c.rooms = append(c.rooms, room)
	}
	if !suits(&s.query.Groups[sl.group], n, t) {
		c.rooms = c.rooms[:from]
		return
	}
	c.options = append(c.options, option{node: n, from: int32(from)})
}

// suits tells whether a provider may serve a group in a tree, its own or one that it serves as a visitor. The
// group without a suffix is served by several: an aggregate of the root is one of all the tree, and what traits
// they must have is asked of all together.
func suits(g *Group, n *Node, t *Tree) bool {
	switch {
	case g.Suffix != "":
		return (g.InTree == "" || g.InTree == n.Tree.Root.UUID) && g.Traits.Met(n.Traits) && g.Aggregates.Met(n.Aggregates)
	case g.InTree != "" && (n.Tree != t || g.InTree != t.Root.UUID), overlap(g.Traits.Forbidden, n.Traits):
		return false
	case n.Tree == t:
		return g.Aggregates.Met(n.Aggregates, t.Root.Aggregates)
	default:
		return g.Aggregates.Met(n.Aggregates) && !overlap(g.Aggregates.Forbidden, t.Root.Aggregates)
	}
}

// enough tells whether what several slots ask for is there at all.
func (s *Search) enough(t *Tree, visitors []*Node) bool {
	for class, amount := range s.contested {
		there := 0.0
		for _, nodes := range [2][]*Node{t.Nodes, visitors} {
			for _, n := range nodes {
				if r := n.Room(class); r != nil {
					there += max(0, min(math.Trunc(r.Inventory.Capacity())-float64(r.Used), float64(r.Inventory.MaxUnit)))
				}
			}
		}
		if there < amount {
			return false
		}
	}
	return true
}

// distinct tells whether there are as many providers as groups that must each have their own.
func (s *Search) distinct(w *walk) bool {
	if !s.query.Isolate {
		return true
	}
	s.asked++
	groups, nodes := 0, 0
	for i := range w.choices {
		if s.slots[w.choices[i].slot].spread {
			continue
		}
		groups++
		for _, o := range w.choices[i].options {
			if o.node.seen != s.asked {
				o.node.seen = s.asked
				nodes++
			}
		}
	}
	return nodes >= groups
}

// shuffle puts the options of a walk into an order that the seed and the tree decide.
func (s *Search) shuffle(w *walk, t *Tree) {
	r := rand.New(rand.NewPCG(s.query.Bounds.Seed, uint64(t.Root.ID)))
	for i := range w.choices {
		options := w.choices[i].options
		r.Shuffle(len(options), func(a, b int) { options[a], options[b] = options[b], options[a] })
	}
}
