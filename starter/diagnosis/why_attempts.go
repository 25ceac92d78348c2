package diagnosis

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"

	"berth/starter/cli"
)

// attempts are the attempts of an activity that Temporal retries.
type attempts struct {
	Activity  string     `json:"activity"`
	Failed    int32      `json:"failed"`
	Running   bool       `json:"running"`
	LastError string     `json:"last_error"`
	Next      *time.Time `json:"next_attempt,omitempty"`
}

func attemptsOf(a *workflow.PendingActivityInfo) attempts {
	found := attempts{
		Activity:  a.GetActivityType().GetName(),
		Failed:    a.GetAttempt() - 1,
		LastError: a.GetLastFailure().GetMessage(),
		Running:   a.GetState() != enums.PENDING_ACTIVITY_STATE_SCHEDULED,
	}
	if next := a.GetScheduledTime(); next != nil && !found.Running {
		at := next.AsTime()
		found.Next = &at
	}
	return found
}

// sentence says how many attempts have failed, why the last one failed, and when the next one begins.
func (a attempts) sentence(now time.Time) string {
	next := "the next one waits for a worker"
	switch {
	case a.Running:
		next = "the next one is running"
	case a.Next != nil && a.Next.After(now):
		next = fmt.Sprintf("the next one begins at %s (in %s)",
			a.Next.Local().Format(time.RFC3339), a.Next.Sub(now).Round(time.Second))
	}
	return fmt.Sprintf("%s: %d attempts have failed, %s; the last failure is: %s",
		a.Activity, a.Failed, next, a.LastError)
}

// addAttempts adds the activities of the workflow that have failed and that Temporal retries. If Temporal
// does not answer, the explanation stays as it is.
func (e *explanation) addAttempts(ctx context.Context, s *cli.Session, id string) {
	c, err := s.Temporal(ctx)
	if err != nil {
		return
	}
	ctx, cancel := s.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetAttempt() > 1 {
			e.Attempts = append(e.Attempts, attemptsOf(a))
		}
	}
}
