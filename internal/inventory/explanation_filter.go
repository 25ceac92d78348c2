package inventory

import (
	"fmt"
	"math"
	"strings"
)

// slotFilters are the filters on providers, in the order in which an explanation applies them. Each filter
// returns why the provider n cannot serve the slot in the tree t, or "". Together the filters are the same
// condition as Search.addOption.
var slotFilters = []struct {
	name   string
	refuse func(g *Group, sl *slot, n *Node, t *Tree) string
}{
	{"in_tree", otherTree},
	{"inventory", missingInventory},
	{"capacity", missingCapacity},
	{"required", missingTrait},
	{"forbidden", forbiddenTrait},
	{"member_of", wrongAggregates},
}

func otherTree(g *Group, sl *slot, n *Node, t *Tree) string {
	switch {
	case g.InTree == "" || g.InTree == n.Tree.Root.UUID && (!sl.isSpread || n.Tree == t):
		return ""
	default:
		return "is in the tree of " + n.Tree.Root.UUID
	}
}

func missingInventory(_ *Group, sl *slot, n *Node, _ *Tree) string {
	for _, need := range sl.needs {
		if n.InventoryOf(need.Class) == nil {
			return "has no inventory of " + need.Class
		}
	}
	return ""
}

func missingCapacity(_ *Group, sl *slot, n *Node, _ *Tree) string {
	for _, need := range sl.needs {
		r := n.InventoryOf(need.Class)
		capacity := math.Trunc(r.Inventory.Capacity())
		switch {
		case !r.Inventory.MatchesUnits(need.Amount):
			return fmt.Sprintf("%d of %s does not match min_unit %d, max_unit %d and step_size %d",
				need.Amount, need.Class, r.Inventory.MinUnit, r.Inventory.MaxUnit, r.Inventory.StepSize)
		case !r.CanAllocate(need.Amount):
			return fmt.Sprintf("has %.0f of %.0f %s free, and %d is requested",
				max(0, capacity-float64(r.Used)), capacity, need.Class, need.Amount)
		}
	}
	return ""
}

// missingTrait checks only groups with a suffix. It ignores the group without a suffix, because the providers
// of this group need the required traits only collectively: no single provider can lack a trait.
func missingTrait(g *Group, sl *slot, n *Node, _ *Tree) string {
	if sl.isSpread {
		return ""
	}
	return ruleReason(Rule{Required: g.Traits.Required}, n.Traits)
}

func forbiddenTrait(g *Group, _ *slot, n *Node, _ *Tree) string {
	return ruleReason(Rule{Forbidden: g.Traits.Forbidden}, n.Traits)
}

// wrongAggregates compares the provider's aggregates with the required and forbidden aggregates of the group.
// For the group without a suffix, a provider of the tree also has the aggregates of the tree's root provider,
// and a sharing provider of another tree is refused if the root provider of tree t has a forbidden aggregate.
func wrongAggregates(g *Group, sl *slot, n *Node, t *Tree) string {
	switch {
	case !sl.isSpread:
		return ruleReason(g.Aggregates, n.Aggregates)
	case n.Tree == t:
		return ruleReason(g.Aggregates, n.Aggregates, t.Root.Aggregates)
	}
	if reason := ruleReason(g.Aggregates, n.Aggregates); reason != "" {
		return reason
	}
	return ruleReason(Rule{Forbidden: g.Aggregates.Forbidden}, t.Root.Aggregates)
}

// ruleReason says why the union of the given sets does not meet a rule. If it meets the rule, ruleReason
// returns "".
func ruleReason(r Rule, there ...[]string) string {
	if r.MetBy(there...) {
		return ""
	}
	for _, alternatives := range r.Required {
		if !(Rule{Required: [][]string{alternatives}}).MetBy(there...) {
			return "does not have " + strings.Join(alternatives, " or ")
		}
	}
	for _, name := range r.Forbidden {
		if !(Rule{Forbidden: []string{name}}).MetBy(there...) {
			return "has the forbidden " + name
		}
	}
	return "does not meet the rule"
}
