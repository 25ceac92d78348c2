package activities

import (
	"context"
	"errors"

	"berth/internal/store"
)

// PoolHost brings a host into the pool of those that can be leased, or out of it, as its row says, until the cloud has
// heard of every change. World first, row second: it may hear something twice, and never misses it.
func (a *Activities) PoolHost(ctx context.Context, service string) error {
	defer alive(ctx)()
	for {
		reservable, version, err := a.Store.Pooling(ctx, service)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err == nil {
			err = a.pool(ctx, service, reservable)
		}
		if err == nil {
			err = a.Store.SettlePooling(ctx, service, version)
		}
		if err != nil {
			return verdict(err)
		}
	}
}

func (a *Activities) pool(ctx context.Context, service string, reservable bool) error {
	if a.Cloud == nil {
		return nil
	}
	ctx, cancel := attempt(ctx, LongCall)
	defer cancel()
	if reservable {
		return a.Cloud.Pool(ctx, service)
	}
	return a.Cloud.Unpool(ctx, service)
}
