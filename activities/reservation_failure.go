package activities

import (
	"context"
	"errors"
	"log/slog"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/text"
)

// inventoryError names Placement as the party of an error with which the inventory refused a reservation.
func inventoryError(call string, err error) error {
	var fault *lease.Fault
	if errors.As(err, &fault) {
		return &lease.CallError{Party: lease.PartyPlacement, Call: call, Err: err}
	}
	return err
}

// recordCall records in the database whether the calls for a reservation succeeded, so that the API and
// `starter why` can name the party that failed. recordCall returns the error for Temporal: the error says
// when the next attempt is.
func (a *Activities) recordCall(ctx context.Context, id uuid.UUID, err error) error {
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Timeouts.Record)
	defer cancel()
	var call *lease.CallError
	switch {
	case err == nil:
		if err := a.Store.Lease.ClearCallFailures(record, id); err != nil {
			slog.WarnContext(ctx, "could not delete the failures of a reservation's calls",
				"reservation", id, "error", err)
		}
		return nil
	case errors.Is(err, db.ErrConflict) || errors.Is(err, db.ErrNotFound) || !errors.As(err, &call):
		return classify(err)
	case errors.Is(ctx.Err(), context.Canceled):
		return backendError(err)
	}
	retries := activity.IsActivity(ctx) && !activity.GetInfo(ctx).IsLocalActivity
	reason := text.Excerpt(err.Error(), maxErrorText)
	delay, failed := a.Store.Lease.RecordCallFailure(record, id,
		lease.CallError{Party: call.Party, Call: call.Call, Err: errors.New(reason)}, retries)
	if failed != nil {
		slog.WarnContext(ctx, "could not record the failure of a reservation's call",
			"reservation", id, "error", failed)
	}
	return temporal.NewApplicationErrorWithOptions(reason, BackendError, temporal.ApplicationErrorOptions{
		Category: temporal.ApplicationErrorCategoryBenign, NextRetryDelay: delay, Details: []any{call.Party}})
}
