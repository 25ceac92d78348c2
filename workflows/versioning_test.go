package workflows_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/workflows"
)

// behaviors records the behavior of each registered workflow type in Worker Versioning.
type behaviors struct {
	worker.WorkflowRegistry
	found map[string]workflow.VersioningBehavior
}

func (b behaviors) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	b.found[o.Name] = o.VersioningBehavior
}

func TestVersioning_WorkflowsOfObjectsFollowTheCurrentVersionAndShortOnesStay(t *testing.T) {
	t.Parallel()
	got := behaviors{found: map[string]workflow.VersioningBehavior{}}
	for _, queue := range contract.TaskQueues {
		workflows.Register(got, queue)
	}
	want := map[string]workflow.VersioningBehavior{
		contract.Port:               workflow.VersioningBehaviorAutoUpgrade,
		contract.AgentNotifications: workflow.VersioningBehaviorAutoUpgrade,
		contract.Lease:              workflow.VersioningBehaviorAutoUpgrade,
		contract.Webhook:            workflow.VersioningBehaviorAutoUpgrade,
		contract.Pool:               workflow.VersioningBehaviorAutoUpgrade,
		contract.JournalEntry:       workflow.VersioningBehaviorPinned,
		contract.Maintenance:        workflow.VersioningBehaviorPinned,
		contract.FullSync:           workflow.VersioningBehaviorPinned,
		contract.Recovery:           workflow.VersioningBehaviorPinned,
		contract.Audit:              workflow.VersioningBehaviorPinned,
		contract.Repair:             workflow.VersioningBehaviorPinned,
	}
	if d := cmp.Diff(want, got.found); d != "" {
		t.Errorf("behaviors in Worker Versioning (-want +got):\n%s", d)
	}
}
