package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"berth/internal/lease"
)

// nova is what hosts and instances share.
type nova struct {
	client *gophercloud.ServiceClient
	lists  *lists
}

// aggregates lists all aggregates by name. The list belongs to many: nobody changes it.
func (n nova) aggregates(ctx context.Context) (map[string]aggregates.Aggregate, error) {
	return n.lists.ask(ctx, n.list)
}

func (n nova) list(ctx context.Context) (map[string]aggregates.Aggregate, error) {
	pages, err := aggregates.List(n.client).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list aggregates: %w", err)
	}
	list, err := aggregates.ExtractAggregates(pages)
	if err != nil {
		return nil, fmt.Errorf("list aggregates: %w", err)
	}
	all := map[string]aggregates.Aggregate{}
	for _, a := range list {
		all[a.Name] = a
	}
	return all, nil
}

// aggregate is the aggregate of that name, which is made if it is not among all.
func (n nova) aggregate(ctx context.Context, all map[string]aggregates.Aggregate, name, zone string, metadata map[string]any) (aggregates.Aggregate, error) {
	a, is := all[name]
	if !is {
		made, err := aggregates.Create(ctx, n.client, aggregates.CreateOpts{Name: name, AvailabilityZone: zone}).Extract()
		if err != nil {
			return a, fmt.Errorf("make aggregate %s: %w", name, err)
		}
		a = *made
	}
	missing := maps.Clone(metadata)
	maps.DeleteFunc(missing, func(key string, value any) bool { return a.Metadata[key] == value })
	if len(missing) == 0 {
		return a, nil
	}
	if _, err := aggregates.SetMetadata(ctx, n.client, a.ID, aggregates.SetMetadataOpts{Metadata: missing}).Extract(); err != nil {
		return a, fmt.Errorf("metadata of aggregate %s: %w", name, err)
	}
	return a, nil
}

func (n nova) join(ctx context.Context, a aggregates.Aggregate, host string) error {
	if slices.Contains(a.Hosts, host) {
		return nil
	}
	_, err := aggregates.AddHost(ctx, n.client, a.ID, aggregates.AddHostOpts{Host: host}).Extract()
	if err != nil {
		return fmt.Errorf("host %s joins aggregate %s: %w", host, a.Name, err)
	}
	return nil
}

func (n nova) part(ctx context.Context, a aggregates.Aggregate, host string) error {
	_, err := aggregates.RemoveHost(ctx, n.client, a.ID, aggregates.RemoveHostOpts{Host: host}).Extract()
	if err := gone(err); err != nil {
		return fmt.Errorf("host %s leaves aggregate %s: %w", host, a.Name, err)
	}
	return nil
}

// dissolve deletes an aggregate that has no hosts any more.
func (n nova) dissolve(ctx context.Context, a aggregates.Aggregate) error {
	if err := gone(aggregates.Delete(ctx, n.client, a.ID).ExtractErr()); err != nil {
		return fmt.Errorf("delete aggregate %s: %w", a.Name, err)
	}
	return nil
}

// servers lists the servers of all projects that the filter lets through.
func (n nova) servers(ctx context.Context, filter servers.ListOpts) ([]servers.Server, error) {
	filter.AllTenants = true
	pages, err := servers.List(n.client, filter).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list servers: %w", err)
	}
	all, err := servers.ExtractServers(pages)
	if err != nil {
		return nil, fmt.Errorf("list servers: %w", err)
	}
	return all, nil
}

// clear asks the servers to go that the filter lets through, and tells how many are there.
func (n nova) clear(ctx context.Context, filter servers.ListOpts) (int, error) {
	all, err := n.servers(ctx, filter)
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		if err := gone(servers.Delete(ctx, n.client, s.ID).ExtractErr()); err != nil {
			return 0, fmt.Errorf("delete server %s: %w", s.ID, err)
		}
	}
	return len(all), nil
}

// cleared asks the servers to go and fails while they are there. Most go at once, so it looks twice.
func (n nova) cleared(ctx context.Context, filter servers.ListOpts, where string) error {
	asked, err := n.clear(ctx, filter)
	if err != nil || asked == 0 {
		return err
	}
	left, err := n.servers(ctx, filter)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%w: %d of %s", ErrBusy, len(left), where)
	}
	return err
}

// hosts is physical:host: an aggregate of whole hosts, in an availability zone of their own.
type hosts struct{ nova }

func (h hosts) provide(ctx context.Context, c lease.Claim) (lease.Mark, error) {
	all, err := h.aggregates(ctx)
	if err != nil {
		return lease.Mark{}, err
	}
	own, err := h.aggregate(ctx, all, c.ID.String(), "blazar_"+c.ID.String(), map[string]any{owner: c.Project})
	if err != nil {
		return lease.Mark{}, err
	}
	id := int64(own.ID)
	mark := lease.Mark{AggregateID: &id}
	var wanted, joined []string
	for _, s := range c.Servers {
		wanted = append(wanted, s.Service)
		if slices.Contains(own.Hosts, s.Service) {
			continue
		}
		if err := h.take(ctx, all, own, s.Service); err != nil {
			return mark, err
		}
		joined = append(joined, s.Service)
	}
	if err := h.outOfPool(ctx, joined); err != nil {
		return mark, err
	}
	return mark, h.free(ctx, own, slices.DeleteFunc(slices.Clone(own.Hosts), func(host string) bool { return slices.Contains(wanted, host) }))
}

// take moves a host out of the pool, without the servers that are on it, into the reservation's own aggregate.
func (h hosts) take(ctx context.Context, all map[string]aggregates.Aggregate, own aggregates.Aggregate, host string) error {
	for _, a := range all {
		if a.Metadata[owner] != "" && a.Name != own.Name && slices.Contains(a.Hosts, host) {
			return fmt.Errorf("%w: host %s is in the aggregate of reservation %s", ErrTaken, host, a.Name)
		}
	}
	if err := h.unpool(ctx, all, host); err != nil {
		return err
	}
	if _, err := h.clear(ctx, servers.ListOpts{Host: host}); err != nil {
		return err
	}
	return h.join(ctx, own, host)
}

// withdraw clears the hosts of the reservation's aggregate before anybody else can have them. It never touches a host
// that the reservation was not given.
func (h hosts) withdraw(ctx context.Context, c lease.Claim) error {
	all, err := h.aggregates(ctx)
	if err != nil {
		return err
	}
	own, is := all[c.ID.String()]
	if is {
		for _, host := range own.Hosts {
			if err := h.cleared(ctx, servers.ListOpts{Host: host}, "host "+host); err != nil {
				return err
			}
		}
		if err := h.free(ctx, own, own.Hosts); err != nil {
			return err
		}
		if err := h.dissolve(ctx, own); err != nil {
			return err
		}
	}
	return h.strays(ctx, all, c)
}

// strays puts those hosts of a reservation into the pool that were on their way from there when it was given up.
func (h hosts) strays(ctx context.Context, all map[string]aggregates.Aggregate, c lease.Claim) error {
	for _, s := range c.Servers {
		elsewhere := false
		for _, a := range all {
			elsewhere = elsewhere || (a.Name == freepool || a.Metadata[owner] != "") && slices.Contains(a.Hosts, s.Service)
		}
		if elsewhere {
			continue
		}
		if err := h.pool(ctx, s.Service); err != nil {
			return err
		}
	}
	return nil
}

// beforeEnd keeps an image of each server, if the reservation asked for that.
func (h hosts) beforeEnd(ctx context.Context, c lease.Claim) error {
	if c.BeforeEnd != "snapshot" {
		return nil
	}
	for _, at := range c.Servers {
		all, err := h.servers(ctx, servers.ListOpts{Host: at.Service})
		if err != nil {
			return err
		}
		for _, s := range all {
			if err := gone(servers.CreateImage(ctx, h.client, s.ID, servers.CreateImageOpts{Name: "reserved_" + s.Name}).Err); err != nil {
				return fmt.Errorf("image of server %s: %w", s.ID, err)
			}
		}
	}
	return nil
}
