package activities

import (
	"context"
	"errors"

	"berth/internal/store/db"
)

// SyncFreepoolHost adds a host to Nova's aggregate "freepool" or removes the host from it, as the host's row requires. SyncFreepoolHost
// repeats this until the row records no newer change. SyncFreepoolHost calls Nova before it marks the change as done in the row. So a
// crash may cause a repeated call to Nova, but never a missing one.
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
