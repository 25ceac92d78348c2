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

// Candidates says how candidates are looked for.
type Candidates struct {
	Max        int  // at most so many, whatever the limit of a request; 0 for no maximum
	DepthFirst bool // all of a tree before the next one, instead of one of each in turn
	Random     bool // the trees in another order each time
}

// bounds are those of one search whose request asks for at most limit candidates; 0 is any number.
func (s Candidates) bounds(limit int) inventory.Bounds {
	b := inventory.Bounds{Candidates: limit, DepthFirst: s.DepthFirst}
	if s.Max > 0 && (limit == 0 || limit > s.Max) {
		b.Candidates = s.Max
	}
	if s.Random {
		b.Seed = rand.Uint64() | 1
	}
	return b
}

func (h *room) listCandidates(c *call) (int, any, error) {
	query, err := c.candidateQuery()
	if err != nil {
		return 0, nil, err
	}
	query.Bounds = h.candidates.bounds(query.Bounds.Candidates)
	found, err := h.store.Candidates(c.Context(), query)
	if err != nil {
		return 0, nil, prefixed(err, "Invalid resource class in resources parameter: ", inventory.UnknownClass)
	}
	c.modified(time.Time{})
	return http.StatusOK, c.candidates(found), nil
}

// candidates writes what was found. The answer may be long, and is made of UUIDs, names of classes and traits,
// suffixes and numbers only, none of which JSON escapes: it is put together as text.
func (c *call) candidates(f *inventory.Found) []byte {
	described := f.Described()
	b := append([]byte(nil), `{"allocation_requests":[`...)
	var portions []inventory.Portion
	for i, candidate := range f.Candidates {
		portions = f.Portions(candidate, portions)
		before := len(b)
		b = c.request(comma(b, i), f, candidate, portions)
		b = ahead(b, i, len(b)-before, len(f.Candidates))
	}
	b = append(b, `],"provider_summaries":{`...)
	for i, n := range described {
		before := len(b)
		b = c.summary(comma(b, i), n)
		b = ahead(b, i, len(b)-before, len(described))
	}
	return append(b, `}}`...)
}

// ahead makes room for the rest of a list once its first member is written: the others are about as long.
func ahead(b []byte, i, length, count int) []byte {
	if i > 0 {
		return b
	}
	return slices.Grow(b, length*count+length*count/8)
}

// comma goes before every member of a list but the first.
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

func (c *call) request(b []byte, f *inventory.Found, candidate inventory.Candidate, portions []inventory.Portion) []byte {
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

func amounts(b []byte, resources []inventory.Amount) []byte {
	b = append(b, `"resources":{`...)
	for i, r := range resources {
		b = append(quoted(comma(b, i), r.Class), ':')
		b = strconv.AppendInt(b, r.Amount, 10)
	}
	return append(b, '}')
}

func (c *call) summary(b []byte, n *inventory.Node) []byte {
	b = append(quoted(b, n.UUID), `:{"resources":{`...)
	for i, r := range n.Rooms {
		b = append(quoted(comma(b, i), r.Class), `:{"capacity":`...)
		b = strconv.AppendFloat(b, math.Trunc(r.Inventory.Capacity())+0, 'f', 0, 64)
		b = append(b, `,"used":`...)
		b = append(strconv.AppendInt(b, r.Used, 10), '}')
	}
	b = append(b, '}')
	if c.v >= 17 {
		b = append(b, `,"traits":[`...)
		for i, trait := range n.AllTraits {
			b = quoted(comma(b, i), trait)
		}
		b = append(b, ']')
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
