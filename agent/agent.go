// Package agent is the client with which an agent reports to berth that it has done its part for a port. A
// Client sends a report until berth has acknowledged it, over the HTTP gateway or over Temporal, and signs
// reports over Temporal with a private key of the host.
//
// A report sets the state of one entity, so berth may get the same report twice without harm.
package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"berth/internal/contract"
)

// Report is an agent's report about a port.
type Report = contract.Report

// Result is berth's acknowledgement of a report.
type Result struct {
	// Outcome says what the report did; over a signal, it is always Sent.
	Outcome Outcome
	// Status is the status of the port after the report. Status is empty over a signal, and if the agent may
	// not read the port.
	Status string
	// Remaining contains the entities that still block the port.
	Remaining []string
}

// Outcome is the effect of an acknowledged report.
type Outcome string

// The outcomes of a report.
const (
	Done    Outcome = "done"    // nothing blocks the port any more
	Waiting Outcome = "waiting" // other entities still block the port
	// the report changed nothing, for example because it is a duplicate; only over HTTP
	Ignored Outcome = "ignored"
	Sent    Outcome = "sent" // Temporal has stored the signal, and the workflow of the port will apply it
)

// The kinds of errors of a Client, for errors.Is. Only after ErrUnavailable can the same report succeed
// later.
var (
	// ErrRefused means that berth does not accept the report: it is malformed, or the agent may not send it.
	ErrRefused = errors.New("berth refuses the report")
	// ErrUnknown means that the port does not exist. Without the HTTP gateway, ErrUnknown means that the port
	// had no workflow for Client.UnknownAfter.
	ErrUnknown = errors.New("the port does not exist")
	// ErrStale means that the report is about an earlier binding of the port.
	ErrStale = errors.New("the report is about an earlier binding of the port")
	// ErrUnavailable means that berth could not acknowledge the report now. A Client returns it only after
	// the context has ended.
	ErrUnavailable = errors.New("berth is unavailable")
)

// errNoWorkflow means that the workflow of the port does not run: the port is deleted, or berth will start
// the workflow again.
var errNoWorkflow = fmt.Errorf("%w: the workflow of the port does not run", ErrUnavailable)

// Transport sends a report once.
type Transport interface {
	Send(ctx context.Context, port string, r Report) (Result, error)
}

// Client sends reports until berth has acknowledged them. A Client is safe for concurrent use if its
// transports are.
type Client struct {
	Transport Transport
	// Fallback sends a report for which Temporal knows no running workflow; usually an *HTTP. If Fallback is
	// nil, the Client tries again until UnknownAfter.
	Fallback Transport
	// MinPause and MaxPause limit the pause between two attempts. The limit of the pause doubles after each
	// attempt, and the pause is random below the limit. 0: 200 milliseconds and 30 seconds.
	MinPause, MaxPause time.Duration
	// Timeout limits one attempt; 0: 30 seconds.
	Timeout time.Duration
	// UnknownAfter is how long the Client tries to reach a port without a workflow; 0: one minute. berth
	// starts the workflow of an existing port again within this time.
	UnknownAfter time.Duration
}

// Report sends a report about the port with the given UUID until berth acknowledges it, berth refuses it
// finally, or ctx ends. The error is ErrRefused, ErrUnknown, ErrStale, or, with the error of ctx,
// ErrUnavailable.
func (c *Client) Report(ctx context.Context, port string, r Report) (Result, error) {
	var noWorkflowSince time.Time
	for limit := orDefault(c.MinPause, 200*time.Millisecond); ; limit = min(2*limit, orDefault(c.MaxPause, 30*time.Second)) {
		result, err := c.sendOnce(ctx, port, r)
		switch {
		case err == nil || !errors.Is(err, ErrUnavailable):
			return result, err
		case !errors.Is(err, errNoWorkflow):
			noWorkflowSince = time.Time{}
		case noWorkflowSince.IsZero():
			noWorkflowSince = time.Now()
		case time.Since(noWorkflowSince) >= orDefault(c.UnknownAfter, time.Minute):
			return Result{}, fmt.Errorf("%w: it had no workflow for %s",
				ErrUnknown, time.Since(noWorkflowSince).Round(time.Second))
		}
		pause := rand.N(limit) + 1
		var asked *pauseError
		if errors.As(err, &asked) {
			pause += asked.pause
		}
		select {
		case <-ctx.Done():
			return Result{}, fmt.Errorf("port %s: %w; last attempt: %w", port, ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

// sendOnce sends the report once, or twice if the first transport knows no workflow of the port.
func (c *Client) sendOnce(ctx context.Context, port string, r Report) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, orDefault(c.Timeout, 30*time.Second))
	defer cancel()
	result, err := c.Transport.Send(ctx, port, r)
	if c.Fallback != nil && errors.Is(err, errNoWorkflow) {
		return c.Fallback.Send(ctx, port, r)
	}
	return result, err
}

// pauseError is ErrUnavailable with the pause that berth asks for.
type pauseError struct {
	text  string
	pause time.Duration
}

func (e *pauseError) Error() string { return e.text }
func (e *pauseError) Unwrap() error { return ErrUnavailable }

func orDefault(d, standard time.Duration) time.Duration {
	if d <= 0 {
		return standard
	}
	return d
}
