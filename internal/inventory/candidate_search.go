package inventory

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// SearchLimits limit the time and memory of a search. When a search reaches one of its limits, the search
// returns the candidates that it has found so far. The value zero of a limit means the default limit.
type SearchLimits struct {
	Candidates int // maximum number of candidates
	// maximum number of providers in all candidates together; the size of the response grows with it
	Choices    int
	Steps      int  // maximum number of providers that are tried
	DepthFirst bool // finish the search in a tree before the next tree; otherwise the trees take turns
	// seed for a random order of the trees, and of the providers in each tree; 0: keep the order
	Seed uint64
}

// Default limits. They are high: a candidate with three resource classes has only three choices, and a search
// needs about ten steps to find one such candidate.
const (
	maxChoices = 1 << 18
	maxSteps   = 1 << 22
)

// The search in a tree runs in turns, each with a limited number of steps; firstTurn is the number of steps
// of the first turn. A tree that needs more steps than one turn waits until all other trees have had a turn.
// If all waiting trees have had a turn and the search has found no candidate in this round, the number of
// steps per turn doubles. Because turns are short, a tree without candidates delays the search in the other
// trees only a little.
const (
	firstTurn     = 1 << 8
	firstLongTurn = 1 << 16 // for a depth-first search
)

// A slot is a part of the query that one provider must serve: one resource class of the group without a
// suffix, or all resource classes of a group with a suffix.
type slot struct {
	group    int
	suffix   string
	isSpread bool // belongs to the group without a suffix
	needs    []ResourceAmount
	subtrees []int // indexes of the same_subtree conditions that name the slot's group
}

// Search finds allocation candidates in provider trees; the caller passes one tree after the other to the
// Search. A Search keeps at most one walk (a backtracking search that can be interrupted) for each unfinished
// tree, and respects the limits of the query. The caller of Search calls AddSharingTrees, then SearchTree for
// every tree, then Continue until Continue returns false. When Finished returns true, the caller need not
// call SearchTree and Continue any more.
type Search struct {
	query              CandidateQuery
	slots              []slot
	subtrees           [][]int            // slots of each subtree
	unsuffixedTraits   Rule               // trait rule of the group without a suffix
	contested          map[string]float64 // total requested amount of the classes that several slots request
	sharingByAggregate map[string][]*Node // sharing providers by aggregate
	sharingCount       int
	chosen             []*Node // providers that the current walk has chosen, by slot

	found       []Candidate
	known       map[string]bool // candidates that several trees can produce
	waiting     []*walk         // interrupted walks, the longest waiting first
	turn        int             // number of steps of the next turn
	round       int             // number of walks without a turn in this round
	foundBefore int             // number of candidates when the round began
	steps       int             // remaining steps
	choices     int             // remaining choices
	limit       int
	passes      int // number of passes over the nodes
	spare       *walk
}

// NewSearch returns a search for a query. The field InTree of each group in the query must be empty or the
// UUID of a root provider.
func NewSearch(q CandidateQuery) *Search {
	s := &Search{
		query:              q,
		sharingByAggregate: map[string][]*Node{},
		known:              map[string]bool{},
		turn:               firstTurn,
		limit:              valueOr(q.Limits.Candidates, math.MaxInt),
		choices:            valueOr(q.Limits.Choices, maxChoices),
		steps:              valueOr(q.Limits.Steps, maxSteps),
	}
	if q.Limits.DepthFirst {
		s.turn = firstLongTurn
	}
	for i, g := range q.Groups {
		var needs []ResourceAmount
		for _, class := range slices.Sorted(maps.Keys(g.Resources)) {
			needs = append(needs, ResourceAmount{class, g.Resources[class]})
		}
		if g.Suffix == "" {
			s.unsuffixedTraits = g.Traits
		} else {
			s.slots = append(s.slots, slot{group: i, suffix: g.Suffix, needs: needs})
			continue
		}
		for n := range needs {
			s.slots = append(s.slots, slot{group: i, isSpread: true, needs: needs[n : n+1]})
		}
	}
	s.chosen = make([]*Node, len(s.slots))
	s.joinSubtrees()
	s.findContested()
	return s
}

func valueOr(n, fallback int) int {
	if n <= 0 {
		return fallback
	}
	return n
}

func (s *Search) joinSubtrees() {
	for _, suffixes := range s.query.SameSubtrees {
		var members []int
		for j := range s.slots {
			if !s.slots[j].isSpread && slices.Contains(suffixes, s.slots[j].suffix) {
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

// findContested finds the resource classes that several slots of the query request, and the total amount of
// each.
func (s *Search) findContested() {
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

// AddSharingTrees registers the trees that contain sharing providers. The caller must also call SearchTree
// for the trees that it passes to AddSharingTrees.
func (s *Search) AddSharingTrees(trees []*Tree) {
	for _, t := range trees {
		s.numberTree(t)
		for _, n := range t.Nodes {
			if !slices.Contains(n.Traits, TraitSharesViaAggregate) {
				continue
			}
			s.sharingCount++
			n.sharingNumber = s.sharingCount
			for _, aggregate := range n.Aggregates {
				s.sharingByAggregate[aggregate] = append(s.sharingByAggregate[aggregate], n)
			}
		}
	}
}

func (s *Search) numberTree(t *Tree) {
	if len(s.subtrees) > 0 && t.Root.first == 0 {
		t.number()
	}
}

// sharingProviders returns the providers of other trees that share their resources with the given tree.
func (s *Search) sharingProviders(t *Tree) []*Node {
	if s.sharingCount == 0 {
		return nil
	}
	s.passes++
	var nodes []*Node
	for _, aggregate := range t.aggregates {
		for _, n := range s.sharingByAggregate[aggregate] {
			if n.Tree != t && n.visitedIn != s.passes {
				n.visitedIn = s.passes
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// Finished reports whether a limit of the search is reached.
func (s *Search) Finished() bool {
	return len(s.found) >= s.limit || s.choices < len(s.slots) || s.steps <= 0
}

// SearchTree starts the search in a tree and runs the first turn of this search, unless the tree cannot have
// a candidate.
func (s *Search) SearchTree(t *Tree) {
	if s.Finished() || !s.query.RootTraits.MetBy(t.Root.Traits) {
		return
	}
	s.numberTree(t)
	w := s.newWalk(t)
	if w == nil {
		return
	}
	if s.runTurn(w) {
		s.waiting = append(s.waiting, w)
		return
	}
	s.spare = w
}

// Continue gives the next turn to the tree that has waited longest. Continue returns false if no tree waits
// for a turn or if the search has reached a limit.
func (s *Search) Continue() bool {
	if len(s.waiting) == 0 || s.Finished() {
		return false
	}
	if s.round == 0 {
		if s.foundBefore == len(s.found) {
			s.turn *= 2
		}
		s.round, s.foundBefore = len(s.waiting), len(s.found)
	}
	w := s.waiting[0]
	s.waiting[0] = nil
	s.waiting = s.waiting[1:]
	s.round--
	if s.runTurn(w) {
		s.waiting = append(s.waiting, w)
	}
	return true
}

// runTurn continues a walk for one turn, a limited number of steps. The turn of a walk ends when the steps of
// the turn are used up. Unless the search is depth first, the turn also ends when the walk finds a new
// candidate. runTurn reports whether the walk may find more candidates.
func (s *Search) runTurn(w *walk) bool {
	s.resume(w)
	defer s.suspend(w)
	minSteps := max(0, s.steps-s.turn)
	for s.steps > minSteps {
		switch s.advance(w, minSteps) {
		case exhausted:
			return false
		case interrupted:
			return true
		}
		if s.addCandidate(w) && (s.Finished() || !s.query.Limits.DepthFirst) {
			return !w.isLast()
		}
	}
	return true
}

// addCandidate adds the current candidate of a walk to the result. addCandidate returns false if the walk of
// another tree has already found the same candidate, which is possible only if all providers of the candidate
// are sharing providers. Within one tree, a walk never finds the same candidate twice.
func (s *Search) addCandidate(w *walk) bool {
	c := make(Candidate, len(s.slots))
	shared := true
	for depth, choice := range w.choices {
		c[choice.slot] = choice.options[w.picks[depth]].node
		shared = shared && c[choice.slot].sharingNumber > 0
	}
	if shared {
		key := make([]byte, 0, 4*len(c))
		for _, n := range c {
			key = binary.LittleEndian.AppendUint32(key, uint32(n.sharingNumber))
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

// Result returns the allocation candidates found so far.
func (s *Search) Result() *SearchResult {
	return &SearchResult{
		Candidates: s.found,
		Bounded:    s.choices < len(s.slots) || s.steps <= 0,
		slots:      s.slots,
		flat:       s.query.SingleProviders,
	}
}
