package reconciler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"berth/internal/contract"
)

const (
	// endedOverlap is the length of the period that two consecutive searches both cover, because an ended
	// workflow appears in Temporal's visibility only some time after its end, and because clocks differ.
	endedOverlap = 30 * time.Second
	// firstEndedPeriod is how far back the first search of a process goes.
	firstEndedPeriod = 2 * time.Minute
	// maxEnded is the maximum number of workflows that one search restarts. If more workflows have ended, the
	// comparison of all rows finds them later.
	maxEnded = 2000
)

// endedSearch finds workflows that a person has terminated or cancelled. The sweep also restarts workflows
// that failed; endedSearch leaves them to the sweep, because a workflow that always fails would otherwise be
// restarted all the time.
type endedSearch struct {
	*Reconciler
	since     time.Time
	restarted map[string]time.Time // when a run was restarted, by run ID
	unread    []unreadReport       // reports that ended runs had not applied
}

func newEndedSearch(r *Reconciler) *endedSearch {
	return &endedSearch{
		Reconciler: r,
		since:      time.Now().Add(-firstEndedPeriod),
		restarted:  map[string]time.Time{},
	}
}

// restart restarts the workflows that have ended since the last search and whose row exists.
func (s *endedSearch) restart(ctx context.Context) error {
	begin := time.Now()
	query := fmt.Sprintf(
		`WorkflowType IN ('%s') AND ExecutionStatus IN ('Canceled', 'Terminated') AND CloseTime > '%s'`,
		strings.Join(contract.EntityWorkflows, "', '"),
		s.since.Add(-endedOverlap).UTC().Format(time.RFC3339),
	)
	var ids, runs []string
	for page := []byte(nil); len(ids) < maxEnded; {
		r, err := withCallTimeout(
			ctx,
			"list ended workflows",
			func(ctx context.Context) (*workflowservice.ListWorkflowExecutionsResponse, error) {
				return s.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
					Query:         query,
					PageSize:      pageSize,
					NextPageToken: page,
				})
			},
		)
		if err != nil {
			return err
		}
		for _, e := range r.GetExecutions() {
			if _, done := s.restarted[e.GetExecution().GetRunId()]; !done {
				ids = append(ids, e.GetExecution().GetWorkflowId())
				runs = append(runs, e.GetExecution().GetRunId())
			}
		}
		if page = r.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	if err := s.Reconciler.restart(ctx, "ended", ids); err != nil {
		return err
	}
	for i, run := range runs {
		if err := s.collectUnread(ctx, ids[i], run); err != nil {
			return err
		}
		s.restarted[run] = begin
	}
	for run, at := range s.restarted {
		if begin.Sub(at) > 2*firstEndedPeriod {
			delete(s.restarted, run)
		}
	}
	s.since = begin
	return s.resendUnread(ctx)
}
