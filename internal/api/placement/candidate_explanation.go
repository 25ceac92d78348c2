package placement

import (
	"net/http"

	"berth/internal/api/osapi"
	"berth/internal/inventory"
	"berth/internal/store/inventorystore"
)

// explanationView is the JSON format of the explanation of a query for allocation candidates.
type explanationView struct {
	Examined   examinedView   `json:"examined"`
	Groups     []groupView    `json:"groups"`
	Trees      []removalView  `json:"trees"`
	Candidates candidatesView `json:"candidates"`
}

type examinedView struct {
	Trees     int  `json:"trees"`
	Providers int  `json:"providers"`
	Cut       bool `json:"cut"` // there are more trees than the search has examined
}

// groupView explains one part of the query that one provider must serve: a resource class of the group
// without a suffix, or a group with a suffix.
type groupView struct {
	Suffix        string           `json:"suffix"`
	Resources     map[string]int64 `json:"resources"`
	Filters       []removalView    `json:"filters"`
	ProvidersLeft int              `json:"providers_left"`
	TreesLeft     int              `json:"trees_left"`
}

// removalView counts what one filter removed.
type removalView struct {
	Filter    string        `json:"filter"`
	Providers int           `json:"providers"`
	Trees     int           `json:"trees"`
	Examples  []exampleView `json:"examples"`
}

type exampleView struct {
	UUID   string `json:"uuid"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// candidatesView says what GET /allocation_candidates returns for the query.
type candidatesView struct {
	Trees    int  `json:"trees"`    // trees with a candidate
	Returned int  `json:"returned"` // candidates in the answer
	Limit    *int `json:"limit"`    // of the query or of BERTH_CANDIDATES_MAX; null: none
	Cut      bool `json:"cut"`      // there are more candidates than returned
}

// ExplainCandidates returns a handler that explains a query of GET /allocation_candidates at the newest
// microversion: which filter removed how many providers and trees, and whether the list of candidates was
// cut.
func ExplainCandidates(s *inventorystore.Store, limits Candidates) osapi.Handler {
	h := &handler{store: s, candidates: limits}
	return func(r *http.Request) (int, any, error) {
		view, err := h.explainCandidates(&call{Request: r, v: newest})
		err = prefixMessage(err, "Invalid resource class in resources parameter: ", inventory.UnknownClass)
		return http.StatusOK, view, translate(err)
	}
}

func (h *handler) explainCandidates(c *call) (v explanationView, err error) {
	query, err := c.candidateQuery()
	if err != nil {
		return v, err
	}
	e, names, err := h.store.ExplainCandidates(c.Context(), query)
	if err != nil {
		return v, err
	}
	query.AllClasses, query.WithTraits = false, false
	query.Limits = h.candidates.searchBounds(query.Limits.Candidates)
	limit := query.Limits.Candidates
	if limit > 0 {
		query.Limits.Candidates++ // one more candidate shows whether the list is cut
	}
	found, err := h.store.Candidates(c.Context(), query)
	if err != nil {
		return v, err
	}
	v = explanationView{
		Examined: examinedView{e.Trees, e.Providers, e.Cut},
		Groups:   []groupView{},
		Trees:    removals(e.Combination, names),
		Candidates: candidatesView{
			Trees:    e.CandidateTrees,
			Returned: len(found.Candidates),
			Cut:      found.Bounded,
		},
	}
	if limit > 0 {
		v.Candidates.Limit, v.Candidates.Returned = &limit, min(len(found.Candidates), limit)
		v.Candidates.Cut = found.Bounded || len(found.Candidates) > limit
	}
	for _, s := range e.Slots {
		group := groupView{
			Suffix:        s.Suffix,
			Resources:     map[string]int64{},
			Filters:       removals(s.Removals, names),
			ProvidersLeft: s.Providers,
			TreesLeft:     s.Trees,
		}
		for _, r := range s.Resources {
			group.Resources[r.Class] = r.Amount
		}
		v.Groups = append(v.Groups, group)
	}
	return v, nil
}

func removals(all []inventory.Removal, names map[string]string) []removalView {
	views := []removalView{}
	for _, r := range all {
		view := removalView{
			Filter:    r.Filter,
			Providers: r.Providers,
			Trees:     r.Trees,
			Examples:  []exampleView{},
		}
		for _, example := range r.Examples {
			view.Examples = append(view.Examples,
				exampleView{example.UUID, names[example.UUID], example.Reason})
		}
		views = append(views, view)
	}
	return views
}
