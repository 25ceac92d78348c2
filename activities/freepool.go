package activities

import (
	"context"
	"errors"

	"berth/internal/store/db"
)

// SyncFreepoolHost adds a host to Nova's aggregate "freepool" or removes it, as the host's row requires, and repeats this
// until no newer change is recorded. Nova is called before the row is updated, so that a call may be repeated but is never
// missed.
func (a *Activities) SyncFreepoolHost(ctx context.Context, service string) error {
	defer startHeartbeat(ctx)()
	for {
		reservable, version, err := a.Store.Lease.PendingPoolUpdate(ctx, service)
		if errors.Is(err, db.ErrNotFound) {
			return nil
		}
		if err == nil {
			err = a.syncFreepool(ctx, service, reservable)
		}
		if err == nil {
			err = a.Store.Lease.DeletePoolUpdate(ctx, service, version)
		}
		if err != nil {
			return classify(err)
		}
	}
}

func (a *Activities) syncFreepool(ctx context.Context, service string, reservable bool) error {
	if a.Cloud == nil {
		return nil
	}
	ctx, cancel := withCallTimeout(ctx, LongCallTimeout)
	defer cancel()
	if reservable {
		return a.Cloud.AddToFreepool(ctx, service)
	}
	return a.Cloud.RemoveFromFreepool(ctx, service)
}
