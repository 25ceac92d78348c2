package activities

import (
	"context"
	"errors"

	"berth/internal/store/db"
)

// SyncFreepoolHost applies the pending freepool updates of a host: it adds the host to Nova's aggregate
// "freepool" or removes the host from this aggregate, until no pending update is left. SyncFreepoolHost calls
// Nova before it deletes the row of the pending update. A crash of SyncFreepoolHost may therefore cause a
// repeated call to Nova, but never a missing call.
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
	ctx, cancel := a.withCallTimeout(ctx, a.Timeouts.LongCall)
	defer cancel()
	if reservable {
		return a.Cloud.AddToFreepool(ctx, service)
	}
	return a.Cloud.RemoveFromFreepool(ctx, service)
}
