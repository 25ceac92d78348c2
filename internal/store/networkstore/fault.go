package networkstore

import (
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/network"
	"berth/internal/store/db"
)

// absent is a fault that is also ErrNotFound.
type absent struct{ fault *network.Fault }

func (a absent) Error() string { return a.fault.Message }

func (a absent) Unwrap() []error { return []error{db.ErrNotFound, a.fault} }

func missing(f *network.Fault) error { return absent{f} }

// revisionIs is the fence of a request that names the revision that it acts on.
func revisionIs(current int64, expect *int64) error {
	if expect == nil || *expect == current {
		return nil
	}
	return network.Faultf(network.RevisionMismatch, "Constrained to %d, but current revision is %d", *expect, current)
}

// fenced is the outcome of a write that names the revision that it acts on: no row means that somebody was faster.
func fenced(tag pgconn.CommandTag, err error, what string, id uuid.UUID) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case tag.RowsAffected() == 0:
		return fmt.Errorf("%w: %s: %s is no longer what it was", db.ErrConflict, what, id)
	default:
		return nil
	}
}

// same tells whether a change changed nothing.
func same(before, after any) bool { return reflect.DeepEqual(before, after) }
