package activities

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"berth/internal/store"
)

// Types of the errors that no retry mends. Workflows switch on them.
const (
	NotFound = "NotFound" // the row is gone
	Conflict = "Conflict" // the row is no longer what the writer acted on
	Invalid  = "Invalid"  // the input belongs to no row
)

// verdict is the one table of what is worth retrying: everything but what the database has decided for good.
func verdict(err error) error {
	switch {
	case err == nil:
		return nil
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
