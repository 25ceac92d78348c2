package main

import (
	"context"
	"fmt"
	"net/http"
)

// changesPerNetwork is the number of changes of one network; the creation of the network counts as the first
// change.
const changesPerNetwork = 100

// openUpdates measures the journal entries of many changes of one network. openUpdates checks that the
// controller has the last change.
func openUpdates(ctx context.Context, s *stack) (*subject, error) {
	mirrored := newRowWatcher(ctx, s.rows, pollInterval, queryUnmirrored, s.fail)
	var created recent[string]
	return &subject{
		op: func(ctx context.Context, _ int) (int, error) {
			id, revision, err := changeNetwork(ctx, s, changesPerNetwork)
			if err != nil {
				return 0, err
			}
			created.add(id)
			if err := mirrored.await(ctx, id); err != nil {
				return 0, err
			}
			name, at, err := s.controllerNetwork(ctx, id)
			if err == nil && (at != revision || name != fmt.Sprint("bench-", changesPerNetwork)) {
				err = fmt.Errorf(
					"network %s at the controller: got revision %d and name %s, want revision %d",
					id, at, name, revision,
				)
			}
			return changesPerNetwork, err
		},
		tearDown: s.awaitMirrored,
		details: func(ctx context.Context) ([]detail, error) {
			entries, err := entryWorkflows(ctx, s, created.last)
			if err != nil {
				return nil, err
			}
			return historyDetails(ctx, s.temporal, "each entry", entries)
		},
	}, nil
}

// changeNetwork creates a network and changes the network n-1 times. changeNetwork returns the network's last
// revision number.
func changeNetwork(ctx context.Context, s *stack, n int) (id string, revision int, err error) {
	if id, err = s.api.create(ctx, "network", attributes{"name": "bench-1"}); err != nil {
		return "", 0, err
	}
	for i := range n - 1 {
		var changed struct {
			Network struct {
				Revision int `json:"revision_number"`
			}
		}
		body := map[string]attributes{"network": {"name": fmt.Sprint("bench-", i+2)}}
		if err := s.api.send(ctx, http.MethodPut, "/networking/v2.0/networks/"+id, body, &changed); err != nil {
			return "", 0, err
		}
		revision = changed.Network.Revision
	}
	return id, revision, nil
}
