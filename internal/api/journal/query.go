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

// filter reads the query parameters of a list: state, type, object, limit, order (asc or desc) and after. The query parameter `after` is
// the number of the last journal entry on the previous page.
func filter(query string) (journalstore.EntryFilter, error) {
	f := journalstore.EntryFilter{Limit: defaultLimit, Newest: true}
	values, err := url.ParseQuery(query)
	if err != nil {
		return f, osapi.Fault(http.StatusBadRequest, "", "The query string is malformed.")
	}
	for name, given := range values {
		value := given[0]
		switch {
		case len(given) > 1:
			return f, osapi.Fault(http.StatusBadRequest, "", "The query names '%s' more than once.", name)
		case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
			return f, osapi.Fault(http.StatusBadRequest, "", "The value of '%s' is not UTF-8 text without NUL characters.", name)
		}
		ok := true
		switch name {
		case "state":
			f.State, ok = stateOf(value)
		case "type":
			f.Type = value
		case "object":
			f.Object = value
		case "after":
			f.After, ok = positive(value)
		case "limit":
			var n int64
			n, ok = positive(value)
			f.Limit = int(min(n, maxLimit))
		case "order":
			f.Newest, ok = value == "desc", value == "asc" || value == "desc"
		default:
			return f, osapi.Fault(http.StatusBadRequest, "", "Unknown query parameter '%s'. The parameters are state, type, object, limit, order and after.", name)
		}
		if !ok {
			return f, osapi.Fault(http.StatusBadRequest, "", "'%s' is not a valid value of '%s'.", value, name)
		}
	}
	return f, nil
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
