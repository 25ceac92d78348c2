package inventory

import (
	"slices"
	"strings"
)

// Explanation says which filter of a candidate query removed which providers and provider trees.
type Explanation struct {
	Trees, Providers int  // numbers of examined trees and providers
	Cut              bool // the explanation did not examine all trees
	Slots            []SlotExplanation
	// Combination contains the filters on whole trees, in the order in which they apply. The numbers of
	// Combination add up: a tree that one filter removes does not reach the next filter.
	Combination    []Removal
	CandidateTrees int // trees with a candidate
}

// SlotExplanation explains the choice of providers for one part of the query that one provider must serve: a
// resource class of the group without a suffix, or all resource classes of a group with a suffix.
type SlotExplanation struct {
	Suffix           string
	Resources        []ResourceAmount
	Removals         []Removal // in the order in which the filters apply
	Providers, Trees int       // numbers of providers and trees that no filter has removed
}

// Removal counts the providers and trees that a filter removed. A filter on providers removes a tree if it
// removes the last provider that could serve the tree.
type Removal struct {
	Filter           string
	Providers, Trees int
	Examples         []RemovalExample
}

// RemovalExample is a provider that a filter removed, with the reason.
type RemovalExample struct{ UUID, Reason string }

// maxExamples is the maximum number of example providers that an explanation names for one filter.
const maxExamples = 3

func (r *Removal) addExample(n *Node, reason string) {
	if len(r.Examples) < maxExamples {
		r.Examples = append(r.Examples, RemovalExample{n.UUID, reason})
	}
}

// Names of the filters on whole trees.
const (
	filterRootRequired = "root_required"
	filterGroups       = "groups"
	filterRequired     = "required"
	filterGroupPolicy  = "group_policy"
	filterSameSubtree  = "same_subtree"
	filterTogether     = "together"
	filterUndecided    = "undecided"
)

var treeFilters = []string{
	filterRootRequired,
	filterGroups,
	filterRequired,
	filterGroupPolicy,
	filterSameSubtree,
	filterTogether,
	filterUndecided,
}

// Explainer explains a candidate query. The caller passes one tree after the other to AddTree.
type Explainer struct {
	Explanation
	query   CandidateQuery
	search  *Search // only its slots and sharing providers are used; Explainer does not run the search
	sharing []*Tree
	spread  []*Node // providers that can serve a slot of the group without a suffix for the tree in AddTree
	steps   int     // remaining steps of all searches
}

// explainedSteps is the maximum number of providers that all searches of an explanation try. A tree for which
// no steps are left is counted as undecided.
const explainedSteps = 1 << 20

// NewExplainer returns an Explainer of a query. The field InTree of each group must be empty or the UUID of a
// root provider. The parameter `sharing` contains the trees with sharing providers, which the caller must
// also pass to AddTree.
func NewExplainer(q CandidateQuery, sharing []*Tree) *Explainer {
	q.Limits = SearchLimits{Candidates: 1}
	x := &Explainer{
		query:   q,
		search:  NewSearch(q),
		sharing: sharing,
		steps:   explainedSteps,
	}
	x.search.AddSharingTrees(sharing)
	for _, s := range x.search.slots {
		e := SlotExplanation{Suffix: s.suffix, Resources: s.needs}
		for _, f := range slotFilters {
			e.Removals = append(e.Removals, Removal{Filter: f.name})
		}
		x.Slots = append(x.Slots, e)
	}
	for _, name := range treeFilters {
		x.Combination = append(x.Combination, Removal{Filter: name})
	}
	return x
}

// AddTree explains the query for one tree.
func (x *Explainer) AddTree(t *Tree) {
	x.Trees++
	x.Providers += len(t.Nodes)
	x.reset(t)
	sharing := x.search.sharingProviders(t)
	unserved := ""
	x.spread = x.spread[:0]
	for i := range x.Slots {
		if !x.filterSlot(i, t, sharing) && unserved == "" {
			unserved = x.Slots[i].name()
		}
	}
	filter, reason := x.refusal(t, unserved)
	if filter == "" {
		x.CandidateTrees++
		return
	}
	r := &x.Combination[slices.Index(treeFilters, filter)]
	r.Trees++
	r.Providers += len(t.Nodes)
	r.addExample(t.Root, reason)
}

// name says which part of the query a slot is.
func (s SlotExplanation) name() string {
	var classes []string
	for _, r := range s.Resources {
		classes = append(classes, r.Class)
	}
	name := strings.Join(classes, ",")
	if s.Suffix != "" {
		name = strings.TrimPrefix(name+" of group "+s.Suffix, " of ")
	}
	return name
}

// filterSlot applies the filters of a slot to the providers of a tree and to the providers of other trees
// that share their resources with the tree. filterSlot counts each provider only in its own tree. filterSlot
// reports whether a provider is left.
func (x *Explainer) filterSlot(i int, t *Tree, sharing []*Node) bool {
	slot, e := &x.search.slots[i], &x.Slots[i]
	left := slices.Concat(t.Nodes, sharing)
	for f := range slotFilters {
		before := len(left)
		left = slices.DeleteFunc(left, func(n *Node) bool {
			reason := slotFilters[f].refuse(&x.query.Groups[slot.group], slot, n, t)
			if reason != "" && n.Tree == t {
				e.Removals[f].Providers++
				e.Removals[f].addExample(n, reason)
			}
			return reason != ""
		})
		if before > 0 && len(left) == 0 {
			e.Removals[f].Trees++
		}
	}
	if len(left) == 0 {
		return false
	}
	e.Trees++
	for _, n := range left {
		if n.Tree == t {
			e.Providers++
		}
	}
	if slot.isSpread {
		x.spread = append(x.spread, left...)
	}
	return true
}

// refusal returns the filter that leaves a tree without a candidate, with the reason. If the tree has a
// candidate, refusal returns "".
func (x *Explainer) refusal(t *Tree, unserved string) (filter, reason string) {
	if reason := ruleReason(x.query.RootTraits, t.Root.Traits); reason != "" {
		return filterRootRequired, "the root provider " + reason
	}
	if unserved != "" {
		return filterGroups, "no provider of the tree is left for " + unserved
	}
	if reason := x.missingTraits(); reason != "" {
		return filterRequired, reason
	}
	free, related := x.query, x.query
	free.GroupPolicyIsolate = false
	related.SameSubtrees = nil
	none := free
	none.SameSubtrees = nil
	for _, attempt := range []struct {
		query          CandidateQuery
		filter, reason string
	}{
		{x.query, "", ""},
		{free, filterGroupPolicy, "the groups need different providers"},
		{related, filterSameSubtree, "the providers of the groups have no common ancestor among them"},
		{none, filterSameSubtree, "no different providers of the groups have a common ancestor among them"},
	} {
		if found, decided := x.hasCandidate(attempt.query, t); !decided {
			return filterUndecided, "the search has used up its steps"
		} else if found {
			return attempt.filter, attempt.reason
		}
	}
	return filterTogether, "each group finds providers, but all groups together need too much, or traits that no choice of providers has"
}

// missingTraits returns why the providers that can serve the group without a suffix do not have its required
// traits together.
func (x *Explainer) missingTraits() string {
	for _, alternatives := range x.search.unsuffixedTraits.Required {
		if len(x.spread) > 0 &&
			!slices.ContainsFunc(x.spread, func(n *Node) bool { return overlap(alternatives, n.Traits) }) {
			traits := strings.Join(alternatives, " or ")
			return "no provider that can serve the group without a suffix has " + traits
		}
	}
	return ""
}

// hasCandidate reports whether a tree has a candidate, unless the steps for the decision are used up.
func (x *Explainer) hasCandidate(q CandidateQuery, t *Tree) (found, decided bool) {
	q.Limits.Steps = x.steps
	if x.steps <= 0 {
		return false, false
	}
	x.reset(t)
	s := NewSearch(q)
	s.AddSharingTrees(x.sharing)
	s.SearchTree(t)
	for s.Continue() {
	}
	x.steps = s.steps
	return len(s.found) > 0, len(s.found) > 0 || s.steps > 0
}

// reset removes the marks that other searches have left in a tree and in the trees with sharing providers.
func (x *Explainer) reset(t *Tree) {
	for _, other := range append([]*Tree{t}, x.sharing...) {
		for _, n := range other.Nodes {
			n.visitedIn = 0
		}
	}
}
