package networkstore

import (
	"berth/internal/network"
	"berth/internal/store/db"
)

// notFoundFault is a network.Fault that also matches db.ErrNotFound in errors.Is.
type notFoundFault struct{ fault *network.Fault }

func (a notFoundFault) Error() string { return a.fault.Message }

func (a notFoundFault) Unwrap() []error { return []error{db.ErrNotFound, a.fault} }

// NotFound returns the fault as an error that also matches db.ErrNotFound.
func NotFound(f *network.Fault) error { return notFoundFault{f} }

// CheckRevision returns an error if the revision that a request expects differs from the object's current
// revision.
func CheckRevision(current int64, expect *int64) error {
	if expect == nil || *expect == current {
		return nil
	}
	return network.Faultf(network.RevisionMismatch, "Constrained to %d, but current revision is %d",
		*expect, current)
}
