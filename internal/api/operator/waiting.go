package operator

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/store/reportstore"
)

// waiting handles the requests about what waits, and for whom.
type waiting struct{ store *reportstore.Store }

// waitingGroup is the JSON format of a number of objects that wait for the same party.
type waitingGroup struct {
	Party string `json:"party"`
	Name  string `json:"name"`
	Host  string `json:"host"`
	Label string `json:"label"` // names the party in a sentence
	Hint  string `json:"hint"`  // a sentence about the objects
	// kind of the objects: port, trunk, journal entry, lease, …
	Objects string     `json:"objects"`
	Count   int64      `json:"count"`
	AtLeast bool       `json:"at_least"`
	Since   *time.Time `json:"since"`
	Longest string     `json:"longest"`
	Listed  bool       `json:"listed"` // GET /waiting/{party} lists the objects
}

// waitingObject is the JSON format of an object that waits for a party.
type waitingObject struct {
	Object   string     `json:"object"` // type/ID
	Name     string     `json:"name"`
	Status   string     `json:"status"`
	Since    time.Time  `json:"since"`
	Deadline *time.Time `json:"deadline"`
	Reason   string     `json:"reason"`
}

type waitingPage struct {
	Objects []waitingObject `json:"objects"`
	Next    *string         `json:"next"` // value of `after` for the next page; null: the page is the last
}

// groups lists the parties for which objects wait; the party for which objects wait the longest comes first.
func (h waiting) groups(r *http.Request) (int, any, error) {
	found, err := h.store.Waiting(r.Context())
	if err != nil {
		return 0, nil, err
	}
	groups := make([]waitingGroup, len(found))
	for i, g := range found {
		groups[i] = waitingGroup{
			Party:   string(g.Party),
			Name:    g.Name,
			Host:    g.Host,
			Label:   g.Party.Label(g.Name, g.Host),
			Hint:    g.Party.Hint(),
			Objects: g.Objects,
			Count:   g.Count,
			AtLeast: g.AtLeast,
			Since:   g.Oldest,
			Longest: g.Longest,
			Listed:  reportstore.HasPages(g.Party),
		}
	}
	return http.StatusOK, map[string]any{"waiting": groups, "cut": len(groups) == reportstore.MaxGroups}, nil
}

// objects lists one page of the objects that wait for a party.
func (h waiting) objects(r *http.Request) (int, any, error) {
	q, err := waitingQuery(r.URL.RawQuery)
	if err != nil {
		return 0, nil, err
	}
	q.Party = reportstore.Party(r.PathValue("party"))
	if !slices.Contains(reportstore.Parties, q.Party) || !reportstore.HasPages(q.Party) {
		return 0, nil, osapi.Fault(
			http.StatusNotFound,
			"",
			"There is no list of objects that wait for the party %q.",
			q.Party,
		)
	}
	found, next, err := h.store.WaitingObjects(r.Context(), q)
	if err != nil {
		return 0, nil, err
	}
	page := waitingPage{Objects: make([]waitingObject, len(found))}
	for i, o := range found {
		page.Objects[i] = waitingObject{
			Object:   o.Type + "/" + o.ID.String(),
			Name:     o.Name,
			Status:   o.Status,
			Since:    o.Since,
			Deadline: o.Deadline,
			Reason:   o.Reason,
		}
	}
	if next != uuid.Nil {
		after := next.String()
		page.Next = &after
	}
	return http.StatusOK, page, nil
}

// waitingQuery reads the query parameters of a page: name, host, after and limit.
func waitingQuery(query string) (reportstore.WaitingQuery, error) {
	q := reportstore.WaitingQuery{Limit: defaultLimit}
	values, err := url.ParseQuery(query)
	if err != nil {
		return q, osapi.Fault(http.StatusBadRequest, "", "The query string is malformed.")
	}
	for name, given := range values {
		valid := true
		switch name {
		case "name":
			q.Name = given[0]
		case "host":
			q.Host = given[0]
		case "after":
			q.After, valid = osapi.UUID(given[0])
		case "limit":
			var n uint64
			n, err = strconv.ParseUint(given[0], 10, 31)
			q.Limit, valid = int(min(n, maxLimit)), err == nil && n > 0
		default:
			return q, osapi.Fault(http.StatusBadRequest, "", "Unknown query parameter '%s'.", name)
		}
		if !valid || len(given) > 1 {
			return q, osapi.Fault(http.StatusBadRequest, "", "'%s' is not a valid value of '%s'.", given[0], name)
		}
	}
	return q, nil
}
