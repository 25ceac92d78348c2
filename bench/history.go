package main

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

// histories counts, on average, what Temporal did for these workflows so far. One that does not exist took nothing: a
// journal entry may go along with another one's.
func histories(ctx context.Context, c client.Client, whose string, ids []string) ([]detail, error) {
	var found, events, tasks int
	for _, id := range ids {
		var all []*history.HistoryEvent
		err := insist(ctx, func() (err error) {
			all, err = eventsOf(ctx, c, id)
			return err
		})
		if missing := (*serviceerror.NotFound)(nil); errors.As(err, &missing) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("history of %s: %w", id, err)
		}
		found++
		for _, e := range all {
			if events++; e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				tasks++
			}
		}
	}
	n := float64(len(ids))
	return []detail{
		{"workflows of " + whose, ratio(float64(found), n)},
		{"workflow tasks of " + whose, ratio(float64(tasks), n)},
		{"history events of " + whose, ratio(float64(events), n)},
	}, nil
}

// eventsOf is a workflow's history.
func eventsOf(ctx context.Context, c client.Client, id string) (all []*history.HistoryEvent, err error) {
	for h := c.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); h.HasNext(); {
		e, err := h.Next()
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// recent remembers the last few of many.
type recent[T any] struct {
	mu   sync.Mutex
	last []T
}

const remembered = 48

func (r *recent[T]) add(one T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last = append(r.last, one); len(r.last) > remembered {
		r.last = r.last[1:]
	}
}
