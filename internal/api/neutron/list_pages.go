package neutron

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"berth/internal/network/attribute"
	"berth/internal/store/db"
)

// pageItems is the maximum number of objects of a list that berth reads at once. A port can have 200 kB.
var pageItems = 50

// listPages reads the objects of a list request page by page. It first reads the IDs of all objects, so that
// each object that exists all the time is in the list exactly once, whatever changes between two pages.
type listPages[N, C any] struct {
	res    resource[N, C]
	fields []string
	access *access
	first  []N         // the first page
	rest   []uuid.UUID // the objects after the pages that have been read
	all    []uuid.UUID
}

// readList reads the first page of a list and, if the list has more objects than a page, the IDs of all
// objects.
func (res resource[N, C]) readList(r *http.Request, l db.Listing) (*listPages[N, C], error) {
	p := &listPages[N, C]{res: res, fields: l.Fields, access: accessOf(r)}
	start, cut := l, res.ids != nil && (l.Limit == 0 || l.Limit > pageItems)
	if cut {
		start.Limit = pageItems + 1
	}
	var err error
	if p.first, err = res.listVisible(r.Context(), start); err != nil {
		return nil, err
	}
	if !cut || len(p.first) <= pageItems {
		for _, n := range p.first {
			p.all = append(p.all, res.id(n))
		}
		return p, nil
	}
	p.first = nil
	p.all, err = res.visibleIDs(r.Context(), l)
	p.rest = p.all
	return p, err
}

// next returns the views of the next page.
func (p *listPages[N, C]) next(ctx context.Context) (items []any, last bool, err error) {
	found := p.first
	if p.first = nil; len(p.rest) > 0 {
		if found, err = p.read(ctx); err != nil {
			return nil, false, err
		}
	}
	items = make([]any, len(found))
	for i, n := range found {
		items[i] = attribute.Select(p.res.view(n, p.access), p.fields)
	}
	return items, len(p.rest) == 0, nil
}

// read reads the objects of the next page.
func (p *listPages[N, C]) read(ctx context.Context) ([]N, error) {
	ids := p.rest[:min(pageItems, len(p.rest))]
	p.rest = p.rest[len(ids):]
	found, err := p.res.listVisible(
		ctx,
		db.Listing{Where: []db.Condition{db.OneOfIDs("id", ids)}, Fields: p.fields},
	)
	at := make(map[uuid.UUID]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	slices.SortFunc(found, func(a, b N) int { return at[p.res.id(a)] - at[p.res.id(b)] })
	return found, err
}
