package main

import (
	"context"
	"fmt"
	"net/http"
)

// operations is how often one object is changed.
const operations = 100

// openUpdates measures a storm of changes of one object: all are mirrored in their order, and the
// controller ends with the last.
func openUpdates(ctx context.Context, s *stack) (*subject, error) {
	done := watch(ctx, s.rows, lookEvery, unfinished, s.fail)
	var made recent[string]
	return &subject{
		op: func(ctx context.Context, _ int) (int, error) {
			id, revision, err := s.change(ctx, operations)
			if err != nil {
				return 0, err
			}
			made.add(id)
			if err := done.await(ctx, id); err != nil {
				return 0, err
			}
			name, at, err := s.shows(ctx, id)
			if err == nil && (at != revision || name != fmt.Sprint("bench-", operations)) {
				err = fmt.Errorf("the controller has network %s at revision %d, called %s: there was revision %d", id, at, name, revision)
			}
			return operations, err
		},
		after: s.settled,
		close: func(ctx context.Context) ([]detail, error) {
			entries, err := s.entriesOf(ctx, made.last)
			if err != nil {
				return nil, err
			}
			return histories(ctx, s.temporal, "each entry", entries)
		},
	}, nil
}

// change makes a network and changes it, n operations together.
func (s *stack) change(ctx context.Context, n int) (id string, revision int, err error) {
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
