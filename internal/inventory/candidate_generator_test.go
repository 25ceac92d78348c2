package inventory_test

import (
	"fmt"

	"pgregory.net/rapid"

	"berth/internal/inventory"
)

// deployment is a randomly drawn set of small provider trees, with all their nodes.
type deployment struct {
	trees []*inventory.Tree
	nodes []*inventory.Node
}

var (
	someClasses    = []string{"MEMORY_MB", "VCPU"}
	someTraits     = []string{"T0", "T1", "T2"}
	someAggregates = []string{"A0", "A1", "A2"}
)

func subset(t *rapid.T, of []string, label string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, len(of), rapid.ID[string]).Draw(t, label)
}

// rareSubset usually returns an empty subset: with more conditions, most queries would have no candidates.
func rareSubset(t *rapid.T, of []string, label string) []string {
	if rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, "no "+label) {
		return nil
	}
	return subset(t, of, label)
}

func drawRule(t *rapid.T, of []string, label string) (r inventory.Rule) {
	if alternatives := rareSubset(t, of, label); len(alternatives) > 0 {
		r.Required = append(r.Required, alternatives)
	}
	if one := rareSubset(t, of, label+" and"); len(one) > 0 {
		r.Required = append(r.Required, one[:1])
	}
	if one := rareSubset(t, of, label+" not"); len(one) > 0 {
		r.Forbidden = one[:1]
	}
	return r
}

func drawDeployment(t *rapid.T) (d deployment) {
	for i := range rapid.SampledFrom([]int{2, 3, 1}).Draw(t, "trees") {
		var nodes []*inventory.Node
		for j := range rapid.SampledFrom([]int{2, 3, 1}).Draw(t, "nodes") {
			n := &inventory.Node{
				ID:         int64(100*i + j),
				UUID:       fmt.Sprintf("%d%d", i, j),
				Traits:     subset(t, someTraits, "traits"),
				Aggregates: subset(t, someAggregates, "aggregates"),
			}
			if j > 0 {
				n.Parent = nodes[rapid.IntRange(0, j-1).Draw(t, "parent")]
			}
			if rapid.IntRange(0, 3).Draw(t, "shares") == 0 {
				n.Traits = append(n.Traits, inventory.TraitSharesViaAggregate)
			}
			for _, class := range someClasses {
				total := rapid.SampledFrom([]int64{4, 3, 2, 1, 0}).Draw(t, "total")
				if total == 0 {
					continue
				}
				r := &inventory.NodeInventory{
					Class:     class,
					Inventory: inventory.NewInventory(total),
					Used:      rapid.Int64Range(0, 2).Draw(t, "used"),
				}
				r.Inventory.MaxUnit = rapid.SampledFrom([]int64{4, 3, 2, 1}).Draw(t, "max")
				r.Inventory.StepSize = rapid.SampledFrom([]int64{1, 1, 2}).Draw(t, "step")
				r.Inventory.AllocationRatio = rapid.SampledFrom([]float64{1, 1.5, 0.5}).Draw(t, "ratio")
				n.Inventories = append(n.Inventories, r)
			}
			nodes = append(nodes, n)
		}
		d.nodes = append(d.nodes, nodes...)
		d.trees = append(d.trees, inventory.NewTree(rapid.Permutation(nodes).Draw(t, "order")))
	}
	return d
}

func drawQuery(t *rapid.T, d deployment) (q inventory.CandidateQuery) {
	q = inventory.CandidateQuery{GroupPolicyIsolate: rapid.Bool().Draw(t, "isolate"),
		SingleProviders: rapid.IntRange(0, 3).Draw(t, "flat") == 0}
	if rapid.IntRange(0, 3).Draw(t, "of the root") == 0 {
		q.RootTraits = drawRule(t, someTraits, "root")
	}
	for i, suffix := range subset(t, []string{"", "1", "2", "3"}, "groups") {
		g := inventory.Group{
			Suffix:     suffix,
			Resources:  map[string]int64{},
			Traits:     drawRule(t, someTraits, "required"),
			Aggregates: drawRule(t, someAggregates, "member_of"),
		}
		classes := subset(t, someClasses, "asked")
		if suffix == "" && len(classes) == 0 || i == 0 {
			classes = append(classes[:0:0], someClasses[rapid.IntRange(0, 1).Draw(t, "class"):]...)
		}
		for _, class := range classes {
			g.Resources[class] = rapid.SampledFrom([]int64{1, 2}).Draw(t, "amount")
		}
		if rapid.IntRange(0, 5).Draw(t, "in_tree") == 0 {
			g.InTree = rapid.SampledFrom(d.trees).Draw(t, "tree").Root.UUID
		}
		q.Groups = append(q.Groups, g)
	}
	if rapid.Bool().Draw(t, "subtree") {
		q.SameSubtrees = [][]string{
			[]string{"1", "2", "3"}[:rapid.SampledFrom([]int{3, 2}).Draw(t, "members")],
		}
	}
	return q
}

// clone copies the deployment, because a search modifies the trees.
func (d deployment) clone() (c deployment) {
	for _, t := range d.trees {
		twins := map[*inventory.Node]*inventory.Node{}
		var nodes []*inventory.Node
		for _, n := range t.Nodes {
			twins[n] = &inventory.Node{
				ID:         n.ID,
				UUID:       n.UUID,
				Traits:     n.Traits,
				Aggregates: n.Aggregates,
			}
			for _, r := range n.Inventories {
				twins[n].Inventories = append(twins[n].Inventories,
					&inventory.NodeInventory{Class: r.Class, Inventory: r.Inventory, Used: r.Used})
			}
			nodes = append(nodes, twins[n])
		}
		for _, n := range t.Nodes {
			twins[n].Parent = twins[n.Parent]
		}
		c.trees = append(c.trees, inventory.NewTree(nodes))
	}
	return c
}
