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
	// maxEnded is the maximum number of ended workflows that one call to Sweep restarts, except if more have
	// ended within a second.
	maxEnded = 2000
	// SweepOverlap is the length of the period that two consecutive rounds of the sweep both search. The
	// rounds overlap because an ended workflow appears in Temporal's list only a short time after its end.
	SweepOverlap = 30 * time.Second
)

// Sweep finds rows without a running workflow and nudges the workflows of these rows. The rows are unblocked
// journal entries that no workflow has examined for staleAfter, and rows whose workflow has failed or was
// terminated or cancelled after the time `since`. Sweep also deletes old rows of the generation history and
// its conflicts, of the notifications to agents and of the journal. If one of these steps fails, Sweep
// continues with the next one. Sweep returns the error of the search for ended workflows, so that it is
// repeated from the same time. The result has the failures of the other steps, because these steps begin anew
// in each round anyway, and must not make the next round repeat the search.
func (a *Activities) Sweep(ctx context.Context, since time.Time) (contract.SweepResult, error) {
	defer startHeartbeat(ctx)()
	var r contract.SweepResult
	var searched error
	var errs [5]error
	r.NudgedEntries, errs[0] = a.nudgeEntries(ctx)
	r.RestartedWorkflows, r.Unsearched, searched = a.restartEnded(ctx, since)
	r.TrimmedHistory, errs[1] = a.trimHistory(ctx)
	errs[2] = a.Store.Inventory.TrimConflicts(ctx, a.HistoryRetention)
	errs[3] = a.trimNotifications(ctx)
	r.TrimmedEntries, errs[4] = a.trimJournal(ctx)
	for _, err := range errs {
		if err != nil {
			activity.GetLogger(ctx).Warn("a step of the sweep failed", "error", err)
			r.Failures = append(r.Failures, err.Error())
		}
	}
	return r, searched
}

// nudgeEntries nudges the workflows of journal entries that no workflow has examined for staleAfter.
func (a *Activities) nudgeEntries(ctx context.Context) (int, error) {
	entries, err := a.Store.Journal.SweepEntries(ctx, staleAfter, sweepBatch)
	return len(entries), err
}

// restartEnded restarts the workflows that have ended abnormally after the time `since` although their row
// exists. If restartEnded leaves some of them to the next call to Sweep, it returns the time after which they
// have ended.
func (a *Activities) restartEnded(ctx context.Context, since time.Time) (int, time.Time, error) {
	ended, unsearched, err := findEnded(ctx, activity.GetClient(ctx), since)
	if err != nil || len(ended) == 0 {
		return 0, unsearched, err
	}
	restarted, err := a.Store.Outbox.RestartWorkflows(ctx, ended)
	return int(restarted), unsearched, err
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

// workflowLister is the part of Temporal's client that findEnded needs.
type workflowLister interface {
	ListWorkflow(
		context.Context, *workflowservice.ListWorkflowExecutionsRequest,
	) (*workflowservice.ListWorkflowExecutionsResponse, error)
	CountWorkflow(
		context.Context, *workflowservice.CountWorkflowExecutionsRequest,
	) (*workflowservice.CountWorkflowExecutionsResponse, error)
}

// findEnded lists the IDs of the workflows that failed or were cancelled, terminated or timed out after the
// time `since`. If these are more than maxEnded, findEnded lists those that ended first, and returns the time
// `unsearched` at which the next search begins: the time until which findEnded has searched, but at least
// SweepOverlap ago.
func findEnded(
	ctx context.Context, c workflowLister, since time.Time,
) (ids []string, unsearched time.Time, err error) {
	query := fmt.Sprintf(
		`WorkflowType IN ('%s') AND ExecutionStatus IN ('Failed', 'Canceled', 'Terminated', 'TimedOut') AND CloseTime > '%s'`,
		strings.Join(contract.EntityWorkflows, "', '"),
		since.UTC().Format(time.RFC3339),
	)
	n, err := countWorkflows(ctx, c, query)
	if err != nil {
		return nil, time.Time{}, err
	}
	if n > maxEnded {
		if unsearched, err = firstEnded(ctx, c, query, since); err != nil {
			return nil, time.Time{}, err
		}
		query = endedUntil(query, unsearched)
		if begin := time.Now().Add(-SweepOverlap); begin.Before(unsearched) {
			unsearched = begin
		}
	}
	for page := []byte(nil); ; {
		r, err := c.ListWorkflow(ctx,
			&workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: page})
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("list ended workflows: %w", err)
		}
		for _, e := range r.GetExecutions() {
			ids = append(ids, e.GetExecution().GetWorkflowId())
		}
		if page = r.GetNextPageToken(); len(page) == 0 {
			return ids, unsearched, nil
		}
	}
}

// firstEnded returns the latest time until which at most maxEnded workflows of a query have ended. Temporal
// lists the latest workflows first, and many servers refuse another order, so firstEnded bisects the period
// after the time `since`. If more workflows have ended within the first second, firstEnded returns the end of
// this second, because the times in the query have no fractions.
func firstEnded(ctx context.Context, c workflowLister, query string, since time.Time) (time.Time, error) {
	few, many, found := time.Duration(0), max(time.Since(since), time.Second), int64(0)
	for many-few > time.Second {
		middle := (few + many) / 2
		n, err := countWorkflows(ctx, c, endedUntil(query, since.Add(middle)))
		if err != nil {
			return time.Time{}, err
		}
		if n <= maxEnded {
			few, found = middle, n
		} else {
			many = middle
		}
	}
	if found == 0 {
		return since.Add(many), nil
	}
	return since.Add(few), nil
}

// endedUntil limits a query to workflows that have ended until the given time.
func endedUntil(query string, until time.Time) string {
	return fmt.Sprintf(`%s AND CloseTime <= '%s'`, query, until.UTC().Format(time.RFC3339))
}

func countWorkflows(ctx context.Context, c workflowLister, query string) (int64, error) {
	n, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	if err != nil {
		return 0, fmt.Errorf("count ended workflows: %w", err)
	}
	return n.GetCount(), nil
}
