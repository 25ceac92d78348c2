package main

import (
	"context"
	"encoding/json"
	"time"

	"berth/internal/journal"
	"berth/internal/odl/odltest"
)

// openSynchronous measures what the journal came to replace: whoever changes an object sends it to the controller, too,
// before going on, once it is committed. Nothing is sent again, kept in order or outlives a crash. The API is berth's,
// over a database of its own whose journal nobody reads.
func openSynchronous(delay time.Duration) func(context.Context, *stack) (*subject, error) {
	return func(ctx context.Context, s *stack) (*subject, error) {
		name := "synchronous_" + delay.String()
		database, err := s.database(ctx, name)
		if err != nil {
			return nil, err
		}
		a, err := s.startBerth(ctx, name, database, "api")
		if err != nil {
			return nil, err
		}
		controller := newAPI(s.standIns.Baseline)
		mirrored := func(ctx context.Context, kind string, with attributes) (string, error) {
			var made map[string]json.RawMessage
			if err := a.post(ctx, "/networking/v2.0/"+kind+"s", map[string]attributes{kind: with}, &made); err != nil {
				return "", err
			}
			var object struct{ ID string }
			if err := json.Unmarshal(made[kind], &object); err != nil {
				return "", err
			}
			r, err := journal.RequestOf(journal.Entry{Object: journal.Ref{Type: kind, ID: object.ID}, Operation: journal.Create, Data: made[kind]})
			if err != nil {
				return "", err
			}
			return object.ID, controller.send(ctx, r.Method, odltest.BasePath+r.Path, json.RawMessage(r.Body), nil)
		}
		return &subject{
			before: func(ctx context.Context) error { return slow(ctx, controller.base, delay) },
			op: func(ctx context.Context, _ int) (int, error) {
				ids, err := plantNetwork(ctx, mirrored)
				return len(ids), err
			},
			after: func(ctx context.Context) error { return heal(ctx, controller.base) },
		}, nil
	}
}
