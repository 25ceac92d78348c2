package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"berth/bench/figure"
	"berth/bench/harness"
	"berth/internal/resultfile"
)

// operation is an operation of berth whose CPU time is measured: a figure of bench.
type operation struct {
	figure string
	title  string // in docs/scaling.md
	extent string // what is measured
	// An operation with a workflow takes longer. With fewer clients, each of them still completes several
	// operations in a window.
	workflow bool
}

// workflowShare is the share of the clients that send operations with a workflow.
const workflowShare = 0.25

// operations lists all operations in the order in which they are measured.
var operations = []operation{
	{
		figure: "allocations-apart",
		title:  "allocation",
		extent: "`PUT /allocations/{consumer}`; each client uses its own provider",
	},
	{
		figure: "reads",
		title:  "read of an allocation",
		extent: "`GET /allocations/{consumer}`",
	},
	{
		figure:   "ports",
		title:    "port",
		extent:   "from `POST /ports` to ACTIVE, with the signals of two agents",
		workflow: true,
	},
	{
		figure:   "entries-apart",
		title:    "journal entry",
		extent:   "from `POST /networks` until OpenDaylight has the network",
		workflow: true,
	},
	{
		figure:   "leases-pending",
		title:    "lease",
		extent:   "from `POST /leases` until the workflow of the PENDING lease has started",
		workflow: true,
	},
}

// measurement measures all operations on one stack.
type measurement struct {
	settings settings
	stack    *harness.Stack
	limit    *harness.ProcessorLimit // nil: no limit can be set
	stdout   io.Writer
	logf     func(string, ...any)
	report   report
}

// run measures what the servers use without load, and then all operations. After each operation, run prints
// its result and writes all results so far to the JSON file.
func (m *measurement) run(ctx context.Context) error {
	m.report.printHead(m.stdout)
	var err error
	if m.report.Idle, err = m.measureIdle(ctx); err != nil {
		return err
	}
	for _, op := range operations {
		r, err := m.measure(ctx, op)
		if err != nil {
			return fmt.Errorf("%s: %w", op.figure, err)
		}
		r.print(m.stdout)
		m.report.Results = append(m.report.Results, r)
		if err := resultfile.WriteSection(m.settings.out, section, m.report); err != nil {
			return err
		}
	}
	return nil
}

// measureIdle measures how many cores each part uses without load.
func (m *measurement) measureIdle(ctx context.Context) (map[string]float64, error) {
	if err := m.awaitQuiet(ctx); err != nil {
		return nil, err
	}
	before, err := harness.ReadCPUTimes()
	if err == nil {
		err = before.CheckParts()
	}
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	harness.Pause(ctx, m.settings.pace.Window)
	after, err := harness.ReadCPUTimes()
	used := after.Since(before).SecondsOfParts()
	for name := range used {
		used[name] /= time.Since(begin).Seconds()
	}
	return used, err
}

// measure measures an operation with the reference number of cores and with each limit, round by round,
// because an operation may become more expensive while the database grows.
func (m *measurement) measure(ctx context.Context, op operation) (result, error) {
	f, err := figure.Find(op.figure)
	if err != nil {
		return result{}, err
	}
	subject, err := f.Open(ctx, m.stack)
	if err != nil {
		return result{}, err
	}
	var reference []harness.Sample
	limited := make([][]harness.Sample, len(m.settings.limits))
	for range m.settings.rounds {
		one, err := m.sample(ctx, op, subject, m.settings.reference)
		if err != nil {
			return result{}, err
		}
		reference = append(reference, one)
		for i, cores := range m.settings.limits {
			if one, err = m.sample(ctx, op, subject, cores); err != nil {
				return result{}, err
			}
			limited[i] = append(limited[i], one)
		}
	}
	return m.result(op, reference, limited), nil
}

// result computes the result of an operation from the samples of all rounds: those with the reference number
// of cores, and those with each limit.
func (m *measurement) result(op operation, reference []harness.Sample, limited [][]harness.Sample) result {
	r := result{Name: op.figure, Title: op.title, Extent: op.extent}
	for _, s := range reference {
		r.Reference = append(r.Reference, measuredIn(m.report.Idle, s))
	}
	model := newCostModel(m.report.Idle, harness.Sum(reference))
	r.Cost = model.cost
	for i, rounds := range limited {
		c := check{Cores: m.settings.limits[i], measured: measuredIn(m.report.Idle, harness.Sum(rounds))}
		c.Predicted = model.rateOnMachine(c.Cores, float64(m.report.Machine.Cores))
		c.Error = harness.Ratio(c.Predicted-c.Rate, c.Rate)
		c.Lowest, c.Highest = math.Inf(1), 0
		for _, s := range rounds {
			c.Lowest, c.Highest = min(c.Lowest, s.Rate()), max(c.Highest, s.Rate())
		}
		r.Checks = append(r.Checks, c)
	}
	return r
}

// sample measures an operation once while the servers together have a number of cores; 0 means the whole
// machine.
func (m *measurement) sample(
	ctx context.Context,
	op operation,
	subject *figure.Subject,
	cores float64,
) (one harness.Sample, err error) {
	if err := m.awaitQuiet(ctx); err != nil {
		return one, err
	}
	if err := m.setLimit(cores); err != nil {
		return one, err
	}
	pace := m.settings.pace
	if op.workflow {
		pace.InFlight = max(1, int(float64(pace.InFlight)*workflowShare))
	}
	err = subject.WithAgents(ctx, func(ctx context.Context) error {
		one, err = subject.MeasureOnce(ctx, pace)
		return err
	})
	if err := errors.Join(err, m.setLimit(0)); err != nil {
		return one, err
	}
	done := measuredIn(m.report.Idle, one)
	m.logf("%s, %s: %.1f/s, servers used %.2f cores", op.figure, describeLimit(cores), done.Rate, done.Used)
	return one, nil
}

func (m *measurement) setLimit(cores float64) error {
	if m.limit == nil {
		return nil
	}
	return m.limit.Set(cores)
}

func describeLimit(cores float64) string {
	if cores == 0 {
		return "whole machine"
	}
	return fmt.Sprintf("limit of %g cores", cores)
}

// awaitQuiet waits until no program uses the processors much, and notes how busy they still are.
func (m *measurement) awaitQuiet(ctx context.Context) error {
	busy, err := harness.AwaitQuiet(ctx, m.settings.quiet, harness.ReadBusyTime, harness.Pause)
	m.report.Busy = max(m.report.Busy, busy)
	return err
}
