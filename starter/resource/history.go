package resource

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"berth/starter/cli"
)

const historyHelp = `The newest write comes first. Each line has the time, the actor (user/project, or the lease), the cause, and the
generations before and after. "-" stands for a consumer or provider that did not exist before or after the write.
BERTH_HISTORY_AGE and BERTH_HISTORY_ROWS limit how many writes are kept.`

// historySource is a kind of object that has a generation history: a provider or a consumer.
type historySource struct {
	plural  string
	id      func(ctx context.Context, s *cli.Session, word string) (string, error)
	columns []string
}

var (
	consumerHistory = historySource{plural: "consumers", id: parseConsumerID,
		columns: []string{
			"at",
			"actor",
			"cause",
			"consumer_from",
			"consumer_to",
			"provider",
			"provider_from",
			"provider_to",
		}}
	providerHistory = historySource{plural: "providers", id: Providers.Resolve,
		columns: []string{
			"at",
			"actor",
			"cause",
			"provider_from",
			"provider_to",
			"consumer",
			"consumer_from",
			"consumer_to",
		}}
)

func parseConsumerID(_ context.Context, _ *cli.Session, word string) (string, error) {
	if !cli.IsUUID(word) {
		return "", cli.UsageError("consumer %q is not a UUID", word)
	}
	return strings.ToLower(word), nil
}

// historyCommand makes the command that lists the history of an object.
func historyCommand(h historySource) func(*pflag.FlagSet) cli.Action {
	return func(f *pflag.FlagSet) cli.Action {
		limit := f.Int("limit", 50, "maximum number of entries, at most 1000")
		before := f.Int64("before", 0, "list only entries before the entry with this id (-o json shows ids)")
		return func(ctx context.Context, s *cli.Session, args []string) error {
			id, err := h.id(ctx, s, args[0])
			if err != nil {
				return err
			}
			query := url.Values{"limit": {strconv.Itoa(*limit)}}
			if *before != 0 {
				query.Set("before", strconv.FormatInt(*before, 10))
			}
			path := fmt.Sprintf("/operator/v1/%s/%s/history?%s", h.plural, url.PathEscape(id), query.Encode())
			var answer cli.Object
			if err := s.API.Do(ctx, "GET", path, nil, &answer); err != nil {
				return err
			}
			changes, ok := cli.Objects(answer["changes"])
			if !ok {
				return cli.Errorf(cli.ExitOther, "Is --url a berth API?",
					"GET %s answered without changes", path)
			}
			return s.Output.PrintList(changes, h.columns)
		}
	}
}
