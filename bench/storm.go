package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"berth/internal/contract"
)

// storm is one port that is reported far too often.
type storm struct {
	*plant
	signals  int
	port     string
	accepted atomic.Int64 // signals
	heard    int          // reports that reached the row
	changes  int          // of the port that clients can see, which is to ACTIVE
	runs     []int        // history events of each of its runs
}

// openStorm measures how fast one port takes in reports, nearly all of which count for nothing: none may be rejected
// or lost, and the two that count make it ACTIVE once.
func openStorm(ctx context.Context, s *stack) (*subject, error) {
	t := &storm{plant: newPlant(ctx, s, 1, lookEvery), signals: s.signals}
	return &subject{before: t.prepare, whole: t.measure, after: t.check, close: t.details}, nil
}

func (t *storm) details(context.Context) ([]detail, error) {
	accepted := int(t.accepted.Load())
	return []detail{
		{"signals sent", float64(t.signals)},
		{"signals accepted", float64(accepted)},
		{"signals lost", float64(max(accepted-t.heard, 0))},
		{"signals counted again", float64(max(t.heard-accepted, 0))},
		{"changes to ACTIVE", float64(t.changes)},
		{"runs of the port's workflow", float64(len(t.runs))},
		{"history events of the longest", float64(slices.Max(t.runs))},
	}, nil
}

// measure sends all signals from many clients, those that count in the middle, and waits until all are accounted for.
func (t *storm) measure(ctx context.Context, p pace) (sample, error) {
	var err error
	if t.port, err = t.plug(ctx, 0); err != nil {
		return sample{}, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	before, cpuErr := spent()
	begin := time.Now()
	var clients sync.WaitGroup
	var next atomic.Int64
	for range p.InFlight {
		clients.Go(func() {
			for i := int(next.Add(1)); i <= t.signals && ctx.Err() == nil; i = int(next.Add(1)) {
				if err := t.report(ctx, t.port, t.nth(i)); err != nil {
					fail(fmt.Errorf("signal %d was rejected: %w", i, err))
				} else {
					t.accepted.Add(1)
				}
			}
		})
	}
	clients.Wait()
	one := sample{Count: t.signals, CPU: usage{}}
	for ignored := 0; ignored < t.signals-2 && ctx.Err() == nil; pause(ctx, lookEvery) {
		if err := t.rows.QueryRow(ctx, `select ignored_reports from port where id = $1`, t.port).Scan(&ignored); err != nil {
			return one, err
		}
		if time.Since(begin) > 10*patience {
			return one, fmt.Errorf("only %d of %d reports reached the row: %w", ignored, t.signals-2, errLate)
		}
	}
	one.Seconds = time.Since(begin).Seconds()
	after, err := spent()
	one.CPU = after.since(before)
	return one, errors.Join(context.Cause(ctx), cpuErr, err)
}

// nth is the nth report: of the wrong host but for the two that count.
func (t *storm) nth(i int) contract.Report {
	switch i {
	case t.signals / 3:
		return l2Report
	case t.signals * 2 / 3:
		return dhcpReport
	default:
		return contract.Report{Entity: "L2", Host: "bench-elsewhere"}
	}
}

// check finds the port ACTIVE by one change since its creation, with every other report counted: some of them again,
// where the server had a workflow task repeated because signals came in its last moment.
func (t *storm) check(ctx context.Context) error {
	var status string
	var revision, ignored int
	err := t.rows.QueryRow(ctx, `select status, revision, ignored_reports from port where id = $1`, t.port).Scan(&status, &revision, &ignored)
	if err == nil && (status != "ACTIVE" || revision != 2 || ignored < t.signals-2) {
		err = fmt.Errorf("after %d signals the port is %s at revision %d, having ignored %d", t.signals, status, revision, ignored)
	}
	t.heard, t.changes = ignored+2, revision-1
	if err == nil {
		t.runs, err = runsOf(ctx, t.stack, contract.PortID(t.port))
	}
	return err
}

// runsOf follows a workflow's chain of runs back from the last, and tells how many events each has.
func runsOf(ctx context.Context, s *stack, id string) (runs []int, err error) {
	err = insist(ctx, func() (err error) {
		runs, err = s.runs(ctx, id)
		return err
	})
	return runs, err
}

func (s *stack) runs(ctx context.Context, id string) (runs []int, err error) {
	d, err := s.temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, err
	}
	for of := d.GetWorkflowExecutionInfo().GetExecution().GetRunId(); of != ""; {
		d, err := s.temporal.DescribeWorkflowExecution(ctx, id, of)
		if err != nil {
			return nil, err
		}
		runs = append(runs, int(d.GetWorkflowExecutionInfo().GetHistoryLength()))
		first, err := s.temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: "default", Execution: d.GetWorkflowExecutionInfo().GetExecution(), MaximumPageSize: 1,
			HistoryEventFilterType: enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT})
		if err != nil {
			return nil, err
		}
		of = first.GetHistory().GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	return runs, nil
}

// streamRate is at how many signals a second a port is deleted.
const streamRate = 200

// openDeletion measures how long a port that is reported all the time takes from its deletion to the end of its
// workflow, which tells the agents to stop.
func openDeletion(ctx context.Context, s *stack) (*subject, error) {
	p := newPlant(ctx, s, 1, lookEvery)
	return &subject{before: p.prepare, whole: p.deleteUnderFire, after: s.settled}, nil
}

func (p *plant) deleteUnderFire(ctx context.Context, pace pace) (sample, error) {
	port, err := p.plug(ctx, 0)
	if err != nil {
		return sample{}, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	closed := p.fire(ctx, port)
	pause(ctx, pace.Warmup)
	begin := time.Now()
	if err := p.api.send(ctx, http.MethodDelete, "/networking/v2.0/ports/"+port, nil, nil); err != nil {
		return sample{}, err
	}
	select {
	case <-closed:
	case <-ctx.Done():
	case <-time.After(patience):
		fail(fmt.Errorf("the workflow of a deleted port is still open: %w", errLate))
	}
	took := time.Since(begin)
	return sample{Count: 1, Seconds: took.Seconds(), CPU: usage{}, Times: []time.Duration{took}}, context.Cause(ctx)
}

// fire reports a port at a constant rate. It ends, and the channel closes, at the first signal that finds the port's
// workflow closed.
func (p *plant) fire(ctx context.Context, port string) <-chan struct{} {
	closed := make(chan struct{})
	end := sync.OnceFunc(func() { close(closed) })
	shoot := func() {
		// On a machine that cannot take so many, some come too late: that is not the question here.
		err := p.report(ctx, port, contract.Report{Entity: "L2", Host: "bench-elsewhere"})
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			end()
		}
	}
	go func() {
		tick := time.NewTicker(time.Second / streamRate)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-closed:
				return
			case <-tick.C:
				go shoot()
			}
		}
	}()
	return closed
}
