package placement

import (
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"berth/internal/inventory"
)

// Candidates configures the search for allocation candidates.
type Candidates struct {
	Max int // upper bound of every request's limit; 0 means none
	// list all candidates of a provider tree before the next tree; otherwise list one candidate of each tree
	// in turn
	DepthFirst bool
	// return candidates of a random choice of trees, and a random choice of providers in each tree
	Random bool
}

// searchBounds returns the limits of a search: the configured limits and the limit in the request. The value
// 0 means that a search has no limit.
func (s Candidates) searchBounds(limit int) inventory.SearchLimits {
	b := inventory.SearchLimits{Candidates: limit, DepthFirst: s.DepthFirst}
	if s.Max > 0 && (limit == 0 || limit > s.Max) {
		b.Candidates = s.Max
	}
	if s.Random {
		b.Seed = rand.Uint64() | 1
	}
	return b
}

func (h *handler) listCandidates(c *call) (int, any, error) {
	query, err := c.candidateQuery()
	if err != nil {
		return 0, nil, err
	}
	query.Limits = h.candidates.searchBounds(query.Limits.Candidates)
	found, err := h.store.Candidates(c.Context(), query)
	if err != nil {
		return 0, nil, prefixMessage(err,
			"Invalid resource class in resources parameter: ", inventory.UnknownClass)
	}
	c.setLastModified(time.Time{})
	return http.StatusOK, c.candidates(found), nil
}

// candidates writes the search result as JSON text. candidates does not use encoding/json, because the
// response may be large, and because the UUIDs, names, suffixes and numbers in the response need no escaping.
func (c *call) candidates(f *inventory.SearchResult) []byte {
	described := f.SummarizedProviders()
	b := append([]byte(nil), `{"allocation_requests":[`...)
	var portions []inventory.CandidateAllocation
	for i, candidate := range f.Candidates {
		portions = f.Allocations(candidate, portions)
		before := len(b)
		b = c.request(comma(b, i), f, candidate, portions)
		b = grow(b, i, len(b)-before, len(f.Candidates))
	}
	b = append(b, `],"provider_summaries":{`...)
	for i, n := range described {
		before := len(b)
		b = c.summary(comma(b, i), n)
		b = grow(b, i, len(b)-before, len(described))
	}
	return append(b, `}}`...)
}

// grow reserves memory for the other elements of a JSON list after the first element is written. grow assumes
// that the other elements are about as long as the first element.
func grow(b []byte, i, length, count int) []byte {
	if i > 0 {
		return b
	}
	return slices.Grow(b, length*count+length*count/8)
}

// comma writes a comma before every element but the first.
func comma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

func quoted(b []byte, name string) []byte {
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}

func (c *call) request(
	b []byte,
	f *inventory.SearchResult,
	candidate inventory.Candidate,
	portions []inventory.CandidateAllocation,
) []byte {
	if c.v < 12 {
		b = append(b, `{"allocations":[`...)
		for i, p := range portions {
			b = append(comma(b, i), `{"resource_provider":{"uuid":`...)
			b = append(quoted(b, p.Provider.UUID), `},`...)
			b = append(amounts(b, p.Resources), '}')
		}
		return append(b, `]}`...)
	}
	b = append(b, `{"allocations":{`...)
	for i, p := range portions {
		b = append(quoted(comma(b, i), p.Provider.UUID), `:{`...)
		b = append(amounts(b, p.Resources), '}')
	}
	b = append(b, '}')
	if c.v >= 34 {
		b = append(b, `,"mappings":{`...)
		group := 0
		for suffix, nodes := range f.Mappings(candidate) {
			b = append(quoted(comma(b, group), suffix), `:[`...)
			for i, n := range nodes {
				b = quoted(comma(b, i), n.UUID)
			}
			b = append(b, ']')
			group++
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

func amounts(b []byte, resources []inventory.ResourceAmount) []byte {
	b = append(b, `"resources":{`...)
	for i, r := range resources {
		b = append(quoted(comma(b, i), r.Class), ':')
		b = strconv.AppendInt(b, r.Amount, 10)
	}
	return append(b, '}')
}

func (c *call) summary(b []byte, n *inventory.Node) []byte {
	b = append(quoted(b, n.UUID), `:{"resources":{`...)
	for i, r := range n.Inventories {
		b = append(quoted(comma(b, i), r.Class), `:{"capacity":`...)
		b = strconv.AppendFloat(b, math.Trunc(r.Inventory.Capacity())+0, 'f', 0, 64)
		b = append(b, `,"used":`...)
		b = append(strconv.AppendInt(b, r.Used, 10), '}')
	}
	b = append(b, '}')
	if c.v >= 17 {
		b = append(append(append(b, `,"traits":[`...), n.AllTraits...), ']')
	}
	if c.v >= 29 {
		b = append(b, `,"parent_provider_uuid":`...)
		if n.Parent == nil {
			b = append(b, `null`...)
		} else {
			b = quoted(b, n.Parent.UUID)
		}
		b = quoted(append(b, `,"root_provider_uuid":`...), n.Tree.Root.UUID)
	}
	return append(b, '}')
}
