package activities

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"berth/internal/contract"
)

const (
	// unattended is how long a journal entry that could go on may rest before its workflow is missed.
	unattended = 10 * time.Minute
	sweepBatch = 500
	// trimBatch entries of the generation history are deleted at once, for so long that the attempt does not end.
	trimBatch = 5000
	trimTime  = 4 * time.Second
	// journalBatch entries are looked at, and at most deleted, at once.
	journalBatch = 1000
)

// Sweep finds rows that nobody looks after and nudges their workflows: journal entries that rest though nothing
// holds them, and whatever had a workflow that was terminated, cancelled or failed since that moment. It also
// forgets what is too old of the generation history.
func (a *Activities) Sweep(ctx context.Context, since time.Time) (contract.SweepResult, error) {
	defer alive(ctx)()
	entries, err := a.Store.SweepEntries(ctx, unattended, sweepBatch)
	if err != nil {
		return contract.SweepResult{}, err
	}
	swept := contract.SweepResult{NudgedEntries: len(entries)}
	lost, err := lostSince(ctx, since)
	if err != nil {
		return swept, err
	}
	if len(lost) > 0 {
		revived, err := a.Store.Revive(ctx, lost)
		if swept.RestartedWorkflows = int(revived); err != nil {
			return swept, err
		}
	}
	if swept.TrimmedHistory, err = a.forget(ctx); err != nil {
		return swept, err
	}
	if _, err := a.Store.TrimAnnouncements(ctx, trimBatch); err != nil {
		return swept, err
	}
	swept.TrimmedEntries, err = a.trimJournal(ctx)
	return swept, err
}

// trimJournal deletes completed journal entries that are too old, batch by batch. What is left over when it has done
// much is left to the next round.
func (a *Activities) trimJournal(ctx context.Context) (int64, error) {
	if a.KeepJournal == 0 {
		return 0, nil
	}
	trimmed, after := int64(0), int64(0)
	for begin := time.Now(); time.Since(begin) < trimTime; {
		next, n, err := a.Store.TrimJournal(ctx, a.KeepJournal, after, journalBatch)
		trimmed += n
		if err != nil || next == 0 {
			return trimmed, err
		}
		after = next
	}
	return trimmed, nil
}

// forget trims the generation history. What is left over when it has done much is left to the next round.
func (a *Activities) forget(ctx context.Context) (int64, error) {
	forgotten := int64(0)
	for begin := time.Now(); time.Since(begin) < trimTime; {
		n, err := a.Store.TrimHistory(ctx, a.Keep, trimBatch)
		forgotten += n
		if err != nil || n < trimBatch {
			return forgotten, err
		}
	}
	return forgotten, nil
}

// lostSince lists the IDs of workflows that ended otherwise than by their own decision.
func lostSince(ctx context.Context, since time.Time) ([]string, error) {
	query := fmt.Sprintf(`WorkflowType IN ('%s') AND ExecutionStatus IN ('Failed', 'Canceled', 'Terminated', 'TimedOut') AND CloseTime > '%s'`,
		strings.Join(contract.EntityWorkflows, "', '"), since.UTC().Format(time.RFC3339))
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
	}
}
