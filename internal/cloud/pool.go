package cloud

import (
	"context"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"

	"berth/internal/lease"
)

// Pool brings a host into the pool of those that can be leased, unless a reservation has it.
func (c *Cloud) AddToFreepool(ctx context.Context, host string) error {
	if !c.Supports(lease.PhysicalHost) {
		return nil
	}
	return c.hosts.pool(ctx, host)
}

// Unpool takes a host out of the pool.
func (c *Cloud) RemoveFromFreepool(ctx context.Context, host string) error {
	if !c.Supports(lease.PhysicalHost) {
		return nil
	}
	all, err := c.hosts.aggregates(ctx)
	if err != nil {
		return err
	}
	return c.hosts.unpool(ctx, all, host)
}

func (h hosts) unpool(ctx context.Context, all map[string]aggregates.Aggregate, host string) error {
	if pool, is := all[freepool]; is && slices.Contains(pool.Hosts, host) {
		return h.part(ctx, pool, host)
	}
	return nil
}

// pool makes sure that a host is in the pool, unless a reservation has it. One may take it meanwhile: so does whoever
// takes one, it looks again when it is done, and who comes second takes it out of the pool.
func (h hosts) pool(ctx context.Context, host string) error {
	all, err := h.aggregates(ctx)
	if err != nil || taken(all, host) != "" {
		return err
	}
	pool, err := h.aggregate(ctx, all, freepool, "", nil)
	if err != nil {
		return err
	}
	if slices.Contains(pool.Hosts, host) {
		return nil
	}
	if err := there(h.join(ctx, pool, host)); err != nil {
		return err
	}
	if all, err = h.aggregates(ctx); err != nil || taken(all, host) == "" {
		return err
	}
	return h.unpool(ctx, all, host)
}

// outOfPool takes hosts out of the pool that somebody brought there while a reservation took them; see pool.
func (h hosts) outOfPool(ctx context.Context, all map[string]aggregates.Aggregate, hosts []string) error {
	if len(hosts) == 0 {
		return nil
	}
	pool, is, err := h.pooled(ctx, all)
	if err != nil || !is {
		return err
	}
	for _, host := range hosts {
		if !slices.Contains(pool.Hosts, host) {
			continue
		}
		if err := h.part(ctx, pool, host); err != nil {
			return err
		}
	}
	return nil
}

// free moves hosts from a reservation's aggregate into the pool. They are there before they leave, so that none is lost
// between the two, unless the pool has an availability zone: Nova lets no host be in two.
func (h hosts) free(ctx context.Context, all map[string]aggregates.Aggregate, own aggregates.Aggregate, hosts []string) error {
	if len(hosts) == 0 {
		return nil
	}
	pool, is, err := h.pooled(ctx, all)
	if err == nil && !is {
		pool, err = h.aggregate(ctx, nil, freepool, "", nil)
	}
	if err != nil {
		return err
	}
	for _, host := range hosts {
		joined := h.join(ctx, pool, host)
		if there(joined) != nil {
			return joined
		}
		if err := h.part(ctx, own, host); err != nil {
			return err
		}
		if joined == nil {
			continue
		}
		if err := there(h.join(ctx, pool, host)); err != nil {
			return err
		}
	}
	return nil
}

// taken is the reservation in whose aggregate a host is alone; empty if it is in none.
func taken(all map[string]aggregates.Aggregate, host string) string {
	for _, a := range all {
		if a.Metadata[owner] != "" && a.Metadata["reservation"] == "" && slices.Contains(a.Hosts, host) {
			return a.Name
		}
	}
	return ""
}
