package inventory

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// Sharing is the trait of providers that serve every tree with a member in one of their aggregates.
const Sharing = "MISC_SHARES_VIA_AGGREGATE"

// CandidateQuery asks which providers could serve a consumer, and how.
type CandidateQuery struct {
	Groups   []Group
	Isolate  bool       // groups with a suffix are served by providers of their own
	Subtrees [][]string // suffixes of groups of whose providers one stands above all the others, or is them
	Root     Rule       // of the traits of the tree's root
	Bounds   Bounds

	Flat    bool // at most one provider of each tree, and no others are described
	Classes bool // providers are described with all their classes, not only with those that are asked for
	Traits  bool // and with their traits
}

// Group is a part of a query. The one without a suffix may be spread over a tree; every other one is served by
// a single provider.
type Group struct {
	Suffix     string
	Resources  map[string]int64
	Traits     Rule
	Aggregates Rule
	InTree     string // UUID of any provider of the tree; empty for any tree
}

// ClassNames are the resource classes that a query asks for, sorted.
func (q CandidateQuery) ClassNames() []string {
	names := map[string]bool{}
	for _, g := range q.Groups {
		for class := range g.Resources {
			names[class] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// TraitNames are the traits that a query speaks of, sorted.
func (q CandidateQuery) TraitNames() []string {
	names := q.Root.Names()
	for _, g := range q.Groups {
		names = append(names, g.Traits.Names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// AggregateNames are the aggregates that a query speaks of, sorted.
func (q CandidateQuery) AggregateNames() []string {
	var names []string
	for _, g := range q.Groups {
		names = append(names, g.Aggregates.Names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Tree is all providers with one root. A search notes what it does in its trees: they are of one search only.
type Tree struct {
	Root       *Node
	Nodes      []*Node
	aggregates []string // of all of them, those that matter
	held       int      // choices that fell on one of them
}

// Node is a provider as the search sees it.
type Node struct {
	ID         int64
	UUID       string
	Parent     *Node // nil for a root
	Tree       *Tree
	Rooms      []*Room
	Traits     []string // those that the query speaks of, and Sharing
	Aggregates []string // those that the query speaks of, and those of providers that share

	AllTraits []string // for the description

	first, last int // its place in the tree: those below stand between
	sharing     int // its place among the providers that share, from 1
	seen        int // the last question in which it was looked at
	held        int // choices that fell on it
	alone       int // and those of groups with a suffix
}

// Room is an inventory of a node.
type Room struct {
	Class     string
	Inventory Inventory
	Used      int64
	taken     int64 // by the candidate at hand
}

// Offers tells whether an amount could be allocated by itself.
func (r *Room) Offers(amount int64) bool {
	return r.Inventory.Divides(amount) && float64(r.Used+amount) <= r.Inventory.Capacity()
}

// free tells whether it can be allocated beside what the candidate at hand takes already.
func (r *Room) free(amount int64) bool {
	sum := r.taken + amount
	return sum <= r.Inventory.MaxUnit && float64(r.Used+sum) <= r.Inventory.Capacity()
}

// Room is the node's inventory of a class, nil for none.
func (n *Node) Room(class string) *Room {
	for _, r := range n.Rooms {
		if r.Class == class {
			return r
		}
	}
	return nil
}

// over tells whether n is m or an ancestor of it. Both must be in trees that were arranged.
func (n *Node) over(m *Node) bool {
	return n.Tree == m.Tree && n.first <= m.first && m.last <= n.last
}

// NewTree makes a tree of all providers with one root. Parents are already set.
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

// arrange numbers the nodes so that ancestors are known without climbing.
func (t *Tree) arrange() {
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

// Candidate is one way to serve a query: a provider for each slot of its search.
type Candidate []*Node

// Portion is what a candidate takes of one provider.
type Portion struct {
	Provider  *Node
	Resources []Amount
}

// Amount is so much of a resource class.
type Amount struct {
	Class  string
	Amount int64
}

// Found is what a search found.
type Found struct {
	Candidates []Candidate
	slots      []slot
	flat       bool
}

// Portions tells what a candidate takes of each provider. The slice may be used again for the next one.
func (f *Found) Portions(c Candidate, portions []Portion) []Portion {
	portions = portions[:0]
	for i, s := range f.slots {
		if len(s.needs) == 0 {
			continue
		}
		at := slices.IndexFunc(portions, func(p Portion) bool { return p.Provider == c[i] })
		if at < 0 {
			at = len(portions)
			if cap(portions) > at {
				portions = portions[:at+1]
				portions[at].Resources = portions[at].Resources[:0]
			} else {
				portions = append(portions, Portion{})
			}
			portions[at].Provider = c[i]
		}
		p := &portions[at]
		for _, n := range s.needs {
			if j := slices.IndexFunc(p.Resources, func(a Amount) bool { return a.Class == n.Class }); j >= 0 {
				p.Resources[j].Amount += n.Amount
			} else {
				p.Resources = append(p.Resources, n)
			}
		}
	}
	return portions
}

// Mappings yields, group by group, which providers serve it in a candidate, each once.
func (f *Found) Mappings(c Candidate) iter.Seq2[string, []*Node] {
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

// Described are the providers that the candidates come with: everything in the trees of those that they use, or
// only those.
func (f *Found) Described() []*Node {
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
