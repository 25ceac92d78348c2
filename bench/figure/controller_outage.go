package figure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"berth/bench/harness"
	"berth/internal/contract"
)

// openCreates measures POST /networks, ten times a second, while the controller is up or down.
func openCreates(down bool) func(context.Context, *harness.Stack) (*Subject, error) {
	return func(_ context.Context, s *harness.Stack) (*Subject, error) {
		return &Subject{
			setUp: func(ctx context.Context) error {
				if down {
					return s.ResetConnections(ctx)
				}
				return nil
			},
			MeasureRound: func(ctx context.Context, p harness.Pace) (harness.Sample, error) {
				return harness.MeasureTimes(ctx, p, func(ctx context.Context) (time.Duration, error) {
					begin := time.Now()
					_, err := s.API.Create(ctx, "network", harness.Attributes{"name": "bench"})
					return time.Since(begin), err
				})
			},
			tearDown: func(ctx context.Context) error {
				if err := harness.ClearFaults(ctx, s.Stubs.ODL); err != nil {
					return err
				}
				return s.AwaitMirrored(ctx)
			},
		}, nil
	}
}

// backlogFigure measures how fast a backlog of journal entries drains. backlogFigure creates the journal
// entries of the backlog while the OpenDaylight stub is down.
type backlogFigure struct {
	*harness.Stack
	firstEntry time.Duration // from the end of the outage to the first completed entry
	lastClosed time.Duration // from the last completed entry to the end of the last workflow
}

// backlogSize is the number of journal entries that are created during the outage of the controller.
const backlogSize = 5000

// openBacklog measures how fast a backlog of journal entries drains after an outage of the controller. When
// the outage ends, each journal entry of the backlog is waiting in its own workflow.
func openBacklog(_ context.Context, s *harness.Stack) (*Subject, error) {
	b := &backlogFigure{Stack: s}
	return &Subject{
		setUp: func(ctx context.Context) error {
			if err := s.DeferNotes(ctx, contract.Port); err != nil {
				return err
			}
			if err := s.ResetConnections(ctx); err != nil {
				return err
			}
			return b.fill(ctx, s.ScaleRows(backlogSize))
		},
		MeasureRound: b.drain,
		tearDown: func(ctx context.Context) error {
			var failed int
			if err := s.Rows.QueryRow(ctx, `select count(*) from journal_entry where failures > 0`).Scan(&failed); err != nil {
				return err
			}
			if failed > 0 {
				return fmt.Errorf("%d entries failed during the outage of the controller", failed)
			}
			if err := s.DeleteDeferredNotes(ctx, contract.Port); err != nil {
				return err
			}
			return errors.Join(s.AwaitMirrored(ctx), b.awaitWorkflowsClosed(ctx))
		},
		Details: func(context.Context) ([]harness.Detail, error) {
			return []harness.Detail{
				{Name: "seconds from the end of the outage to the first entry", Value: b.firstEntry.Seconds()},
				{
					Name:  "seconds from the last entry to the end of the last workflow",
					Value: b.lastClosed.Seconds(),
				},
			}, nil
		},
	}, nil
}

// fill creates n objects and waits until the workflows of their journal entries are started.
func (b *backlogFigure) fill(ctx context.Context, n int) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var clients sync.WaitGroup
	var created atomic.Int64
	for range b.Clients {
		clients.Go(func() {
			for created.Load() < int64(n) && ctx.Err() == nil {
				ids, err := createNetworkWithPorts(ctx, b.API.Create)
				if err != nil {
					fail(err)
				}
				created.Add(int64(len(ids)))
			}
		})
	}
	clients.Wait()
	return b.awaitCount(ctx, `select count(*) from note where workflow = 'JournalEntry'`, 0)
}

// drain ends the outage of the controller and waits until all journal entries are completed.
func (b *backlogFigure) drain(ctx context.Context, _ harness.Pace) (harness.Sample, error) {
	const unfinished = `select count(*) from journal_entry where finished_at is null`
	var n int
	if err := b.Rows.QueryRow(ctx, unfinished).Scan(&n); err != nil {
		return harness.Sample{}, err
	}
	before, err := harness.ReadCPUTimes()
	if err != nil {
		return harness.Sample{}, err
	}
	begin := time.Now()
	if err := harness.ClearFaults(ctx, b.Stubs.ODL); err != nil {
		return harness.Sample{}, err
	}
	if err := b.awaitCount(ctx, unfinished, n-1); err != nil {
		return harness.Sample{}, err
	}
	b.firstEntry = time.Since(begin)
	if err := b.awaitCount(ctx, unfinished, 0); err != nil {
		return harness.Sample{}, err
	}
	s := harness.Sample{Count: n, Seconds: time.Since(begin).Seconds()}
	after, err := harness.ReadCPUTimes()
	s.CPU = after.Since(before)
	return s, err
}

// awaitWorkflowsClosed waits until the workflows of all journal entries have ended, because running workflows
// would disturb the next measurement.
func (b *backlogFigure) awaitWorkflowsClosed(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*harness.WaitTimeout, harness.ErrTimeout)
	defer cancel()
	begin := time.Now()
	for {
		var open *workflowservice.CountWorkflowExecutionsResponse
		err := harness.RetryUnavailable(ctx, func() (err error) {
			open, err = b.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
				Namespace: "default", Query: "WorkflowType = '" + contract.JournalEntry + "' AND ExecutionStatus = 'Running'"})
			return err
		})
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if open.GetCount() == 0 {
			b.lastClosed = time.Since(begin)
			return nil
		}
		harness.Pause(ctx, 20*harness.PollInterval)
	}
}

// awaitCount waits until the count that a query returns is at most limit.
func (b *backlogFigure) awaitCount(ctx context.Context, count string, limit int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*harness.WaitTimeout, harness.ErrTimeout)
	defer cancel()
	for left := limit + 1; left > limit; harness.Pause(ctx, 4*harness.PollInterval) {
		if err := b.Rows.QueryRow(ctx, count).Scan(&left); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return nil
}
