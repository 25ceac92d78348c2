package figure

import (
	"context"
	"encoding/json"
	"time"

	"berth/bench/harness"
	"berth/internal/journal"
	"berth/internal/odl/odltest"
)

// openSynchronous measures what a driver without a journal would do: after the creation of an object is
// committed, the client itself sends the object to the controller. A driver without a journal does not retry
// failed requests, does not keep their order, and loses requests in a crash. The measured API is berth's API
// with a database of its own and without a relay. The parameter `delay` is the time that the OpenDaylight
// stub waits before each answer.
func openSynchronous(delay time.Duration) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(ctx context.Context, s *harness.Stack) (*Subject, error) {
		name := "synchronous_" + delay.String()
		database, err := s.CreateDatabase(ctx, name)
		if err != nil {
			return nil, err
		}
		a, err := s.StartBerth(ctx, name, database, "api")
		if err != nil {
			return nil, err
		}
		controller := harness.NewAPI(s.Stubs.SyncODL)
		createAndSend := func(ctx context.Context, kind string, with harness.Attributes) (string, error) {
			var created map[string]json.RawMessage
			if err := a.Post(ctx, "/networking/v2.0/"+kind+"s", map[string]harness.Attributes{kind: with}, &created); err != nil {
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
			return object.ID, controller.Send(ctx, r.Method,
				odltest.BasePath+r.Path, json.RawMessage(r.Body), nil)
		}
		return &Subject{
			setUp: func(ctx context.Context) error { return harness.DelayAnswers(ctx, controller.Base, delay) },
			op: func(ctx context.Context, _ int) (int, error) {
				ids, err := createNetworkWithPorts(ctx, createAndSend)
				return len(ids), err
			},
			tearDown: func(ctx context.Context) error { return harness.ClearFaults(ctx, controller.Base) },
		}, nil
	}
}
