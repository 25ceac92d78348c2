package agent

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"berth/internal/contract"
)

// Signer signs reports over Temporal. The zero value does not sign.
type Signer struct {
	Key      ed25519.PrivateKey // a private key of the host; nil: reports are not signed
	Lifetime time.Duration      // how long a signature is valid; 0: one hour; at most 24 hours
}

// sign returns the report with a signature that is valid from now on.
func (s Signer) sign(port string, r Report) Report {
	if s.Key == nil {
		return r
	}
	return r.Sign(s.Key, contract.PortID(port), time.Now().Add(orDefault(s.Lifetime, time.Hour)))
}

// Update sends reports as updates of the workflow of the port. berth has stored the report when Send returns
// without an error.
type Update struct {
	// Temporal is a client of Temporal, in berth's namespace.
	Temporal interface {
		UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error)
	}
	Signer
}

// Send implements Transport.
func (u *Update) Send(ctx context.Context, port string, r Report) (Result, error) {
	var v contract.ReportResult
	handle, err := u.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID:   contract.PortID(port),
		UpdateName:   contract.UpdateProvisioningComplete,
		Args:         []any{u.sign(port, r)},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, &v)
	}
	switch {
	case err != nil:
		return Result{}, temporalError(err)
	case v.Status == "DELETED":
		return Result{}, ErrUnknown
	case v.Stale:
		return Result{}, ErrStale
	case len(v.Remaining) > 0:
		return Result{Outcome: Waiting, Status: v.Status, Remaining: v.Remaining}, nil
	}
	return Result{Outcome: Done, Status: v.Status, Remaining: v.Remaining}, nil
}

// Signal sends reports as signals to the workflow of the port. Temporal has stored the report when Send
// returns without an error, so no report is lost; the sender does not learn whether the report changed the
// port.
type Signal struct {
	// Temporal is a client of Temporal, in berth's namespace.
	Temporal interface {
		SignalWorkflow(ctx context.Context, workflowID, runID, signalName string, arg any) error
	}
	Signer
}

// Send implements Transport.
func (s *Signal) Send(ctx context.Context, port string, r Report) (Result, error) {
	if err := s.Temporal.SignalWorkflow(ctx, contract.PortID(port), "", contract.SignalProvisioningComplete, s.sign(port, r)); err != nil {
		return Result{}, temporalError(err)
	}
	return Result{Outcome: Sent}, nil
}

// temporalError translates an error of Temporal into one of the errors of this package.
func temporalError(err error) error {
	var notFound *serviceerror.NotFound
	var application *temporal.ApplicationError
	var invalid *serviceerror.InvalidArgument
	var denied *serviceerror.PermissionDenied
	switch {
	case errors.As(err, &notFound):
		return fmt.Errorf("%w: %w", errNoWorkflow, err)
	case errors.As(err, &application) && slices.Contains(contract.ReportErrors, application.Type()):
		return fmt.Errorf("%w: %s", ErrRefused, application.Message())
	case errors.As(err, &invalid), errors.As(err, &denied):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
}
