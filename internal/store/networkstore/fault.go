package networkstore

import (
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/network"
	"berth/internal/store/db"
)

// notFoundFault is a network.Fault that also matches db.ErrNotFound in errors.Is.
type notFoundFault struct{ fault *network.Fault }

func (a notFoundFault) Error() string { return a.fault.Message }

func (a notFoundFault) Unwrap() []error { return []error{db.ErrNotFound, a.fault} }

func notFound(f *network.Fault) error { return notFoundFault{f} }

// checkRevision returns an error if the revision that a request expects differs from the object's current revision.
func checkRevision(current int64, expect *int64) error {
	if expect == nil || *expect == current {
		return nil
	}
	return network.Faultf(network.RevisionMismatch, "Constrained to %d, but current revision is %d", *expect, current)
}

// checkFence checks the result of a write that is conditional on a revision. checkFence returns db.ErrConflict if no row was
// updated.
func checkFence(tag pgconn.CommandTag, err error, what string, id uuid.UUID) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case tag.RowsAffected() == 0:
		return fmt.Errorf("%w: %s: %s was changed concurrently", db.ErrConflict, what, id)
	default:
		return nil
	}
}

// equal reports whether two values are deeply equal.
func equal(before, after any) bool { return reflect.DeepEqual(before, after) }
