package figure

import (
	"context"
	"fmt"
	"net/http"

	"berth/bench/harness"
)

// changesPerNetwork is the number of changes of one network; the creation of the network counts as the first
// change.
const changesPerNetwork = 100

// openUpdates measures the journal entries of many changes of one network. openUpdates checks that the
// controller has the last change.
func openUpdates(ctx context.Context, s *harness.Stack) (*Subject, error) {
	mirrored := harness.NewRowWatcher(ctx, s.Rows, harness.PollInterval, queryUnmirrored, s.Fail)
	var created harness.Recent[string]
	return &Subject{
		op: func(ctx context.Context, _ int) (int, error) {
			id, revision, err := changeNetwork(ctx, s, changesPerNetwork)
			if err != nil {
				return 0, err
			}
			created.Add(id)
			if err := mirrored.Await(ctx, id); err != nil {
				return 0, err
			}
			name, at, err := s.ControllerNetwork(ctx, id)
			if err == nil && (at != revision || name != fmt.Sprint("bench-", changesPerNetwork)) {
				err = fmt.Errorf(
					"network %s at the controller: got revision %d and name %s, want revision %d",
					id, at, name, revision,
				)
			}
			return changesPerNetwork, err
		},
		tearDown: s.AwaitMirrored,
		Details: func(ctx context.Context) ([]harness.Detail, error) {
			entries, err := entryWorkflows(ctx, s, created.Last)
			if err != nil {
				return nil, err
			}
			return harness.HistoryDetails(ctx, s.Temporal, "each entry", entries)
		},
	}, nil
}

// changeNetwork creates a network and changes the network n-1 times. changeNetwork returns the network's last
// revision number.
func changeNetwork(ctx context.Context, s *harness.Stack, n int) (id string, revision int, err error) {
	if id, err = s.API.Create(ctx, "network", harness.Attributes{"name": "bench-1"}); err != nil {
		return "", 0, err
	}
	for i := range n - 1 {
		var changed struct {
			Network struct {
				Revision int `json:"revision_number"`
			}
		}
		body := map[string]harness.Attributes{"network": {"name": fmt.Sprint("bench-", i+2)}}
		if err := s.API.Send(ctx, http.MethodPut, "/networking/v2.0/networks/"+id, body, &changed); err != nil {
			return "", 0, err
		}
		revision = changed.Network.Revision
	}
	return id, revision, nil
}
