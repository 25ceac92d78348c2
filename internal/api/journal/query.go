package journal

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"berth/internal/api/osapi"
	"berth/internal/journal"
	"berth/internal/store/journalstore"
)

// Limits of a list of entries.
const (
	defaultLimit = 200
	maxLimit     = 1000
)

// filter reads the query parameters of a list: state, type, object, limit, order (asc or desc) and after. The
// query parameter `after` is the number of the last journal entry on the previous page.
func filter(query string) (journalstore.EntryFilter, error) {
	f := journalstore.EntryFilter{Limit: defaultLimit, Newest: true}
	return f, readQuery(
		query,
		"state, type, object, limit, order and after",
		func(name, value string) (known, valid bool) {
			valid = true
			switch name {
			case "state":
				f.State, valid = stateOf(value)
			case "type":
				f.Type = value
			case "object":
				f.Object = value
			case "after":
				f.After, valid = positive(value)
			case "limit":
				f.Limit, valid = limitOf(value)
			case "order":
				f.Newest, valid = value == "desc", value == "asc" || value == "desc"
			default:
				return false, false
			}
			return true, valid
		},
	)
}

// readQuery calls `set` for each parameter of a query. The function `set` reports whether it knows the
// parameter, and whether the value is valid. The text `parameters` lists the parameters that `set` knows.
func readQuery(query, parameters string, set func(name, value string) (known, valid bool)) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return osapi.Fault(http.StatusBadRequest, "", "The query string is malformed.")
	}
	for name, given := range values {
		value := given[0]
		switch {
		case len(given) > 1:
			return osapi.Fault(http.StatusBadRequest, "", "The query names '%s' more than once.", name)
		case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
			return osapi.Fault(http.StatusBadRequest, "",
				"The value of '%s' is not UTF-8 text without NUL characters.", name)
		}
		switch known, valid := set(name, value); {
		case !known:
			return osapi.Fault(http.StatusBadRequest, "",
				"Unknown query parameter '%s'. The parameters are %s.", name, parameters)
		case !valid:
			return osapi.Fault(http.StatusBadRequest, "", "'%s' is not a valid value of '%s'.", value, name)
		}
	}
	return nil
}

// limitOf reads the maximum number of items of a page.
func limitOf(value string) (int, bool) {
	n, ok := positive(value)
	return int(min(n, maxLimit)), ok
}

func stateOf(value string) (journal.State, bool) {
	switch s := journal.State(value); s {
	case journal.Pending, journal.Processing, journal.Completed, journal.Failed:
		return s, true
	}
	return "", false
}

// positive reads a positive decimal integer.
func positive(value string) (int64, bool) {
	n, err := strconv.ParseUint(value, 10, 63)
	return int64(n), err == nil && n > 0
}

func seqOf(r *http.Request) (int64, error) {
	seq, ok := positive(r.PathValue("seq"))
	if !ok {
		return 0, osapi.Fault(http.StatusNotFound, "", "There is no journal entry %q.", r.PathValue("seq"))
	}
	return seq, nil
}
