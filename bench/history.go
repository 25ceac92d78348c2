package main

import (
	"context"
	"fmt"
	"sync"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// histories counts, on average, what Temporal did for these workflows so far.
func histories(ctx context.Context, c client.Client, whose string, ids []string) ([]detail, error) {
	var events, tasks int
	for _, id := range ids {
		for h := c.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); h.HasNext(); {
			e, err := h.Next()
			if err != nil {
				return nil, fmt.Errorf("history of %s: %w", id, err)
			}
			events++
			if e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				tasks++
			}
		}
	}
	n := float64(len(ids))
	return []detail{
		{"workflow tasks of " + whose, ratio(float64(tasks), n)},
		{"history events of " + whose, ratio(float64(events), n)},
	}, nil
}

// recent remembers the last few of many.
type recent[T any] struct {
	mu   sync.Mutex
	last []T
}

const remembered = 12

func (r *recent[T]) add(one T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last = append(r.last, one); len(r.last) > remembered {
		r.last = r.last[1:]
	}
}
