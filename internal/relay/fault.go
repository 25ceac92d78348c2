package relay

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fault says what caused the failure of a delivery: the note itself, the note's workflow, or Temporal.
type fault int

const (
	noFault fault = iota
	// noteRefused means that Temporal refuses this note and may accept others: the note has invalid
	// arguments, or its workflow cannot take another signal.
	noteRefused
	// workflowBusy means that Temporal is changing the note's workflow for other callers. Temporal accepts
	// the note soon.
	workflowBusy
	// temporalOverloaded means that Temporal cannot be reached, is slow,
	// throttles requests or is not set up, so that other notes fail as well.
	temporalOverloaded
)

// String returns the outcome of a delivery as the value of a metric's label.
func (f fault) String() string {
	return [...]string{
		noFault:            "accepted",
		noteRefused:        "refused",
		workflowBusy:       "busy",
		temporalOverloaded: "unavailable",
	}[f]
}

// faultOf returns what caused the failure of a delivery. An unknown error counts
// as a fault of Temporal, because the readiness checks show faults of Temporal to the operator.
func faultOf(err error) fault {
	var exhausted *serviceerror.ResourceExhausted
	switch {
	case err == nil:
		return noFault
	case errors.As(err, &exhausted) && exhausted.Cause == enums.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW:
		return workflowBusy
	case errors.As(err, &exhausted):
		if exhausted.Cause == enums.RESOURCE_EXHAUSTED_CAUSE_UNSPECIFIED &&
			strings.Contains(exhausted.Message, "larger than max") {
			return noteRefused // gRPC refuses a message of this size
		}
		return temporalOverloaded
	case lacksSearchAttributes(err) ||
		isAbout[*serviceerror.NamespaceNotFound](err) ||
		isAbout[*serviceerror.NamespaceInvalidState](err) ||
		isAbout[*serviceerror.NamespaceNotActive](err) ||
		isAbout[*serviceerror.ClientVersionNotSupported](err) ||
		isAbout[*serviceerror.ServerVersionNotSupported](err):
		return temporalOverloaded
	}
	switch serviceerror.ToStatus(err).Code() {
	case codes.InvalidArgument,
		codes.FailedPrecondition,
		codes.NotFound,
		codes.AlreadyExists,
		codes.OutOfRange,
		codes.DataLoss:
		return noteRefused
	default:
		return temporalOverloaded
	}
}

func isAbout[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// lacksSearchAttributes reports whether a search attribute of berth is not registered in the namespace.
// Temporal answers this with "invalid argument", although it concerns all notes.
func lacksSearchAttributes(err error) bool {
	var invalid *serviceerror.InvalidArgument
	if !errors.As(err, &invalid) {
		return false
	}
	return strings.Contains(invalid.Message, "no mapping defined for search attribute") ||
		strings.Contains(invalid.Message, "search attribute") &&
			strings.Contains(invalid.Message, "is not defined")
}

// attempt is the context key that marks a call to Temporal which the SDK must not repeat after a failure.
type attempt struct{}

// SingleAttempts is an interceptor for the connection of the relay's Temporal client. Without SingleAttempts,
// Temporal's SDK repeats a failed call until its deadline, so that the relay learns late that Temporal is
// unavailable, and an overloaded server gets more calls than the relay counts. SingleAttempts changes only
// the calls of the relay.
func SingleAttempts(
	ctx context.Context,
	method string,
	req, reply any,
	cc *grpc.ClientConn,
	invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	err := invoker(ctx, method, req, reply, cc, opts...)
	stop, ok := ctx.Value(attempt{}).(context.CancelCauseFunc)
	if !ok {
		return err
	}
	switch status.Code(err) {
	case codes.Unavailable,
		codes.ResourceExhausted,
		codes.Aborted,
		codes.Internal,
		codes.Unknown: // the codes after which the SDK repeats a call
		stop(err) // the SDK does not repeat a call whose context has ended
	}
	return err
}

// callOnce makes a call to Temporal, and returns the error of the first attempt if the client has the
// interceptor SingleAttempts.
func callOnce(ctx context.Context, call func(context.Context) error) error {
	once, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := call(withoutDeadline{context.WithValue(once, attempt{}, stop)})
	if first := context.Cause(once); err != nil && ctx.Err() == nil && first != nil {
		return serviceerror.FromStatus(status.Convert(first))
	}
	return err
}

// withoutDeadline is a context that ends at its deadline, but hides the deadline from Temporal's SDK. From a
// deadline, the SDK would compute a timeout of half the time.
type withoutDeadline struct{ context.Context }

// Deadline implements context.Context.
func (withoutDeadline) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
