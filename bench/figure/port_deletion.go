package figure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"

	"berth/bench/harness"
	"berth/internal/contract"
)

// signalRate is the number of signals per second that the port's workflow receives during the deletion of the
// port.
const signalRate = 200

// openDeletion measures the deletion of a port, from the DELETE request to the end of the port's workflow.
// During the deletion the port's workflow receives signals with agents' reports all the time. When the
// workflow has ended, Temporal answers the next signal with NotFound, and bench stops sending signals.
func openDeletion(ctx context.Context, s *harness.Stack) (*Subject, error) {
	p := newPortFigure(ctx, s, 1, harness.PollInterval)
	return &Subject{
		agents:       s.API,
		setUp:        p.createNetworks,
		MeasureRound: p.deleteDuringSignals,
		tearDown:     s.AwaitMirrored,
	}, nil
}

func (p *portFigure) deleteDuringSignals(ctx context.Context, pace harness.Pace) (harness.Sample, error) {
	port, err := p.createPort(ctx, 0)
	if err != nil {
		return harness.Sample{}, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	closed := p.signalUntilClosed(ctx, port)
	harness.Pause(ctx, pace.Warmup)
	begin := time.Now()
	if err := p.API.Send(ctx, http.MethodDelete, "/networking/v2.0/ports/"+port, nil, nil); err != nil {
		return harness.Sample{}, err
	}
	select {
	case <-closed:
	case <-ctx.Done():
	case <-time.After(harness.WaitTimeout):
		fail(fmt.Errorf("the workflow of a deleted port is still open: %w", harness.ErrTimeout))
	}
	took := time.Since(begin)
	return harness.Sample{
		Count:   1,
		Seconds: took.Seconds(),
		CPU:     harness.CPUTimes{},
		Times:   []time.Duration{took},
	}, context.Cause(ctx)
}

// signalUntilClosed signals a port at a constant rate. signalUntilClosed stops and closes the channel at the
// first signal that finds the port's workflow closed.
func (p *portFigure) signalUntilClosed(ctx context.Context, port string) <-chan struct{} {
	closed := make(chan struct{})
	end := sync.OnceFunc(func() { close(closed) })
	signal := func() {
		// Errors of signals other than NotFound are ignored, because some signals time out on a slow machine.
		err := p.report(ctx, port, contract.Report{Entity: "L2", Host: "bench-elsewhere"})
		var notFound *serviceerror.NotFound
		if errors.As(err, &notFound) {
			end()
		}
	}
	go func() {
		tick := time.NewTicker(time.Second / signalRate)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-closed:
				return
			case <-tick.C:
				go signal()
			}
		}
	}()
	return closed
}
