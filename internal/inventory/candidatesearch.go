package inventory

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// Bounds keep a search from taking more time and memory than its answer is worth. When one is reached, what was
// found until then is the answer. Zero is the default of each.
type Bounds struct {
	Candidates int    // found at most
	Choices    int    // of a provider in all candidates together: what the answer's size grows with
	Steps      int    // providers tried
	DepthFirst bool   // every candidate of a tree before the next tree, instead of one of each in turn
	Seed       uint64 // of another order of the providers; zero keeps theirs
}

// The defaults of the bounds. A candidate of three classes is three choices and costs some ten steps.
const (
	maxChoices = 1 << 18
	maxSteps   = 1 << 22
)

// The steps that a tree may take at its first turn. Those who need more wait until all have had theirs. Turns get
// twice as long whenever nothing was found in any tree: one that leads nowhere takes little from those that do.
const (
	firstTurn     = 1 << 8
	firstLongTurn = 1 << 16 // depth first
)

// slot is what a provider is chosen for: one class of the group without a suffix, or a whole other group.
type slot struct {
	group    int
	suffix   string
	spread   bool // of the group without a suffix
	needs    []Amount
	subtrees []int // those that its group belongs to
}

// Search looks for candidates in one tree after the other. It never holds more than one walk per tree that is
// not finished, and ends within its bounds. Share, then Visit every tree, then Resume until it is false; at any
// time Full tells that there is no need to go on.
type Search struct {
	query     CandidateQuery
	slots     []slot
	subtrees  [][]int            // slots
	spread    Rule               // of the traits of the group without a suffix
	contested map[string]float64 // what several slots ask for, together
	serving   map[string][]*Node // providers that share, by aggregate
	sharing   int
	chosen    []*Node // by the walk at hand, by slot

	found   []Candidate
	known   map[string]bool // candidates that several trees would find
	waiting []*walk
	turn    int // steps of the next one
	round   int // walks that still have to come until all have had it
	idle    int // found when that began
	steps   int // that are left
	choices int // that are left
	limit   int
	asked   int // questions that nodes were looked at for
	spare   *walk
}

// NewSearch makes the search for the candidates of a query. InTree of its groups must be UUIDs of roots.
func NewSearch(q CandidateQuery) *Search {
	s := &Search{query: q, serving: map[string][]*Node{}, known: map[string]bool{}, turn: firstTurn,
		limit: orElse(q.Bounds.Candidates, math.MaxInt), choices: orElse(q.Bounds.Choices, maxChoices),
		steps: orElse(q.Bounds.Steps, maxSteps)}
	if q.Bounds.DepthFirst {
		s.turn = firstLongTurn
	}
	for i, g := range q.Groups {
		var needs []Amount
		for _, class := range slices.Sorted(maps.Keys(g.Resources)) {
			needs = append(needs, Amount{class, g.Resources[class]})
		}
		if g.Suffix == "" {
			s.spread = g.Traits
		} else {
			s.slots = append(s.slots, slot{group: i, suffix: g.Suffix, needs: needs})
			continue
		}
		for n := range needs {
			s.slots = append(s.slots, slot{group: i, spread: true, needs: needs[n : n+1]})
		}
	}
	s.chosen = make([]*Node, len(s.slots))
	s.joinSubtrees()
	s.contest()
	return s
}

func orElse(n, usual int) int {
	if n <= 0 {
		return usual
	}
	return n
}

func (s *Search) joinSubtrees() {
	for _, suffixes := range s.query.Subtrees {
		var members []int
		for j := range s.slots {
			if !s.slots[j].spread && slices.Contains(suffixes, s.slots[j].suffix) {
				members = append(members, j)
			}
		}
		if len(members) < 2 {
			continue
		}
		for _, j := range members {
			s.slots[j].subtrees = append(s.slots[j].subtrees, len(s.subtrees))
		}
		s.subtrees = append(s.subtrees, members)
	}
}

// contest finds the classes that several slots ask for.
func (s *Search) contest() {
	count := map[string]int{}
	s.contested = map[string]float64{}
	for _, slot := range s.slots {
		for _, n := range slot.needs {
			count[n.Class]++
			s.contested[n.Class] += float64(n.Amount)
		}
	}
	maps.DeleteFunc(s.contested, func(class string, _ float64) bool { return count[class] == 1 })
}

// Share makes known which trees have providers that share. Those trees are visited like any other.
func (s *Search) Share(trees []*Tree) {
	for _, t := range trees {
		s.prepare(t)
		for _, n := range t.Nodes {
			if !slices.Contains(n.Traits, Sharing) {
				continue
			}
			s.sharing++
			n.sharing = s.sharing
			for _, aggregate := range n.Aggregates {
				s.serving[aggregate] = append(s.serving[aggregate], n)
			}
		}
	}
}

func (s *Search) prepare(t *Tree) {
	if len(s.subtrees) > 0 && t.Root.first == 0 {
		t.arrange()
	}
}

// visitors are the providers outside of a tree that serve it.
func (s *Search) visitors(t *Tree) []*Node {
	if s.sharing == 0 {
		return nil
	}
	s.asked++
	var nodes []*Node
	for _, aggregate := range t.aggregates {
		for _, n := range s.serving[aggregate] {
			if n.Tree != t && n.seen != s.asked {
				n.seen = s.asked
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// Full tells that nothing more will be found.
func (s *Search) Full() bool {
	return len(s.found) >= s.limit || s.choices < len(s.slots) || s.steps <= 0
}

// Visit gives a tree its first turn.
func (s *Search) Visit(t *Tree) {
	if s.Full() || !s.query.Root.Met(t.Root.Traits) {
		return
	}
	s.prepare(t)
	w := s.begin(t)
	if w == nil {
		return
	}
	if s.take(w) {
		s.waiting = append(s.waiting, w)
		return
	}
	s.spare = w
}

// Resume gives the tree that waits longest its next turn. It is false when none waits.
func (s *Search) Resume() bool {
	if len(s.waiting) == 0 || s.Full() {
		return false
	}
	if s.round == 0 {
		if s.idle == len(s.found) {
			s.turn *= 2
		}
		s.round, s.idle = len(s.waiting), len(s.found)
	}
	w := s.waiting[0]
	s.waiting[0] = nil
	s.waiting = s.waiting[1:]
	s.round--
	if s.take(w) {
		s.waiting = append(s.waiting, w)
	}
	return true
}

// take gives a walk a turn: until it finds a candidate that is new, or depth first all that it can find. It
// tells whether the walk is to be continued.
func (s *Search) take(w *walk) bool {
	s.resume(w)
	defer s.suspend(w)
	until := max(0, s.steps-s.turn)
	for s.steps > until {
		switch s.next(w, until) {
		case exhausted:
			return false
		case interrupted:
			return true
		}
		if s.keep(w) && (s.Full() || !s.query.Bounds.DepthFirst) {
			return !w.last()
		}
	}
	return true
}

// keep adds the candidate that a walk stands at, unless another tree found it before: which it can only if all
// of its providers share. Within a tree two walks never end at the same.
func (s *Search) keep(w *walk) bool {
	c := make(Candidate, len(s.slots))
	shared := true
	for depth, choice := range w.choices {
		c[choice.slot] = choice.options[w.picks[depth]].node
		shared = shared && c[choice.slot].sharing > 0
	}
	if shared {
		key := make([]byte, 0, 4*len(c))
		for _, n := range c {
			key = binary.LittleEndian.AppendUint32(key, uint32(n.sharing))
		}
		if s.known[string(key)] {
			return false
		}
		s.known[string(key)] = true
	}
	s.found = append(s.found, c)
	s.choices -= len(c)
	return true
}

// Found is what was found so far.
func (s *Search) Found() *Found {
	return &Found{Candidates: s.found, slots: s.slots, flat: s.query.Flat}
}
