package inventory

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// SearchLimits limit the time and memory of a search. When a limit is reached, the search returns the candidates found so far.
// A limit of zero means the default.
type SearchLimits struct {
	Candidates int    // maximum number of candidates
	Choices    int    // maximum number of providers in all candidates together; the size of the response grows with it
	Steps      int    // maximum number of providers that are tried
	DepthFirst bool   // find all candidates of a tree before the next tree, instead of one of each tree in turn
	Seed       uint64 // seed for a random order of the providers; 0: keep their order
}

// Default limits. For comparison: a candidate with three resource classes has three choices and costs about ten steps.
const (
	maxChoices = 1 << 18
	maxSteps   = 1 << 22
)

// Number of steps of a tree's first turn. A tree that needs more steps waits until all trees have had a turn. Whenever all
// waiting trees had a turn and none found a candidate, the number of steps per turn doubles. A tree without candidates
// therefore takes little time from the others.
const (
	firstTurn     = 1 << 8
	firstLongTurn = 1 << 16 // for a depth-first search
)

// slot is a part of the query that one provider must serve: one resource class of the group without a suffix, or all resource
// classes of a group with a suffix.
type slot struct {
	group    int
	suffix   string
	isSpread bool // belongs to the group without a suffix
	needs    []ResourceAmount
	subtrees []int // indexes of the same_subtree conditions that name its group
}

// Search finds allocation candidates in one tree after the other. It keeps at most one walk per unfinished tree and respects
// the limits of the query. The caller calls AddSharingTrees, then SearchTree for every tree, then Continue until it returns
// false. The caller may stop early when Finished returns true.
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
	steps       int             // remaining
	choices     int             // remaining
	limit       int
	passes      int // number of passes over the nodes
	spare       *walk
}

// NewSearch returns a search for a query. If a group of the query has the field InTree, InTree must be the UUID of a root
// provider.
func NewSearch(q CandidateQuery) *Search {
	s := &Search{query: q, sharingByAggregate: map[string][]*Node{}, known: map[string]bool{}, turn: firstTurn,
		limit: valueOr(q.Limits.Candidates, math.MaxInt), choices: valueOr(q.Limits.Choices, maxChoices),
		steps: valueOr(q.Limits.Steps, maxSteps)}
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

// findContested finds the resource classes that several slots of the query request, and the total amount of each.
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

// AddSharingTrees registers the trees that contain sharing providers. SearchTree must also be called for these trees.
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

// sharingProviders returns the providers of other trees that share resources with the given tree.
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

// SearchTree gives a tree its first turn, unless the tree has no candidate.
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

// Continue gives the tree that has waited longest its next turn. Continue returns false if no tree waits or a limit is reached.
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

// runTurn gives a walk one turn. The turn ends when its steps are used up or, unless the search is depth first, with the next
// new candidate. runTurn reports whether the walk may find more candidates.
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

// addCandidate adds the current candidate of a walk to the result. It returns false if another tree already produced the same
// candidate, which is possible only if all providers of the candidate are sharing providers. A walk never produces the same
// candidate twice.
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
	return &SearchResult{Candidates: s.found, slots: s.slots, flat: s.query.SingleProviders}
}
