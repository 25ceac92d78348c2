package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/bench/benchtest"
	"berth/bench/figure"
	"berth/bench/harness"
)

// fakeStacks opens stacks that have no processes, and counts how many stacks are opened and closed.
type fakeStacks struct{ opened, closed int }

func (f *fakeStacks) open(ctx context.Context) (*harness.Stack, error) {
	f.opened++
	s := &harness.Stack{Machine: harness.Machine{Cores: 2}}
	s.Context, s.Fail = context.WithCancelCause(ctx)
	s.OnClose(func() { f.closed++ })
	return s, nil
}

// fakeFigure returns a figure whose n-th round returns the n-th element of `results`.
func fakeFigure(name, baseline string, results ...error) figure.Figure {
	round := 0
	return figure.Figure{
		Name:        name,
		Baseline:    baseline,
		WindowShare: 1,
		Open: func(context.Context, *harness.Stack) (*figure.Subject, error) {
			return &figure.Subject{
				MeasureRound: func(context.Context, harness.Pace) (harness.Sample, error) {
					round++
					return harness.Sample{Count: 10, Seconds: 1}, results[round-1]
				},
				Details: func(context.Context) ([]harness.Detail, error) {
					return []harness.Detail{{Name: "rounds", Value: float64(round)}}, nil
				},
			}, nil
		},
	}
}

func TestRunner_FailedFigureLosesNoOther(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	stacks, stdout := &fakeStacks{}, &bytes.Buffer{}
	set := settings{rounds: 2, out: filepath.Join(t.TempDir(), "results.json"), figures: []figure.Figure{
		fakeFigure("first", "", nil, nil),
		fakeFigure("failing", "first", nil, broken),
		fakeFigure("last", "failing", nil, nil),
	}}

	err := newRunner(set, stdout, t.Logf, stacks.open).run(t.Context())

	if !errors.Is(err, broken) ||
		!strings.Contains(err.Error(), "1 of 3 measurements failed: failing: broken") {
		t.Errorf(
			"run three figures of which one fails: got error %v, want an error that names the failing figure",
			err,
		)
	}
	if stacks.opened != 2 || stacks.closed != 2 {
		t.Errorf(
			"run with one failing figure: %d stacks opened, %d closed; want 2 and 2, because the failure needs a second stack",
			stacks.opened,
			stacks.closed,
		)
	}
	want := []result{
		{
			Name:    "first",
			Count:   20,
			Seconds: 2,
			Rate:    10,
			Rounds:  []float64{10, 10},
			Details: []harness.Detail{{Name: "rounds", Value: 2}},
		},
		{
			Name:     "failing",
			Count:    10,
			Seconds:  1,
			Rate:     10,
			Rounds:   []float64{10},
			Baseline: "first",
			Ratio:    1,
			Error:    "broken",
		},
		{
			Name:    "last",
			Count:   20,
			Seconds: 2,
			Rate:    10,
			Rounds:  []float64{10, 10},
			Details: []harness.Detail{{Name: "rounds", Value: 2}},
		},
	}
	if diff := cmp.Diff(want, benchtest.Read[report](t, set.out, section).Figures); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{"\nfirst ", "\nfailing ", "FAILED: broken", "\nlast "} {
		if !strings.Contains(stdout.String(), line) {
			t.Errorf("the output of the run: want the text %q, got:\n%s", line, stdout)
		}
	}
}

func TestRunner_WritesTheReportAfterEachFigure(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "results.json")
	second := fakeFigure("second", "", nil)
	open := second.Open
	second.Open = func(ctx context.Context, s *harness.Stack) (*figure.Subject, error) {
		if figures := benchtest.Read[report](t, out, section).Figures; len(figures) != 1 || figures[0].Name != "first" {
			t.Errorf("report after the first of two figures: got %+v, want the first figure alone", figures)
		}
		return open(ctx, s)
	}
	set := settings{rounds: 1, out: out, figures: []figure.Figure{fakeFigure("first", "", nil), second}}

	if err := newRunner(set, &bytes.Buffer{}, t.Logf, (&fakeStacks{}).open).run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRunner_ProcessThatEndsFailsTheFigure(t *testing.T) {
	t.Parallel()
	crashed := errors.New("worker ended unexpectedly")
	waiting := figure.Figure{
		Name:        "waiting",
		WindowShare: 1,
		Open: func(_ context.Context, s *harness.Stack) (*figure.Subject, error) {
			return &figure.Subject{MeasureRound: func(ctx context.Context, _ harness.Pace) (harness.Sample, error) {
				s.Fail(crashed)
				<-ctx.Done()
				return harness.Sample{}, ctx.Err()
			}}, nil
		},
	}

	err := newRunner(
		settings{rounds: 1, figures: []figure.Figure{waiting}}, &bytes.Buffer{}, t.Logf, (&fakeStacks{}).open,
	).run(t.Context())

	if !errors.Is(err, crashed) {
		t.Errorf(
			"run whose worker process ended unexpectedly: got error %v, want the error of that process",
			err,
		)
	}
}

func TestRunner_StopsWhenInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupted := errors.New("the user interrupted the run")
	first := fakeFigure("first", "", nil)
	first.Open = func(context.Context, *harness.Stack) (*figure.Subject, error) {
		interrupt(interrupted)
		return nil, ctx.Err()
	}
	stacks := &fakeStacks{}

	err := newRunner(
		settings{rounds: 1, figures: []figure.Figure{first, fakeFigure("second", "", nil)}},
		&bytes.Buffer{}, t.Logf, stacks.open,
	).run(ctx)

	if !errors.Is(err, interrupted) || stacks.opened != 1 || stacks.closed != 1 {
		t.Errorf(
			"interrupt a run: got error %v, %d stacks opened, %d closed; want the interrupt's error, 1 and 1",
			err, stacks.opened, stacks.closed,
		)
	}
}
