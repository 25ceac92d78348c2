package placement

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"berth/internal/api/osapi"
	"berth/internal/inventory"
)

// FuzzCandidateQuery checks that a query is either refused with 400 or read as a valid search.
func FuzzCandidateQuery(f *testing.F) {
	const id = "7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0001"
	for _, seed := range []string{
		"resources=VCPU:1,MEMORY_MB:2&limit=3", "resources1=VCPU:1&resources2=VGPU:1&group_policy=isolate&limit=1&limit=x",
		"resources=VCPU:1&required=A,!B&member_of=in:" + id + "&in_tree=" + id, "resources=VCPU:1&required=in:A,B&required=!C&member_of=!" + id,
		"resources_A=VCPU:9999999999999999999&required_B=X&same_subtree=_A,_B&group_policy=none&root_required=T,!U",
		"resources=VCPU:+1&resources=VCPU:-1", "resources=VCPU", "required=", "member_of=,", "in_tree=%20", "same_subtree=,", "resources%00=VCPU:1", "%zz", "",
	} {
		f.Add(seed, uint8(39))
	}
	f.Fuzz(func(t *testing.T, raw string, version uint8) {
		c := &call{Request: &http.Request{URL: &url.URL{RawQuery: raw}}, v: 10 + int(version)%(newest-9)}
		refused := func(err error) {
			var e *osapi.Error
			if !errors.As(err, &e) || e.Status != http.StatusBadRequest {
				t.Errorf("query %q at microversion 1.%d: got error %v, want 400", raw, c.v, err)
			}
		}
		if filter, err := c.providerFilter(); err != nil {
			refused(err)
		} else {
			checkNames(t, raw, filter.Resources, filter.Traits, filter.Aggregates)
		}
		q, err := c.candidateQuery()
		if err != nil {
			refused(err)
			return
		}
		var suffixes []string
		for _, g := range q.Groups {
			suffixes = append(suffixes, g.Suffix)
			checkNames(t, raw, g.Resources, g.Traits, g.Aggregates)
			if g.InTree != "" && !isUUID(g.InTree) || len(g.Resources) == 0 && c.v < 36 {
				t.Errorf(
					"query %q at microversion 1.%d: want only valid groups, got the invalid group %+v",
					raw, c.v, g,
				)
			}
		}
		if len(slices.Compact(slices.Sorted(slices.Values(suffixes)))) != len(suffixes) ||
			len(q.ClassNames()) == 0 ||
			c.v < 25 && len(suffixes) > 1 ||
			q.Limits.Candidates < 0 {
			t.Errorf(
				"query %q at microversion 1.%d: want a valid search or an error, got the invalid search %+v",
				raw, c.v, q,
			)
		}
		for _, suffix := range slices.Concat(q.SameSubtrees...) {
			if suffix == "" || !slices.Contains(suffixes, suffix) {
				t.Errorf(
					"query %q at microversion 1.%d: want only known groups in same_subtree, got the unknown group %q",
					raw, c.v, suffix,
				)
			}
		}
		search := inventory.NewSearch(q)
		search.SearchTree(inventory.NewTree([]*inventory.Node{
			{
				UUID: id,
				Inventories: []*inventory.NodeInventory{
					{Class: "VCPU", Inventory: inventory.NewInventory(8)},
				},
			},
		}))
		for search.Continue() {
		}
		c.candidates(search.Result())
	})
}

func checkNames(t *testing.T, raw string, resources map[string]int64, traits, aggregates inventory.Rule) {
	t.Helper()
	for class, amount := range resources {
		if amount < 1 {
			t.Errorf("query %q: got the amount %d of class %q, want at least 1", raw, amount, class)
		}
	}
	for _, alternatives := range append(traits.Required, traits.Forbidden) {
		if slices.Contains(alternatives, "") {
			t.Errorf("query %q: want only traits with a name, got a trait with an empty name", raw)
		}
	}
	for _, aggregate := range aggregates.Names() {
		if !isUUID(aggregate) {
			t.Errorf("query %q: got the aggregate %q, want a UUID", raw, aggregate)
		}
	}
	for _, alternatives := range append(traits.Required, aggregates.Required...) {
		if len(alternatives) == 0 {
			t.Errorf(
				"query %q: want at least one alternative in each required set, got a set without alternatives",
				raw,
			)
		}
	}
}
