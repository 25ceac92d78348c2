package figure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"berth/bench/harness"
	"berth/internal/contract"
)

// stormFigure measures many signals to one port.
type stormFigure struct {
	*portFigure
	signals   int
	port      string
	accepted  atomic.Int64 // number of accepted signals
	processed int          // number of reports that the row has counted, or that made the port ACTIVE
	revisions int          // number of revisions of the port since its creation
	runs      []int        // history events of each run of the workflow
}

// openStorm measures how fast the workflow of one port processes signals with agents' reports. Two of the
// signals name the hosts of the port's L2 agent and DHCP agent, and make the port ACTIVE. All signals of
// openStorm except two name a host that the port does not wait for, so berth only counts these signals.
// openStorm fails if a signal is rejected or lost.
func openStorm(ctx context.Context, s *harness.Stack) (*Subject, error) {
	t := &stormFigure{portFigure: newPortFigure(ctx, s, 1, harness.PollInterval), signals: s.Signals}
	return &Subject{
		agents:       s.API,
		setUp:        t.createNetworks,
		MeasureRound: t.measureRound,
		tearDown:     t.check,
		Details:      t.details,
	}, nil
}

func (t *stormFigure) details(context.Context) ([]harness.Detail, error) {
	accepted := int(t.accepted.Load())
	return []harness.Detail{
		{Name: "signals sent", Value: float64(t.signals)},
		{Name: "signals accepted", Value: float64(accepted)},
		{Name: "signals lost", Value: float64(max(accepted-t.processed, 0))},
		{Name: "signals counted twice", Value: float64(max(t.processed-accepted, 0))},
		{Name: "changes to ACTIVE", Value: float64(t.revisions)},
		{Name: "runs of the port's workflow", Value: float64(len(t.runs))},
		{Name: "history events of the workflow's longest run", Value: float64(slices.Max(t.runs))},
	}, nil
}

// measureRound sends all signals from many concurrent clients, and waits until the port's row has counted all
// signals.
func (t *stormFigure) measureRound(ctx context.Context, p harness.Pace) (harness.Sample, error) {
	var err error
	if t.port, err = t.createPort(ctx, 0); err != nil {
		return harness.Sample{}, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	before, cpuErr := harness.ReadCPUTimes()
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
	one := harness.Sample{Count: t.signals, CPU: harness.CPUTimes{}}
	for ignored := 0; ignored < t.signals-2 && ctx.Err() == nil; harness.Pause(ctx, harness.PollInterval) {
		if err := t.Rows.QueryRow(ctx, `select ignored_reports from port where id = $1`, t.port).Scan(&ignored); err != nil {
			return one, err
		}
		if time.Since(begin) > 10*harness.WaitTimeout {
			return one, fmt.Errorf(
				"the port's row has counted only %d of %d reports from another host: %w",
				ignored, t.signals-2, harness.ErrTimeout,
			)
		}
	}
	one.Seconds = time.Since(begin).Seconds()
	after, err := harness.ReadCPUTimes()
	one.CPU = after.Since(before)
	return one, errors.Join(context.Cause(ctx), cpuErr, err)
}

// nth returns the n-th report. Two of the reports are from the hosts of the port's agents and make the port
// ACTIVE; all other reports are from a host that the port does not wait for.
func (t *stormFigure) nth(i int) contract.Report {
	switch i {
	case t.signals / 3:
		return l2Report
	case t.signals * 2 / 3:
		return dhcpReport
	default:
		return contract.Report{Entity: "L2", Host: "bench-elsewhere"}
	}
}

// check returns an error if the port is not ACTIVE with revision 2, the first revision after its creation.
// check also returns an error if the port's row has not counted every report from the host bench-elsewhere,
// for which the port does not wait. The row may count a report twice, because Temporal repeats a workflow
// task if signals arrive at the end of the task.
func (t *stormFigure) check(ctx context.Context) error {
	var status string
	var revision, ignored int
	err := t.Rows.QueryRow(ctx, `select status, revision, ignored_reports from port where id = $1`, t.port).
		Scan(&status, &revision, &ignored)
	if err == nil && (status != "ACTIVE" || revision != 2 || ignored < t.signals-2) {
		err = fmt.Errorf(
			"after %d signals the port has status %s, revision %d and %d ignored reports; want ACTIVE, revision 2 and all signals but two ignored",
			t.signals, status, revision, ignored,
		)
	}
	t.processed, t.revisions = ignored+2, revision-1
	if err == nil {
		t.runs, err = runLengths(ctx, t.Stack, contract.PortID(t.port))
	}
	return err
}

// runLengths returns the number of history events of each run of a workflow, the last run first.
func runLengths(ctx context.Context, s *harness.Stack, id string) (runs []int, err error) {
	err = harness.RetryUnavailable(ctx, func() (err error) {
		runs, err = readRunLengths(ctx, s, id)
		return err
	})
	return runs, err
}

func readRunLengths(ctx context.Context, s *harness.Stack, id string) (runs []int, err error) {
	d, err := s.Temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, err
	}
	for run := d.GetWorkflowExecutionInfo().GetExecution().GetRunId(); run != ""; {
		d, err := s.Temporal.DescribeWorkflowExecution(ctx, id, run)
		if err != nil {
			return nil, err
		}
		runs = append(runs, int(d.GetWorkflowExecutionInfo().GetHistoryLength()))
		first, err := s.Temporal.WorkflowService().
			GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
				Namespace:              "default",
				Execution:              d.GetWorkflowExecutionInfo().GetExecution(),
				MaximumPageSize:        1,
				HistoryEventFilterType: enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT,
			})
		if err != nil {
			return nil, err
		}
		run = first.GetHistory().GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().
			GetContinuedExecutionRunId()
	}
	return runs, nil
}
