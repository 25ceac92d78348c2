package activities

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"berth/internal/lease"
	"berth/internal/store"
)

// Types of the errors that no retry mends. Workflows switch on them.
const (
	NotFound = "NotFound" // the row is gone
	Conflict = "Conflict" // the row is no longer what the writer acted on
	Invalid  = "Invalid"  // the input belongs to no row
)

// Unwilling is the type of the error that says that a neighbour does not do what a lease needs. A retry may mend it, and
// the workflow decides for how long.
const Unwilling = "Unwilling"

// verdict is the one table of what is worth retrying: everything but what the database has decided for good.
func verdict(err error) error {
	var fault *lease.Fault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		return unwilling(err)
	case errors.Is(err, store.ErrNotFound):
		return final(err, NotFound)
	case errors.Is(err, store.ErrConflict):
		return final(err, Conflict)
	default:
		return err
	}
}

func invalid(err error) error { return final(err, Invalid) }

func final(err error, typ string) error {
	return temporal.NewApplicationErrorWithOptions(err.Error(), typ, temporal.ApplicationErrorOptions{
		NonRetryable: true,
		Category:     temporal.ApplicationErrorCategoryBenign,
	})
}
