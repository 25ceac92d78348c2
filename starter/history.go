package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

const historyHelp = `The newest write comes first: when it was, who did it (user/project, or the lease), what it was about and from
which generation to which it moved what. "-" stands for what did not exist before, or does not any more.
Old entries are forgotten; see BERTH_HISTORY_AGE and BERTH_HISTORY_ROWS.`

// historied is what has a history: a word for it in the API, how it is named on the command line, and its columns.
type historied struct {
	plural  string
	id      func(ctx context.Context, s *session, word string) (string, error)
	columns []string
}

var (
	consumerHistory = historied{plural: "consumers", id: consumerID,
		columns: []string{"at", "actor", "cause", "consumer_from", "consumer_to", "provider", "provider_from", "provider_to"}}
	providerHistory = historied{plural: "providers", id: providers.resolve,
		columns: []string{"at", "actor", "cause", "provider_from", "provider_to", "consumer", "consumer_from", "consumer_to"}}
)

func consumerID(_ context.Context, _ *session, word string) (string, error) {
	if !isUUID(word) {
		return "", usage("consumer %q is not a UUID", word)
	}
	return strings.ToLower(word), nil
}

// telling tells the history of something.
func telling(h historied) func(*pflag.FlagSet) action {
	return func(f *pflag.FlagSet) action {
		limit := f.Int("limit", 50, "at most so many entries, up to 1000")
		before := f.Int64("before", 0, "only entries before the one with this id (see -o json)")
		return func(ctx context.Context, s *session, args []string) error {
			id, err := h.id(ctx, s, args[0])
			if err != nil {
				return err
			}
			query := url.Values{"limit": {strconv.Itoa(*limit)}}
			if *before != 0 {
				query.Set("before", strconv.FormatInt(*before, 10))
			}
			path := fmt.Sprintf("/operator/v1/%s/%s/history?%s", h.plural, url.PathEscape(id), query.Encode())
			var answer object
			if err := s.api.do(ctx, "GET", path, nil, &answer); err != nil {
				return err
			}
			changes, ok := objects(answer["changes"])
			if !ok {
				return fail(exitOther, "Is --url a berth API?", "GET %s answered without changes", path)
			}
			return s.out.list(changes, h.columns)
		}
	}
}
