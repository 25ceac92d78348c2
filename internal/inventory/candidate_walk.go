package inventory

import "slices"

// walk iterates over the candidates of one tree by backtracking, and can stop at any step. The nodes of the
// tree record which providers a walk has chosen, but only during the walk's turn; see resume and suspend.
type walk struct {
	choices []choice
	// chosen option by choice; valid for choices before depth, and for the choice at depth if isChosen
	picks      []int
	depth      int
	isChosen   bool
	lastSpread int // index of the last choice for the group without a suffix; -1: none
}

// choice is the choice of a provider for one slot.
type choice struct {
	slot        int
	options     []option
	inventories []*NodeInventory // inventories of all options
}

// option is a provider that is suitable for a slot. The inventories of an option start at the index `from` of
// the slice choice.inventories.
type option struct {
	node *Node
	from int32
}

// inventoriesOf returns the inventories of an option's provider that serve a slot: one inventory for each
// element of slot.needs, in the order of slot.needs.
func (c *choice) inventoriesOf(o option, s *slot) []*NodeInventory {
	return c.inventories[o.from:][:len(s.needs)]
}

// walkState says why a walk has stopped.
type walkState int

const (
	atCandidate walkState = iota // at a candidate
	exhausted                    // no more candidates
	interrupted                  // the steps of the walk's turn are used up
)

// advance continues the walk until the walk reaches its next candidate. If the search has at most minSteps
// steps left, advance stops before the walk has reached a candidate.
func (s *Search) advance(w *walk, minSteps int) walkState {
	for {
		if w.isChosen {
			s.undo(w, w.depth)
			w.isChosen = false
		}
		if s.steps <= minSteps {
			return interrupted
		}
		s.steps--
		w.picks[w.depth]++
		switch {
		case w.picks[w.depth] == len(w.choices[w.depth].options) && w.depth == 0:
			return exhausted
		case w.picks[w.depth] == len(w.choices[w.depth].options):
			w.depth--
			w.isChosen = true
		case !s.choose(w):
		case w.depth == len(w.choices)-1:
			w.isChosen = true
			return atCandidate
		default:
			w.depth++
			w.picks[w.depth] = -1
		}
	}
}

// choose selects the current option of the walk and returns true. If the current option conflicts with the
// options chosen before, choose returns false.
func (s *Search) choose(w *walk) bool {
	c := &w.choices[w.depth]
	sl, o := &s.slots[c.slot], c.options[w.picks[w.depth]]
	if s.query.GroupPolicyIsolate && !sl.isSpread && o.node.isolatedChoices > 0 ||
		s.query.SingleProviders && o.node.Tree.choices > o.node.choices {
		return false
	}
	for i, r := range c.inventoriesOf(o, sl) {
		if !r.canAdd(sl.needs[i].Amount) {
			return false
		}
	}
	s.record(w, w.depth, 1)
	if w.depth == w.lastSpread && !s.hasRequiredTraits() || !s.canSatisfySubtrees(w, sl) {
		s.undo(w, w.depth)
		return false
	}
	return true
}

// record adds the amounts of the option that the walk has chosen at the given depth to the option's provider
// if `sign` is 1, and subtracts these amounts if `sign` is -1.
func (s *Search) record(w *walk, depth, sign int) {
	c := &w.choices[depth]
	sl, o := &s.slots[c.slot], c.options[w.picks[depth]]
	for i, r := range c.inventoriesOf(o, sl) {
		r.allocated += int64(sign) * sl.needs[i].Amount
	}
	o.node.choices += sign
	o.node.Tree.choices += sign
	if !sl.isSpread {
		o.node.isolatedChoices += sign
	}
	if s.chosen[c.slot] = o.node; sign < 0 {
		s.chosen[c.slot] = nil
	}
}

func (s *Search) undo(w *walk, depth int) { s.record(w, depth, -1) }

// chosenCount returns the number of choices for which the walk has currently chosen a provider.
func (w *walk) chosenCount() int {
	if w.isChosen {
		return w.depth + 1
	}
	return w.depth
}

// isLast reports whether the current combination is the last one, so that the walk has no further candidate.
func (w *walk) isLast() bool {
	for depth := range w.choices {
		if w.picks[depth] < len(w.choices[depth].options)-1 {
			return false
		}
	}
	return true
}

// resume records the chosen options of a walk in the nodes when the turn of this walk begins.
func (s *Search) resume(w *walk) {
	s.steps -= w.chosenCount()
	for depth := range w.chosenCount() {
		s.record(w, depth, 1)
	}
}

// suspend removes the chosen options of a walk from the nodes when the turn of this walk ends.
func (s *Search) suspend(w *walk) {
	for depth := range w.chosenCount() {
		s.undo(w, depth)
	}
}

// hasRequiredTraits reports whether the providers that are chosen for the group without a suffix together
// have all traits that this group requires.
func (s *Search) hasRequiredTraits() bool {
	for _, alternatives := range s.unsuffixedTraits.Required {
		s.steps--
		if !s.anyChosenHas(alternatives) {
			return false
		}
	}
	return true
}

func (s *Search) anyChosenHas(alternatives []string) bool {
	for i := range s.slots {
		if s.slots[i].isSpread && overlap(alternatives, s.chosen[i].Traits) {
			return true
		}
	}
	return false
}

// canSatisfySubtrees reports whether, for each same_subtree condition of the slot, the providers chosen so
// far meet the condition or a later choice can still meet it.
func (s *Search) canSatisfySubtrees(w *walk, sl *slot) bool {
	for _, i := range sl.subtrees {
		if s.steps -= len(s.subtrees[i]); !s.canHaveCommonAncestor(w, s.subtrees[i]) {
			return false
		}
	}
	return true
}

func (s *Search) canHaveCommonAncestor(w *walk, members []int) bool {
	var top *Node
	for _, i := range members {
		if n := s.chosen[i]; n != nil && (top == nil || n.isAncestorOf(top)) {
			top = n
		}
	}
	if s.isAncestorOfAll(top, members) {
		return true
	}
	for depth := w.depth + 1; depth < len(w.choices); depth++ { // a later choice may be the common ancestor
		c := &w.choices[depth]
		if s.steps -= len(members); !slices.Contains(members, c.slot) {
			continue
		}
		for _, o := range c.options {
			if s.steps--; o.node.isAncestorOf(top) && s.isAncestorOfAll(o.node, members) {
				return true
			}
		}
	}
	return false
}

func (s *Search) isAncestorOfAll(top *Node, members []int) bool {
	for _, i := range members {
		if n := s.chosen[i]; n != nil && !top.isAncestorOf(n) {
			return false
		}
	}
	return true
}
