package inventory

import "slices"

// walk goes through the candidates of one tree, choice by choice, and can stop anywhere. Whatever it has chosen
// is noted in the providers and their rooms only while it has its turn.
type walk struct {
	choices []choice
	picks   []int // options; those above depth are chosen, and that at depth if here
	depth   int
	here    bool
	spread  int // the last choice for the group without a suffix, -1 for none
}

// choice is where a provider is chosen for a slot.
type choice struct {
	slot    int
	options []option
	rooms   []*Room // of all options
}

// option is a provider that suits a slot. Its room for each of the slot's needs is among the choice's.
type option struct {
	node *Node
	from int32
}

// roomsOf are the rooms of an option.
func (c *choice) roomsOf(o option, s *slot) []*Room { return c.rooms[o.from:][:len(s.needs)] }

// outcome is how a walk came to a halt.
type outcome int

const (
	arrived     outcome = iota // at a candidate
	exhausted                  // there are no more
	interrupted                // so many steps are used up
)

// next walks on to the next candidate until so many steps are left.
func (s *Search) next(w *walk, until int) outcome {
	for {
		if w.here {
			s.drop(w, w.depth)
			w.here = false
		}
		if s.steps <= until {
			return interrupted
		}
		s.steps--
		w.picks[w.depth]++
		switch {
		case w.picks[w.depth] == len(w.choices[w.depth].options) && w.depth == 0:
			return exhausted
		case w.picks[w.depth] == len(w.choices[w.depth].options):
			w.depth--
			w.here = true
		case !s.choose(w):
		case w.depth == len(w.choices)-1:
			w.here = true
			return arrived
		default:
			w.depth++
			w.picks[w.depth] = -1
		}
	}
}

// choose takes the option at hand, unless it does not go with those that are taken.
func (s *Search) choose(w *walk) bool {
	c := &w.choices[w.depth]
	sl, o := &s.slots[c.slot], c.options[w.picks[w.depth]]
	if s.query.Isolate && !sl.spread && o.node.alone > 0 || s.query.Flat && o.node.Tree.held > o.node.held {
		return false
	}
	for i, room := range c.roomsOf(o, sl) {
		if !room.free(sl.needs[i].Amount) {
			return false
		}
	}
	s.note(w, w.depth, 1)
	if w.depth == w.spread && !s.covered() || !s.related(w, sl) {
		s.drop(w, w.depth)
		return false
	}
	return true
}

// note adds what is chosen at a depth to what the providers remember, or takes it back.
func (s *Search) note(w *walk, depth, sign int) {
	c := &w.choices[depth]
	sl, o := &s.slots[c.slot], c.options[w.picks[depth]]
	for i, room := range c.roomsOf(o, sl) {
		room.taken += int64(sign) * sl.needs[i].Amount
	}
	o.node.held += sign
	o.node.Tree.held += sign
	if !sl.spread {
		o.node.alone += sign
	}
	if s.chosen[c.slot] = o.node; sign < 0 {
		s.chosen[c.slot] = nil
	}
}

func (s *Search) drop(w *walk, depth int) { s.note(w, depth, -1) }

// held is how many of the walk's choices are made.
func (w *walk) held() int {
	if w.here {
		return w.depth + 1
	}
	return w.depth
}

// last tells whether nothing comes after the candidate at which the walk stands.
func (w *walk) last() bool {
	for depth := range w.choices {
		if w.picks[depth] < len(w.choices[depth].options)-1 {
			return false
		}
	}
	return true
}

// resume notes everything that a walk has chosen, at the beginning of its turn.
func (s *Search) resume(w *walk) {
	s.steps -= w.held()
	for depth := range w.held() {
		s.note(w, depth, 1)
	}
}

// suspend takes it back, at the end.
func (s *Search) suspend(w *walk) {
	for depth := range w.held() {
		s.drop(w, depth)
	}
}

// covered tells whether the providers that are chosen for the group without a suffix have, together, the traits
// that it requires. Providers that contribute nothing do not count.
func (s *Search) covered() bool {
	for _, alternatives := range s.spread.Required {
		s.steps--
		if !s.chosenHas(alternatives) {
			return false
		}
	}
	return true
}

func (s *Search) chosenHas(alternatives []string) bool {
	for i := range s.slots {
		if s.slots[i].spread && overlap(alternatives, s.chosen[i].Traits) {
			return true
		}
	}
	return false
}

// related tells whether the subtrees that a slot belongs to can still have somebody at their top.
func (s *Search) related(w *walk, sl *slot) bool {
	for _, i := range sl.subtrees {
		if s.steps -= len(s.subtrees[i]); !s.topped(w, s.subtrees[i]) {
			return false
		}
	}
	return true
}

func (s *Search) topped(w *walk, members []int) bool {
	var top *Node
	for _, i := range members {
		if n := s.chosen[i]; n != nil && (top == nil || n.over(top)) {
			top = n
		}
	}
	if s.overAll(top, members) {
		return true
	}
	for depth := w.depth + 1; depth < len(w.choices); depth++ { // somebody to come may be above
		c := &w.choices[depth]
		if s.steps -= len(members); !slices.Contains(members, c.slot) {
			continue
		}
		for _, o := range c.options {
			if s.steps--; o.node.over(top) && s.overAll(o.node, members) {
				return true
			}
		}
	}
	return false
}

func (s *Search) overAll(top *Node, members []int) bool {
	for _, i := range members {
		if n := s.chosen[i]; n != nil && !top.over(n) {
			return false
		}
	}
	return true
}
