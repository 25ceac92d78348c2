package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"berth/bench/figure"
	"berth/bench/harness"
	"berth/internal/resultfile"
)

// runner measures the figures round by round; in each round the runner measures one figure after the other.
// After each figure the runner writes all results so far to the JSON file. If a figure fails, the runner
// reports the failure and does not measure the failed figure again. After a failure of a figure, the runner
// closes the stack, because the state of the stack is unknown, and opens a new stack for the next figure.
type runner struct {
	settings  settings
	openStack func(context.Context) (*harness.Stack, error)
	stack     *harness.Stack // nil before the first figure and after a failure
	machine   harness.Machine
	runs      []*figureRun
	stdout    io.Writer
	logf      func(string, ...any)
	// waits for quiet servers before each measurement; nil: measures immediately
	quiet func(context.Context) (share float64, err error)
}

// figureRun holds a figure and the results of its completed rounds.
type figureRun struct {
	figure.Figure
	subject *figure.Subject  // on the current stack; nil until the figure is opened there
	samples []harness.Sample // one for each round
	details []harness.Detail
	err     error
}

func newRunner(
	s settings,
	stdout io.Writer,
	logf func(string, ...any),
	openStack func(context.Context) (*harness.Stack, error),
) *runner {
	r := &runner{
		settings:  s,
		openStack: openStack,
		stdout:    stdout,
		logf:      logf,
	}
	for _, f := range s.figures {
		r.runs = append(r.runs, &figureRun{Figure: f})
	}
	return r
}

// run measures all figures, round by round. If a figure fails, run still measures the other figures and then
// returns an error. If ctx ends or a stack does not start, run returns an error immediately.
func (r *runner) run(ctx context.Context) error {
	defer r.closeStack()
	for round := range r.settings.rounds {
		last := round == r.settings.rounds-1
		for _, f := range r.runs {
			if f.err != nil || f.LastRoundOnly && !last {
				continue
			}
			if err := r.ensureStack(ctx); err != nil {
				return err
			}
			f.err = r.measure(ctx, f, round)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if f.err != nil {
				r.logf("%s failed: %v", f.Name, f.err)
				r.closeStack()
			}
			if err := r.publish(f, last); err != nil {
				return err
			}
		}
	}
	return r.failures()
}

// measure measures one round of a figure. After the figure's last round, measure also collects the figure's
// details (such as SQL statements per operation).
func (r *runner) measure(ctx context.Context, f *figureRun, round int) (err error) {
	st := r.stack
	defer func() {
		if err = harness.FirstCause(st.Context, err); err != nil {
			err = fmt.Errorf("%w%s", err, st.ErrorLogTail())
		}
	}()
	if f.subject == nil {
		if f.subject, err = f.Open(st.Context, st); err != nil {
			return err
		}
	}
	if err := r.awaitQuiet(st.Context, f.Name); err != nil {
		return err
	}
	return f.subject.WithAgents(st.Context, func(ctx context.Context) error {
		one, err := f.subject.MeasureOnce(ctx, f.Pace(r.settings.pace))
		if err != nil {
			return err
		}
		r.logf("round %d: %s %.1f/s", round+1, f.Name, one.Rate())
		f.samples = append(f.samples, one)
		if round == r.settings.rounds-1 && f.subject.Details != nil {
			f.details, err = f.subject.Details(ctx)
		}
		return err
	})
}

// awaitQuiet waits for quiet servers, and logs if they are still busy.
func (r *runner) awaitQuiet(ctx context.Context, figure string) error {
	if r.quiet == nil {
		return nil
	}
	share, err := r.quiet(ctx)
	if err == nil && share >= harness.QuietCPU {
		r.logf("%s: the servers are still busy with earlier work: %.0f%% of one core", figure, share*100)
	}
	return err
}

// ensureStack starts a stack unless one is running. The first start also prints the machine, the settings and
// the column titles of the table.
func (r *runner) ensureStack(ctx context.Context) (err error) {
	if r.stack != nil {
		return nil
	}
	if r.stack, err = r.openStack(ctx); err != nil {
		return harness.FirstCause(ctx, err)
	}
	if r.machine == (harness.Machine{}) {
		r.machine = r.stack.Machine
		r.report().printHead(r.stdout)
	}
	return nil
}

// closeStack closes the current stack. The runner opens the figures of the closed stack again on the next
// stack.
func (r *runner) closeStack() {
	if r.stack == nil {
		return
	}
	r.stack.Close()
	r.stack = nil
	for _, f := range r.runs {
		f.subject = nil
	}
}

// publish writes all results so far to the JSON file. If the figure f has completed its last round or has
// failed, publish also prints the result of f.
func (r *runner) publish(f *figureRun, last bool) error {
	all := r.report()
	if last || f.err != nil {
		all.printFigure(r.stdout, f.Name)
	}
	return resultfile.WriteSection(r.settings.out, section, all)
}

// report returns the report with all results so far.
func (r *runner) report() report {
	all := report{Machine: r.machine, Settings: r.settings.reported()}
	for _, f := range r.runs {
		if len(f.samples) == 0 && f.err == nil {
			continue
		}
		one := resultOf(f.Figure, f.samples, all.Figures)
		one.Details = f.details
		if f.err != nil {
			one.Error = f.err.Error()
		}
		all.Figures = append(all.Figures, one)
	}
	return all
}

// failures returns the errors of all figures that failed.
func (r *runner) failures() error {
	var all []error
	for _, f := range r.runs {
		if f.err != nil {
			all = append(all, fmt.Errorf("%s: %w", f.Name, f.err))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d measurements failed: %w", len(all), len(r.runs), errors.Join(all...))
}
