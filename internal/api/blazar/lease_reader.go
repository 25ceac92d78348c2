package blazar

import (
	"context"

	"github.com/google/uuid"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/lease"
	"berth/internal/store/leasestore"
)

// LeaseReader reads leases for pages outside the API. The policy rules of the API decide what a caller sees.
type LeaseReader struct {
	Store  *leasestore.Store
	Policy *policy.Policy // must have the defaults in Policy
}

func (l LeaseReader) access(c identity.Caller) access { return access{l.Policy.Rules(), c} }

// MayRead reports whether the caller may see any lease.
func (l LeaseReader) MayRead(c identity.Caller) bool {
	return l.access(c).mayCall(endpoint{rule: "leases:get", onLease: true})
}

// Lease reads one lease, as the response to GET /v1/leases/{id} shows it to the caller: without the leases
// and the hosts that the caller may not see. The error wraps db.ErrNotFound if the caller may not see the
// lease.
func (l LeaseReader) Lease(ctx context.Context, c identity.Caller, id uuid.UUID) (lease.Lease, error) {
	a := l.access(c)
	found, err := visibleLease(ctx, l.Store, a, id)
	return a.redact(found), err
}

// List calls the function `each` with those leases of the caller's project that the response to GET
// /v1/leases contains for the caller, the oldest first. The list begins after the lease with the ID `after`,
// or with the oldest lease if `after` is uuid.Nil, and has at most `most` leases. List reads large leases
// only after it has called `each` with those before them, so that few are in memory at a time. The error
// wraps db.ErrNotFound if the caller may not see the lease `after`.
func (l LeaseReader) List(
	ctx context.Context,
	c identity.Caller,
	after uuid.UUID,
	most int,
	each func(lease.Lease),
) (err error) {
	if !l.MayRead(c) {
		return nil
	}
	a := l.access(c)
	filter, check := a.leaseFilter()
	filter.Project = c.Project
	leases := leaseList(l.Store, a, filter, check)
	var from lease.Lease
	if after != uuid.Nil {
		if from, err = leases.find(ctx, after.String()); err != nil {
			return err
		}
	}
	next := leases.visibleItems(from, most)
	for last := false; !last; {
		var page []lease.Lease
		if page, last, err = next(ctx); err != nil {
			return err
		}
		for _, found := range page {
			each(a.redact(found))
		}
	}
	return nil
}
