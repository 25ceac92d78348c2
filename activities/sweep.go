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
	// staleAfter is how long no workflow may have examined an unblocked journal entry before Sweep assumes
	// that the entry's workflow is lost.
	staleAfter = 10 * time.Minute
	// sweepBatch is the maximum number of journal entries whose workflows one call to Sweep nudges.
	sweepBatch = 500
	// trimBatch is how many rows of the generation history or notifications one statement deletes.
	trimBatch = 5000
	// journalBatch is how many journal entries one SQL statement of trimJournal examines; the statement
	// deletes at most that many entries.
	journalBatch = 1000
)

// Sweep finds rows without a running workflow and nudges the workflows of these rows. The rows are unblocked
// journal entries that no workflow has examined for staleAfter, and rows whose workflow has failed or was
// terminated or cancelled after the time `since`. Sweep also deletes old rows of the generation history and
// its conflicts, of the notifications to agents and of the journal.
func (a *Activities) Sweep(ctx context.Context, since time.Time) (contract.SweepResult, error) {
	defer startHeartbeat(ctx)()
	entries, err := a.Store.Journal.SweepEntries(ctx, staleAfter, sweepBatch)
	if err != nil {
		return contract.SweepResult{}, err
	}
	result := contract.SweepResult{NudgedEntries: len(entries)}
	ended, err := endedAbnormally(ctx, since)
	if err != nil {
		return result, err
	}
	if len(ended) > 0 {
		restarted, err := a.Store.Outbox.RestartWorkflows(ctx, ended)
		if result.RestartedWorkflows = int(restarted); err != nil {
			return result, err
		}
	}
	if result.TrimmedHistory, err = a.trimHistory(ctx); err != nil {
		return result, err
	}
	if err := a.Store.Inventory.TrimConflicts(ctx, a.HistoryRetention); err != nil {
		return result, err
	}
	if err := a.trimNotifications(ctx); err != nil {
		return result, err
	}
	result.TrimmedEntries, err = a.trimJournal(ctx)
	return result, err
}

// trimJournal deletes finished runs and completed journal entries that are older than their retention.
// trimJournal deletes the journal entries in batches. After Timeouts.Trim, trimJournal leaves the remaining
// entries to the next call to Sweep.
func (a *Activities) trimJournal(ctx context.Context) (int64, error) {
	if a.JournalRetention == 0 {
		return 0, nil
	}
	if err := a.Store.Mirror.TrimRuns(ctx, a.JournalRetention); err != nil {
		return 0, err
	}
	deleted, after := int64(0), int64(0)
	for begin := time.Now(); time.Since(begin) < a.Timeouts.Trim; {
		next, n, err := a.Store.Journal.TrimJournal(ctx, a.JournalRetention, after, journalBatch)
		deleted += n
		if err != nil || next == 0 {
			return deleted, err
		}
		after = next
	}
	return deleted, nil
}

// trimHistory deletes old rows of the generation history. After Timeouts.Trim,
// trimHistory leaves the remaining rows to the next call to Sweep.
func (a *Activities) trimHistory(ctx context.Context) (int64, error) {
	return a.trimBatches(func() (int64, error) {
		return a.Store.Inventory.TrimHistory(ctx, a.HistoryRetention, trimBatch)
	})
}

// trimNotifications deletes notifications to agents that were sent long ago. After Timeouts.Trim,
// trimNotifications leaves the remaining notifications to the next call to Sweep.
func (a *Activities) trimNotifications(ctx context.Context) error {
	_, err := a.trimBatches(func() (int64, error) { return a.Store.Notifications.Trim(ctx, trimBatch) })
	return err
}

// trimBatches calls the function `trim`, which deletes up to trimBatch rows, until it deletes fewer, but not
// for longer than Timeouts.Trim.
func (a *Activities) trimBatches(trim func() (int64, error)) (int64, error) {
	deleted := int64(0)
	for begin := time.Now(); time.Since(begin) < a.Timeouts.Trim; {
		n, err := trim()
		deleted += n
		if err != nil || n < trimBatch {
			return deleted, err
		}
	}
	return deleted, nil
}

// endedAbnormally lists the IDs of the workflows that failed or were cancelled, terminated or timed out after
// the given time.
func endedAbnormally(ctx context.Context, since time.Time) ([]string, error) {
	query := fmt.Sprintf(
		`WorkflowType IN ('%s') AND ExecutionStatus IN ('Failed', 'Canceled', 'Terminated', 'TimedOut') AND CloseTime > '%s'`,
		strings.Join(contract.EntityWorkflows, "', '"),
		since.UTC().Format(time.RFC3339),
	)
	var ids []string
	for page := []byte(nil); ; {
		r, err := activity.GetClient(ctx).
			ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: page})
		if err != nil {
			return nil, fmt.Errorf("list ended workflows: %w", err)
		}
		for _, e := range r.GetExecutions() {
			ids = append(ids, e.GetExecution().GetWorkflowId())
		}
		if page = r.GetNextPageToken(); len(page) == 0 {
			return ids, nil
		}
	}
}
