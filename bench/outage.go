package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"berth/internal/contract"
)

// openCreates measures what a change costs its client, ten a second: the same whether the controller is there or not.
func openCreates(away bool) func(context.Context, *stack) (*subject, error) {
	return func(_ context.Context, s *stack) (*subject, error) {
		return &subject{
			before: func(ctx context.Context) error {
				if away {
					return s.down(ctx)
				}
				return nil
			},
			whole: func(ctx context.Context, p pace) (sample, error) {
				return measureTimes(ctx, p, func(ctx context.Context) (time.Duration, error) {
					begin := time.Now()
					_, err := s.api.create(ctx, "network", attributes{"name": "bench"})
					return time.Since(begin), err
				})
			},
			after: func(ctx context.Context) error {
				if err := heal(ctx, s.standIns.ODL); err != nil {
					return err
				}
				return s.settled(ctx)
			},
		}, nil
	}
}

// queue is what gathers while the controller is away.
type queue struct {
	*stack
	first time.Duration // from the controller's return to the first entry
	ended time.Duration // from then to the end of the last entry's workflow
}

// queued is how many entries gather.
const queued = 5000

// openQueue measures how fast a long queue drains, from the moment at which the controller is back. Every entry has a
// workflow by then, since all of them wait for long.
func openQueue(_ context.Context, s *stack) (*subject, error) {
	q := &queue{stack: s}
	return &subject{
		before: func(ctx context.Context) error {
			if err := s.hold(ctx, contract.Port); err != nil {
				return err
			}
			if err := s.down(ctx); err != nil {
				return err
			}
			return q.fill(ctx, s.hosts(queued))
		},
		whole: q.drain,
		after: func(ctx context.Context) error {
			var unexpected int
			if err := s.rows.QueryRow(ctx, `select count(*) from journal_entry where failures > 0`).Scan(&unexpected); err != nil {
				return err
			}
			if unexpected > 0 {
				return fmt.Errorf("%d entries have failed while the controller was away", unexpected)
			}
			if err := s.forget(ctx, contract.Port); err != nil {
				return err
			}
			return errors.Join(s.settled(ctx), q.quiet(ctx))
		},
		close: func(context.Context) ([]detail, error) {
			return []detail{{"seconds from the controller's return to the first entry", q.first.Seconds()},
				{"seconds from the last entry to the end of the last workflow", q.ended.Seconds()}}, nil
		},
	}, nil
}

// fill makes so many objects, and waits until the workflows of their entries wait.
func (q *queue) fill(ctx context.Context, n int) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var clients sync.WaitGroup
	var made atomic.Int64
	for range q.clients {
		clients.Go(func() {
			for made.Load() < int64(n) && ctx.Err() == nil {
				ids, err := plantNetwork(ctx, q.api.create)
				if err != nil {
					fail(err)
				}
				made.Add(int64(len(ids)))
			}
		})
	}
	clients.Wait()
	return q.until(ctx, `select count(*) from note where workflow = 'JournalEntry'`, 0)
}

// drain lets the controller come back.
func (q *queue) drain(ctx context.Context, _ pace) (sample, error) {
	const live = `select count(*) from journal_entry where finished_at is null`
	var n int
	if err := q.rows.QueryRow(ctx, live).Scan(&n); err != nil {
		return sample{}, err
	}
	before, err := spent()
	if err != nil {
		return sample{}, err
	}
	begin := time.Now()
	if err := heal(ctx, q.standIns.ODL); err != nil {
		return sample{}, err
	}
	if err := q.until(ctx, live, n-1); err != nil {
		return sample{}, err
	}
	q.first = time.Since(begin)
	if err := q.until(ctx, live, 0); err != nil {
		return sample{}, err
	}
	s := sample{Count: n, Seconds: time.Since(begin).Seconds()}
	after, err := spent()
	s.CPU = after.since(before)
	return s, err
}

// quiet waits until every workflow has seen that its entry is completed, which disturbs what is measured next.
func (q *queue) quiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*patience, errLate)
	defer cancel()
	begin := time.Now()
	for {
		var open *workflowservice.CountWorkflowExecutionsResponse
		err := insist(ctx, func() (err error) {
			open, err = q.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
				Namespace: "default", Query: "WorkflowType = '" + contract.JournalEntry + "' AND ExecutionStatus = 'Running'"})
			return err
		})
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if open.GetCount() == 0 {
			q.ended = time.Since(begin)
			return nil
		}
		pause(ctx, 20*lookEvery)
	}
}

// until waits for a count to be that small.
func (q *queue) until(ctx context.Context, count string, most int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*patience, errLate)
	defer cancel()
	for left := most + 1; left > most; pause(ctx, 4*lookEvery) {
		if err := q.rows.QueryRow(ctx, count).Scan(&left); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return nil
}
