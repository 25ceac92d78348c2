package operator

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/auditlog"
	"berth/internal/store/auditstore"
)

// auditRecords handles the requests that read the audit log.
type auditRecords struct{ store *auditstore.Store }

func (a auditRecords) routes() []osapi.Route {
	return []osapi.Route{
		{Method: http.MethodGet, Path: "/audit", Handle: osapi.AdminOnly(a.list)},
		{Method: http.MethodGet, Path: "/audit/export", Handle: osapi.AdminOnly(a.export)},
	}
}

// list lists records of the audit log, the newest first or, with order=asc, the oldest first.
func (a auditRecords) list(r *http.Request) (int, any, error) {
	q, err := auditQuery(r.URL.RawQuery, true)
	if err != nil {
		return 0, nil, err
	}
	page, err := a.store.Page(r.Context(), q)
	return http.StatusOK, page, err
}

// export writes the records as JSON lines, the oldest first. Only one page of records is in memory at a time.
// If berth cannot read the next page, it breaks the connection, so that the client does not take a part of
// the log for the whole log.
func (a auditRecords) export(r *http.Request) (int, any, error) {
	q, err := auditQuery(r.URL.RawQuery, false)
	if err != nil {
		return 0, nil, err
	}
	q.Limit = maxLimit
	first, err := a.store.Page(r.Context(), q)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, osapi.Stream(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/jsonl")
		for page := first; ; {
			if writeLines(w, r, page) != nil {
				return
			}
			if page.NextMarker == 0 {
				return
			}
			q.Marker = page.NextMarker
			var err error
			if page, err = a.store.Page(r.Context(), q); err != nil {
				osapi.BreakConnection(w)
				return
			}
		}
	}), nil
}

// writeLines writes the records of a page, one JSON object in each line.
func writeLines(w http.ResponseWriter, r *http.Request, page auditlog.Page) error {
	if err := osapi.BeginPage(w, r); err != nil {
		return err
	}
	for _, sealed := range page.Records {
		if _, err := w.Write(append(sealed.Line(), '\n')); err != nil {
			return err
		}
	}
	return http.NewResponseController(w).Flush()
}

// auditQuery reads the query parameters of a request for records. Only a list has the parameters `paged`:
// order, marker and limit.
func auditQuery(query string, paged bool) (auditstore.Query, error) {
	q := auditstore.Query{Limit: defaultLimit, Newest: paged}
	values, err := url.ParseQuery(query)
	if err != nil {
		return q, osapi.Fault(http.StatusBadRequest, "", "The query string is malformed.")
	}
	for name, given := range values {
		known, ok := setAuditParameter(&q, name, given[0], paged)
		switch {
		case !known:
			return q, osapi.Fault(http.StatusBadRequest, "", "Unknown query parameter '%s'.", name)
		case len(given) > 1:
			return q, osapi.Fault(http.StatusBadRequest, "", "The query names '%s' more than once.", name)
		case !ok:
			return q, osapi.Fault(http.StatusBadRequest, "", "'%s' is not a valid value of '%s'.",
				given[0], name)
		}
	}
	return q, nil
}

// setAuditParameter sets one parameter of a query. The results say whether the parameter is known, and
// whether its value is valid.
func setAuditParameter(q *auditstore.Query, name, value string, paged bool) (known, ok bool) {
	ok = true
	switch {
	case name == "project":
		q.Project = value
	case name == "user":
		q.User = value
	case name == "object":
		q.ObjectType, q.ObjectID, _ = strings.Cut(value, "/")
		if q.ObjectID == "" {
			q.ObjectType, q.ObjectID = "", value
		}
	case name == "outcome":
		q.Outcome = value
		ok = value == auditlog.Success || value == auditlog.Denied || value == auditlog.Omitted
	case name == "since":
		q.Since, ok = instant(value)
	case name == "until":
		q.Until, ok = instant(value)
	case name == "order" && paged:
		q.Newest, ok = value == "desc", value == "desc" || value == "asc"
	case name == "marker" && paged:
		n, err := strconv.ParseUint(value, 10, 63)
		q.Marker, ok = int64(n), err == nil
	case name == "limit" && paged:
		n, err := strconv.ParseUint(value, 10, 63)
		q.Limit, ok = int(min(n, maxLimit)), err == nil && n > 0
	default:
		return false, false
	}
	return true, ok && value != ""
}

// instant parses a time in RFC 3339. Years before the year 1 and after the year 9999 are not valid.
func instant(value string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, value)
	return at, err == nil && at.UTC().Year() > 0 && at.UTC().Year() <= 9999
}
