package relay_test

import (
	"context"
	"testing"

	"go.temporal.io/sdk/client"

	"berth/internal/devstack/temporaltest"
	"berth/internal/store/storetest"
)

// starts records whether each start of a workflow is eager.
type starts struct {
	client.Client
	eager []bool
}

func (s *starts) ExecuteWorkflow(
	ctx context.Context, o client.StartWorkflowOptions, workflow any, args ...any,
) (client.WorkflowRun, error) {
	s.eager = append(s.eager, o.EnableEagerStart)
	return s.Client.ExecuteWorkflow(ctx, o, workflow, args...)
}

func TestDeliver_StartsEagerlyUnlessTheWorkersAreVersioned(t *testing.T) {
	t.Parallel()
	n, s := temporaltest.New(t), storetest.New(t)
	for _, versioned := range []bool{false, true} {
		recorded := &starts{Client: n.Client}
		r := newRelay(s, recorded, n.Name)
		r.Versioned = versioned
		createNetwork(t, s)
		if _, err := r.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(recorded.eager) != 1 || recorded.eager[0] == versioned {
			t.Errorf("starts with Versioned %t: got eager %v, want one start, eager only if false", versioned, recorded.eager)
		}
	}
}
