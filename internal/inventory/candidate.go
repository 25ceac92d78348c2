package inventory

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// TraitSharesViaAggregate is the trait of sharing providers. A sharing provider can serve every provider tree
// that has a provider in an aggregate of the sharing provider.
const TraitSharesViaAggregate = "MISC_SHARES_VIA_AGGREGATE"

// CandidateQuery is a request for allocation candidates.
type CandidateQuery struct {
	Groups             []Group
	GroupPolicyIsolate bool // group_policy=isolate: each group with a suffix gets a different provider
	// same_subtree: suffixes of groups; one of their providers must be the only one or an ancestor of the
	// rest
	SameSubtrees [][]string
	RootTraits   Rule // root_required: traits of the root provider
	Limits       SearchLimits

	// at most one provider per tree, and only used providers in the summaries (microversions before 1.29)
	SingleProviders bool
	AllClasses      bool // summaries contain all resource classes, not only the requested ones
	WithTraits      bool // summaries contain traits
}

// Group is a request group of the query. The request group without a suffix may use several providers of a
// tree; each request group with a suffix uses exactly one provider.
type Group struct {
	Suffix     string
	Resources  map[string]int64
	Traits     Rule
	Aggregates Rule
	InTree     string // UUID of a provider of the tree; empty: any tree
}

// ClassNames returns the requested resource classes, sorted.
func (q CandidateQuery) ClassNames() []string {
	names := map[string]bool{}
	for _, g := range q.Groups {
		for class := range g.Resources {
			names[class] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// TraitNames returns all traits in the query, sorted.
func (q CandidateQuery) TraitNames() []string {
	names := q.RootTraits.Names()
	for _, g := range q.Groups {
		names = append(names, g.Traits.Names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// AggregateNames returns all aggregates in the query, sorted.
func (q CandidateQuery) AggregateNames() []string {
	var names []string
	for _, g := range q.Groups {
		names = append(names, g.Aggregates.Names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Tree contains all resource providers that have the same root provider. A search stores its state in the
// trees, so two searches must not use the same Tree.
type Tree struct {
	Root       *Node
	Nodes      []*Node
	aggregates []string // all aggregates of the nodes, if they matter for the query
	choices    int      // number of choices of the current walk that use a node of the tree
}

// TraitNames are names of traits as the elements of a JSON list, because responses contain them like this. A
// list of a thousand providers with forty traits each is a thousand values that share their memory, and not
// forty thousand.
type TraitNames string

// JoinTraits returns the names as TraitNames. No name of a trait needs escaping.
func JoinTraits(names []string) TraitNames {
	if len(names) == 0 {
		return ""
	}
	return TraitNames(`"` + strings.Join(names, `","`) + `"`)
}

// Node is a resource provider in a candidate search.
type Node struct {
	ID          int64
	UUID        string
	Parent      *Node // nil: root
	Tree        *Tree
	Inventories []*NodeInventory
	Traits      []string // traits that are in the query, and TraitSharesViaAggregate
	Aggregates  []string // aggregates that are in the query, and those of sharing providers

	AllTraits TraitNames // for the summary

	first, last     int // preorder numbers of this node and of its last descendant
	sharingNumber   int // number among the sharing providers, from 1; 0: not sharing
	visitedIn       int // number of the last pass over the nodes (see Search.passes) that visited this node
	choices         int // number of choices that use the node
	isolatedChoices int // number of choices of groups with a suffix that use the node
}

// NodeInventory is an inventory of a node, with the usage of this inventory.
type NodeInventory struct {
	Class     string
	Inventory Inventory
	Used      int64
	allocated int64 // amount that the current partial candidate allocates
}

// CanAllocate reports whether a candidate could allocate the amount from the inventory if the candidate
// allocated nothing else from this inventory.
func (r *NodeInventory) CanAllocate(amount int64) bool {
	return r.Inventory.MatchesUnits(amount) && float64(r.Used+amount) <= r.Inventory.Capacity()
}

// canAdd reports whether the amount fits in addition to the amount that the current candidate already
// allocates from the inventory.
func (r *NodeInventory) canAdd(amount int64) bool {
	sum := r.allocated + amount
	return sum <= r.Inventory.MaxUnit && float64(r.Used+sum) <= r.Inventory.Capacity()
}

// InventoryOf returns the node's inventory of the given resource class, or nil if the node has no inventory
// of this class.
func (n *Node) InventoryOf(class string) *NodeInventory {
	for _, r := range n.Inventories {
		if r.Class == class {
			return r
		}
	}
	return nil
}

// isAncestorOf reports whether n is m itself or an ancestor of m. Before isAncestorOf is called, Tree.number
// must have been called for the trees of both nodes.
func (n *Node) isAncestorOf(m *Node) bool {
	return n.Tree == m.Tree && n.first <= m.first && m.last <= n.last
}

// NewTree returns the tree of the given providers. The caller must pass all providers that have the same root
// provider. The caller of NewTree must have set the field Parent of each node.
func NewTree(nodes []*Node) *Tree {
	t := &Tree{Nodes: nodes}
	for _, n := range nodes {
		n.Tree = t
		if n.Parent == nil {
			t.Root = n
		}
	}
	if len(nodes) == 1 {
		t.aggregates = nodes[0].Aggregates
		return t
	}
	for _, n := range nodes {
		t.aggregates = append(t.aggregates, n.Aggregates...)
	}
	slices.Sort(t.aggregates)
	t.aggregates = slices.Compact(t.aggregates)
	return t
}

// number sets the preorder numbers of the nodes, so that isAncestorOf compares numbers instead of following
// the parents.
func (t *Tree) number() {
	children := map[*Node][]*Node{}
	for _, n := range t.Nodes {
		if n.Parent != nil {
			children[n.Parent] = append(children[n.Parent], n)
		}
	}
	count := 0
	for path := []*Node{t.Root}; len(path) > 0; {
		n := path[len(path)-1]
		if n.first == 0 {
			count++
			n.first = count
		}
		below := children[n]
		if len(below) == 0 {
			n.last = count
			path = path[:len(path)-1]
			continue
		}
		children[n] = below[1:]
		path = append(path, below[0])
	}
}

// Candidate is an allocation candidate: one provider for each slot (a part of the query that one provider
// must serve), in the order of the search's slots.
type Candidate []*Node

// CandidateAllocation lists the amounts that a candidate allocates from one provider.
type CandidateAllocation struct {
	Provider  *Node
	Resources []ResourceAmount
}

// ResourceAmount is an amount of a resource class.
type ResourceAmount struct {
	Class  string
	Amount int64
}

// SearchResult is the result of a search for allocation candidates.
type SearchResult struct {
	Candidates []Candidate
	// Bounded means that a limit of the search other than the number of candidates has ended the search.
	Bounded bool
	slots   []slot
	flat    bool
}

// Allocations returns the amounts that a candidate allocates from each provider. Allocations reuses the
// memory of the slice `portions` for its result.
func (f *SearchResult) Allocations(c Candidate, portions []CandidateAllocation) []CandidateAllocation {
	portions = portions[:0]
	for i, s := range f.slots {
		if len(s.needs) == 0 {
			continue
		}
		at := slices.IndexFunc(portions, func(p CandidateAllocation) bool { return p.Provider == c[i] })
		if at < 0 {
			at = len(portions)
			if cap(portions) > at {
				portions = portions[:at+1]
				portions[at].Resources = portions[at].Resources[:0]
			} else {
				portions = append(portions, CandidateAllocation{})
			}
			portions[at].Provider = c[i]
		}
		p := &portions[at]
		for _, n := range s.needs {
			if j := slices.IndexFunc(p.Resources, func(a ResourceAmount) bool { return a.Class == n.Class }); j >= 0 {
				p.Resources[j].Amount += n.Amount
			} else {
				p.Resources = append(p.Resources, n)
			}
		}
	}
	return portions
}

// Mappings returns, for each request group, the providers that serve the group in a candidate, without
// duplicates (`mappings` in the API).
func (f *SearchResult) Mappings(c Candidate) iter.Seq2[string, []*Node] {
	return func(yield func(string, []*Node) bool) {
		for from := 0; from < len(f.slots); {
			to := from + 1
			for to < len(f.slots) && f.slots[to].group == f.slots[from].group {
				to++
			}
			nodes := c[from:to:to]
			if len(nodes) > 1 {
				nodes = slices.Clone(nodes)
				slices.SortFunc(nodes, func(a, b *Node) int { return strings.Compare(a.UUID, b.UUID) })
				nodes = slices.Compact(nodes)
			}
			if !yield(f.slots[from].suffix, nodes) {
				return
			}
			from = to
		}
	}
}

// SummarizedProviders returns the providers for provider_summaries: all providers of the trees that the
// candidates use. Before microversion 1.29, SummarizedProviders returns only the providers from which a
// candidate allocates.
func (f *SearchResult) SummarizedProviders() []*Node {
	var nodes []*Node
	seenTrees, seen := map[*Tree]bool{}, map[*Node]bool{}
	for _, c := range f.Candidates {
		for _, n := range c {
			switch {
			case f.flat && !seen[n]:
				seen[n] = true
				nodes = append(nodes, n)
			case !f.flat && !seenTrees[n.Tree]:
				seenTrees[n.Tree] = true
				nodes = append(nodes, n.Tree.Nodes...)
			}
		}
	}
	return nodes
}
