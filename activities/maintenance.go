package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"berth/internal/contract"
)

const (
	// unattended is how long a journal entry that could go on may rest before its workflow is missed.
	unattended = 10 * time.Minute
	sweepBatch = 500
)

// Sweep finds rows that nobody looks after and nudges their workflows: journal entries that rest though nothing
// holds them, and whatever had a workflow that was terminated, cancelled or failed since that moment.
func (a *Activities) Sweep(ctx context.Context, since time.Time) (contract.Swept, error) {
	entries, err := a.Store.SweepEntries(ctx, unattended, sweepBatch)
	if err != nil {
		return contract.Swept{}, err
	}
	lost, err := lostSince(ctx, since)
	if err != nil || len(lost) == 0 {
		return contract.Swept{Entries: len(entries)}, err
	}
	revived, err := a.Store.Revive(ctx, lost)
	return contract.Swept{Entries: len(entries), Revived: int(revived)}, err
}

// lostSince lists the IDs of workflows that ended otherwise than by their own decision.
func lostSince(ctx context.Context, since time.Time) ([]string, error) {
	query := fmt.Sprintf(`WorkflowType IN ('%s', '%s', '%s') AND ExecutionStatus IN ('Failed', 'Canceled', 'Terminated', 'TimedOut') AND CloseTime > '%s'`,
		contract.Port, contract.Lease, contract.JournalEntry, since.UTC().Format(time.RFC3339))
	var ids []string
	for page := []byte(nil); ; {
		r, err := activity.GetClient(ctx).ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: page})
		if err != nil {
			return nil, fmt.Errorf("list lost workflows: %w", err)
		}
		for _, e := range r.GetExecutions() {
			ids = append(ids, e.GetExecution().GetWorkflowId())
		}
		if page = r.GetNextPageToken(); len(page) == 0 {
			return ids, nil
		}
		activity.RecordHeartbeat(ctx)
	}
}
