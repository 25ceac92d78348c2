package inventory

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// SearchLimits limit the time and memory of a search. When a limit is reached, the search returns what it has found so far.
// Zero means the default.
type SearchLimits struct {
	Candidates int    // maximum number of candidates
	Choices    int    // maximum number of providers in all candidates together; the size of the response grows with it
	Steps      int    // maximum number of providers that are tried
	DepthFirst bool   // find all candidates of a tree before the next tree, instead of one of each tree in turn
	Seed       uint64 // seed for a random order of the providers; 0: keep their order
}

// Default limits. A candidate with three resource classes has three choices and costs about ten steps.
const (
	maxChoices = 1 << 18
	maxSteps   = 1 << 22
)

// Number of steps of a tree's first turn. A tree that needs more waits until all trees have had a turn. Turns double
// whenever a round finds nothing, so that a tree without candidates takes little time from the others.
const (
	firstTurn     = 1 << 8
	firstLongTurn = 1 << 16 // for a depth-first search
)

// slot is a choice of one provider: for one class of the group without a suffix, or for all classes of another group.
type slot struct {
	group    int
	suffix   string
	isSpread bool // belongs to the group without a suffix
	needs    []ResourceAmount
	subtrees []int // indexes of the same_subtree conditions that name its group
}

// Search finds allocation candidates in one tree after the other. It keeps at most one walk per unfinished tree and
// respects its limits. Call AddSharingTrees, then SearchTree for every tree, then Continue until it returns false. Stop early if Finished
// returns true.
type Search struct {
	query              CandidateQuery
	slots              []slot
	subtrees           [][]int            // slots of each subtree
	unsuffixedTraits   Rule               // trait rule of the group without a suffix
	contested          map[string]float64 // total amount of the classes that several slots ask for
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

// NewSearch returns a search for a query. InTree of its groups must be UUIDs of root providers.
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

// findContested finds the classes that several slots ask for.
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

// AddSharingTrees registers the trees with sharing providers. They must also be visited like all other trees.
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

// sharingProviders returns the providers outside of a tree that share resources with it.
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

// Finished reports whether a limit is reached.
func (s *Search) Finished() bool {
	return len(s.found) >= s.limit || s.choices < len(s.slots) || s.steps <= 0
}

// SearchTree gives a tree its first turn.
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

// Continue gives the tree that has waited longest its next turn. It returns false if no tree waits.
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

// runTurn gives a walk one turn. The turn ends with the next new candidate, or in a depth-first search when its steps are used up. It
// reports whether the walk may find more candidates.
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

// addCandidate adds the candidate of a walk. It returns false if another tree produced the same candidate, which is possible
// only if all its providers are sharing. Walks of one tree never produce the same candidate twice.
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

// Result returns the candidates found so far.
func (s *Search) Result() *SearchResult {
	return &SearchResult{Candidates: s.found, slots: s.slots, flat: s.query.SingleProviders}
}
