package workflows_test

import (
	"testing"

	"berth/activities"
	"berth/internal/store"
	"berth/workflows"
)

func TestEveryAttemptOutlastsTheCallInsideIt(t *testing.T) {
	t.Parallel()
	if workflows.OnceAttempt <= activities.BriefCall {
		t.Errorf("a brief call of %s does not end within its attempt of %s", activities.BriefCall, workflows.OnceAttempt)
	}
	if store.Hold <= workflows.OnceAttempt {
		t.Errorf("a hold of %s ends within an attempt of %s", store.Hold, workflows.OnceAttempt)
	}
	if workflows.HeartbeatTimeout <= 2*activities.Heartbeat {
		t.Errorf("a heartbeat every %s is missed within %s", activities.Heartbeat, workflows.HeartbeatTimeout)
	}
	if workflows.CloudAttempt <= activities.CloudCall || workflows.Insistence <= workflows.CloudAttempt {
		t.Errorf("calls of %s, attempts of %s and insistence of %s do not fit into each other", activities.CloudCall, workflows.CloudAttempt, workflows.Insistence)
	}
	if workflows.QuickAttempt <= activities.BriefCall {
		t.Errorf("a brief call of %s does not end within its attempt of %s", activities.BriefCall, workflows.QuickAttempt)
	}
	if workflows.PatientAttempt <= activities.LongCall {
		t.Errorf("a long call of %s does not end within its attempt of %s", activities.LongCall, workflows.PatientAttempt)
	}
}
