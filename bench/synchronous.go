package main

import (
	"context"
	"encoding/json"
	"time"

	"berth/internal/journal"
	"berth/internal/odl/odltest"
)

// openSynchronous measures what a driver without a journal would do: after the creation of an object is
// committed, the client itself sends the object to the controller. A driver without a journal does not retry
// failed requests, does not keep their order, and loses requests in a crash. The measured API is berth's API
// with a database of its own and without a relay. The parameter `delay` is the time that the OpenDaylight
// stub waits before each answer.
func openSynchronous(delay time.Duration) func(context.Context, *stack) (*subject, error) {
	return func(ctx context.Context, s *stack) (*subject, error) {
		name := "synchronous_" + delay.String()
		database, err := s.createDatabase(ctx, name)
		if err != nil {
			return nil, err
		}
		a, err := s.startBerth(ctx, name, database, "api")
		if err != nil {
			return nil, err
		}
		controller := newAPI(s.stubs.SyncODL)
		createAndSend := func(ctx context.Context, kind string, with attributes) (string, error) {
			var created map[string]json.RawMessage
			if err := a.post(ctx, "/networking/v2.0/"+kind+"s", map[string]attributes{kind: with}, &created); err != nil {
				return "", err
			}
			var object struct{ ID string }
			if err := json.Unmarshal(created[kind], &object); err != nil {
				return "", err
			}
			r, err := journal.WriteRequest(journal.Entry{
				Object:    journal.Ref{Type: kind, ID: object.ID},
				Operation: journal.Create,
				Data:      created[kind],
			})
			if err != nil {
				return "", err
			}
			return object.ID, controller.send(ctx, r.Method,
				odltest.BasePath+r.Path, json.RawMessage(r.Body), nil)
		}
		return &subject{
			setUp: func(ctx context.Context) error { return delayAnswers(ctx, controller.base, delay) },
			op: func(ctx context.Context, _ int) (int, error) {
				ids, err := createNetworkWithPorts(ctx, createAndSend)
				return len(ids), err
			},
			tearDown: func(ctx context.Context) error { return clearFaults(ctx, controller.base) },
		}, nil
	}
}
