package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
)

// single stands for things of which each is due at an instant of its own.
const single = 1

// burst is many things that are due: all at one instant, or each at its own.
type burst struct {
	dues []time.Time
	mu   sync.Mutex
	late []time.Duration
}

// apart is between the instants of things that are due by themselves.
const apart = 500 * time.Millisecond

// newBurst is of n things due at one instant, or of some that are due each alone if n is single.
func newBurst(n int, w time.Duration, at time.Time) *burst {
	b := &burst{}
	if n == single {
		for i := range max(2, int(w/apart)) {
			b.dues = append(b.dues, at.Add(time.Duration(i)*apart))
		}
		return b
	}
	for range n {
		b.dues = append(b.dues, at)
	}
	return b
}

// came notes that the i-th has happened. Before its time is an error.
func (b *burst) came(i int, at time.Time) error {
	late := at.Sub(b.dues[i])
	if late < 0 {
		return fmt.Errorf("it happened %s before its time", -late)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.late = append(b.late, late)
	return nil
}

// sample is what was seen of the bursts.
func sampleOf(bursts ...*burst) sample {
	s := sample{CPU: usage{}}
	for _, b := range bursts {
		s.Times = append(s.Times, b.late...)
		if len(b.late) > 0 {
			s.Seconds += percentile(b.late, 100).Seconds()
		}
	}
	s.Count = len(s.Times)
	return s
}

// some are made before many, to see how long the many will take on this machine now.
const some = 32

// ahead is how long before their instant n things are made, after some took so long: with a margin, which grows when it was too short.
func ahead(n, some int, took time.Duration, margin float64) time.Duration {
	return 3*time.Second + time.Duration(margin*float64(took)*float64(n)/float64(some)).Round(time.Second)
}

// inTime repeats a round with more and more time to make things, until all of them are made before their instant.
func inTime(round func(margin float64) (made bool, err error)) error {
	for margin := 1.5; margin < 20; margin *= 2 {
		if made, err := round(margin); made || err != nil {
			return err
		}
	}
	return errors.New("too much else goes on here: things are not made before they are due")
}

const (
	timerQueue = "bench-timers"
	timerName  = "Timer"
)

// openTimers measures the peer of leases: workflows that wait for an instant and do nothing else.
func openTimers(n int) func(context.Context, *stack) (*subject, error) {
	return func(_ context.Context, s *stack) (*subject, error) {
		n := s.crowd(n)
		queue := fmt.Sprint(timerQueue, n)
		autoscaling := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
		w := worker.New(s.temporal, queue, worker.Options{WorkflowTaskPollerBehavior: autoscaling, ActivityTaskPollerBehavior: autoscaling})
		var now *burst // the round's
		w.RegisterWorkflowWithOptions(func(ctx workflow.Context, i int) error {
			if err := workflow.Sleep(ctx, now.dues[i].Sub(workflow.Now(ctx))); err != nil || workflow.IsReplaying(ctx) {
				return err
			}
			return now.came(i, time.Now())
		}, workflow.RegisterOptions{Name: timerName})
		if err := w.Start(); err != nil {
			return nil, err
		}
		round := 0
		// set starts a timer for each instant and waits until all have fired; made tells whether that was before the first instant.
		set := func(ctx context.Context, b *burst) (made bool, err error) {
			round++
			now = b
			runs, err := s.setTimers(ctx, queue, round, len(b.dues))
			made = time.Now().Before(b.dues[0])
			for i := 0; i < len(runs) && err == nil; i++ {
				err = insist(ctx, func() error { return runs[i].Get(ctx, nil) })
			}
			return made, err
		}
		return &subject{
			whole: func(ctx context.Context, p pace) (one sample, err error) {
				begin, few := time.Now(), s.crowd(some)
				if _, err := set(ctx, newBurst(few, p.Window, begin)); err != nil {
					return one, err
				}
				took := time.Since(begin)
				err = inTime(func(margin float64) (bool, error) {
					b := newBurst(n, p.Window, time.Now().Add(ahead(n, few, took, margin)))
					made, err := set(ctx, b)
					one = sampleOf(b)
					return made, err
				})
				return one, err
			},
			close: func(context.Context) ([]detail, error) {
				w.Stop()
				return nil, nil
			},
		}, nil
	}
}

// setTimers starts so many workflows that wait.
func (s *stack) setTimers(ctx context.Context, queue string, round, n int) ([]client.WorkflowRun, error) {
	var all errgroup.Group
	all.SetLimit(s.clients)
	runs := make([]client.WorkflowRun, n)
	for i := range runs {
		all.Go(func() error {
			return insist(ctx, func() (err error) {
				runs[i], err = s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
					ID: fmt.Sprintf("%s/%d/%d", queue, round, i), TaskQueue: queue, EnableEagerStart: true}, timerName, i)
				return err
			})
		})
	}
	return runs, all.Wait()
}

// crowd is how many stand for so many: to try the harness, few will do.
func (s *stack) crowd(n int) int {
	if s.devServer && n > single {
		return max(2, n/100)
	}
	return n
}
