package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// HistoryDetails returns the average number of workflow tasks and history events of the workflows with the
// given IDs. If no workflow with an ID exists, the ID counts as a workflow with 0 tasks and 0 events, because
// the workflow of one journal entry may also complete other journal entries, which then need no workflow of
// their own.
func HistoryDetails(ctx context.Context, c client.Client, whose string, ids []string) ([]Detail, error) {
	var found, events, tasks int
	for _, id := range ids {
		var all []*history.HistoryEvent
		err := RetryUnavailable(ctx, func() (err error) {
			all, err = historyEvents(ctx, c, id)
			return err
		})
		if missing := (*serviceerror.NotFound)(nil); errors.As(err, &missing) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the history of workflow %s: %w", id, err)
		}
		found++
		for _, e := range all {
			if events++; e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				tasks++
			}
		}
	}
	n := float64(len(ids))
	return []Detail{
		{"workflows of " + whose, Ratio(float64(found), n)},
		{"workflow tasks of " + whose, Ratio(float64(tasks), n)},
		{"history events of " + whose, Ratio(float64(events), n)},
	}, nil
}

// historyEvents returns the history of the current run of a workflow.
func historyEvents(ctx context.Context, c client.Client, id string) (all []*history.HistoryEvent, err error) {
	for h := c.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); h.HasNext(); {
		e, err := h.Next()
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// Recent keeps the recentLimit values that were added last.
type Recent[T any] struct {
	mu   sync.Mutex
	Last []T
}

const recentLimit = 48

// Add adds a value.
func (r *Recent[T]) Add(one T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Last = append(r.Last, one); len(r.Last) > recentLimit {
		r.Last = r.Last[1:]
	}
}
