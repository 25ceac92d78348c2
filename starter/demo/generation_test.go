package demo

import (
	"strings"
	"testing"

	"berth/starter/cli"
)

func TestRaceWriters_OneSucceedsAndOneConflicts(t *testing.T) {
	t.Parallel()
	conflict := &cli.Error{Err: &cli.APIError{Status: 409, Type: "placement.concurrent_update"}}
	other := &cli.Error{Err: &cli.APIError{Status: 409, Type: "placement.undefined_code"}}
	for name, c := range map[string]struct {
		first, second error
		status        int
		failure       string
	}{
		"the first wins":   {nil, conflict, 204, ""},
		"the second wins":  {conflict, nil, 204, ""},
		"both win":         {nil, nil, 204, "both writers of one generation succeeded"},
		"both lose":        {conflict, conflict, 204, "both writers were rejected"},
		"another conflict": {nil, other, 204, "not rejected with 409 placement.concurrent_update"},
		"another status":   {nil, conflict, 200, "got 200 instead of 204"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			won, lost, err := raceWriters(204, func(writer int) (int, error) {
				if writer == 0 {
					return c.status, c.first
				}
				return c.status, c.second
			})
			switch {
			case c.failure == "" && (err != nil || won.err != nil || lost.err == nil || won.writer == lost.writer):
				t.Errorf(
					"two writers with one generation: winner %v, loser %v, error %v; want one success and one rejection",
					won, lost, err,
				)
			case c.failure != "" && (err == nil || !strings.Contains(err.Error(), c.failure)):
				t.Errorf("two writers with one generation: got error %v, want one with %q", err, c.failure)
			}
		})
	}
}
