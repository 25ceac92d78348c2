package cloud

import (
	"context"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"

	"berth/internal/lease"
)

// AddToFreepool adds a host to the freepool aggregate, unless a reservation of whole hosts has the host.
func (c *Cloud) AddToFreepool(ctx context.Context, host string) error {
	if !c.Supports(lease.PhysicalHost) {
		return nil
	}
	return c.hosts.addToFreepool(ctx, host)
}

// RemoveFromFreepool removes a host from the freepool aggregate.
func (c *Cloud) RemoveFromFreepool(ctx context.Context, host string) error {
	if !c.Supports(lease.PhysicalHost) {
		return nil
	}
	all, err := c.hosts.aggregates(ctx)
	if err != nil {
		return err
	}
	return c.hosts.removeFromFreepool(ctx, all, host)
}

func (h hosts) removeFromFreepool(
	ctx context.Context,
	all map[string]aggregates.Aggregate,
	host string,
) error {
	if pool, is := all[freepool]; is && slices.Contains(pool.Hosts, host) {
		return h.removeHost(ctx, pool, host)
	}
	return nil
}

// addToFreepool adds a host to the freepool, unless a reservation of whole hosts has the host. While
// addToFreepool runs, a reservation of whole hosts may move the host into the aggregate of the reservation.
// addToFreepool and apply both list the aggregates again after they have changed an aggregate, so that the
// function that lists last sees both changes and removes the host from the freepool.
func (h hosts) addToFreepool(ctx context.Context, host string) error {
	all, err := h.aggregates(ctx)
	if err != nil || exclusiveOwner(all, host) != "" {
		return err
	}
	pool, err := h.aggregate(ctx, all, freepool, "", nil)
	if err != nil {
		return err
	}
	if slices.Contains(pool.Hosts, host) {
		return nil
	}
	if err := ignoreConflict(h.addHost(ctx, pool, host)); err != nil {
		return err
	}
	if all, err = h.aggregates(ctx); err != nil || exclusiveOwner(all, host) == "" {
		return err
	}
	return h.removeFromFreepool(ctx, all, host)
}

// removeFromPool removes the given hosts from the freepool if they are in it, because addToFreepool may have
// added them while a reservation moved them into the reservation's aggregate.
func (h hosts) removeFromPool(
	ctx context.Context,
	all map[string]aggregates.Aggregate,
	hosts []string,
) error {
	if len(hosts) == 0 {
		return nil
	}
	pool, is, err := h.freepoolAggregate(ctx, all)
	if err != nil || !is {
		return err
	}
	for _, host := range hosts {
		if !slices.Contains(pool.Hosts, host) {
			continue
		}
		if err := h.removeHost(ctx, pool, host); err != nil {
			return err
		}
	}
	return nil
}

// ensureFreepool returns the freepool aggregate, and creates it if it does not exist.
func (h hosts) ensureFreepool(
	ctx context.Context,
	all map[string]aggregates.Aggregate,
) (aggregates.Aggregate, error) {
	pool, is, err := h.freepoolAggregate(ctx, all)
	if err == nil && !is {
		pool, err = h.aggregate(ctx, nil, freepool, "", nil)
	}
	return pool, err
}

// returnToPool moves hosts from a reservation's aggregate into the freepool.
func (h hosts) returnToPool(
	ctx context.Context,
	all map[string]aggregates.Aggregate,
	own aggregates.Aggregate,
	hosts []string,
) error {
	if len(hosts) == 0 {
		return nil
	}
	pool, err := h.ensureFreepool(ctx, all)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		if err := h.moveToPool(ctx, pool, own, host); err != nil {
			return err
		}
	}
	return nil
}

// moveToPool adds a host to the freepool before it removes the host from the reservation's aggregate, so that
// a crash leaves every host in an aggregate. If the freepool has an availability zone, moveToPool removes the
// host from the reservation's aggregate first, because Nova refuses a host in two availability zones.
func (h hosts) moveToPool(ctx context.Context, pool, own aggregates.Aggregate, host string) error {
	joined := h.addHost(ctx, pool, host)
	if ignoreConflict(joined) != nil {
		return joined
	}
	if err := h.removeHost(ctx, own, host); err != nil || joined == nil {
		return err
	}
	return ignoreConflict(h.addHost(ctx, pool, host))
}

// exclusiveOwner returns the ID of the reservation of whole hosts whose aggregate contains the host, or "" if
// there is no such reservation.
func exclusiveOwner(all map[string]aggregates.Aggregate, host string) string {
	for _, a := range all {
		if a.Metadata[owner] != "" && a.Metadata["reservation"] == "" && slices.Contains(a.Hosts, host) {
			return a.Name
		}
	}
	return ""
}
