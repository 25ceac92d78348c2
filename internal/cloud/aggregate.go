package cloud

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"berth/internal/lease"
)

// nova is what hosts and instances share.
type nova struct {
	client *gophercloud.ServiceClient
	lists  *shared[map[string]aggregates.Aggregate]
	pools  *shared[aggregates.Aggregate]
}

// aggregates lists all aggregates by name. The list belongs to many: nobody changes it.
func (n nova) aggregates(ctx context.Context) (map[string]aggregates.Aggregate, error) {
	return n.lists.ask(ctx, n.list)
}

func (n nova) list(ctx context.Context) (map[string]aggregates.Aggregate, error) {
	var list struct{ Aggregates []aggregate }
	if _, err := n.client.Get(ctx, n.client.ServiceURL("os-aggregates"), &list, nil); err != nil {
		return nil, fmt.Errorf("list aggregates: %w", err)
	}
	all := map[string]aggregates.Aggregate{}
	for _, a := range list.Aggregates {
		all[a.Name] = a.whole()
	}
	return all, nil
}

// aggregate is what is read of an aggregate, at once: there may be thousands of them, with thousands of hosts, and
// gophercloud's own reads each twice.
type aggregate struct {
	ID       int               `json:"id"`
	Name     string            `json:"name"`
	Hosts    []string          `json:"hosts"`
	Metadata map[string]string `json:"metadata"`
}

func (a aggregate) whole() aggregates.Aggregate {
	return aggregates.Aggregate{ID: a.ID, Name: a.Name, Hosts: a.Hosts, Metadata: a.Metadata}
}

// pooled is the pool of free hosts as it is now, if there is one. It is found among all of some time ago, if it was there.
func (n nova) pooled(ctx context.Context, all map[string]aggregates.Aggregate) (pool aggregates.Aggregate, is bool, err error) {
	if pool, is = all[freepool]; is {
		id := strconv.Itoa(pool.ID) // the question may outlive who asks it
		pool, err = n.pools.ask(ctx, func(ctx context.Context) (aggregates.Aggregate, error) {
			var one struct{ Aggregate aggregate }
			_, err := n.client.Get(ctx, n.client.ServiceURL("os-aggregates", id), &one, nil)
			return one.Aggregate.whole(), err
		})
		if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			return pool, err == nil, err
		}
	}
	all, err = n.aggregates(ctx)
	pool, is = all[freepool]
	return pool, is, err
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
	if err := n.move(ctx, a, "add_host", host); err != nil {
		return fmt.Errorf("host %s joins aggregate %s: %w", host, a.Name, err)
	}
	return nil
}

func (n nova) part(ctx context.Context, a aggregates.Aggregate, host string) error {
	if err := gone(n.move(ctx, a, "remove_host", host)); err != nil {
		return fmt.Errorf("host %s leaves aggregate %s: %w", host, a.Name, err)
	}
	return nil
}

// move brings a host into an aggregate or out of it. The answer, which lists all hosts there, is not read.
func (n nova) move(ctx context.Context, a aggregates.Aggregate, action, host string) error {
	_, err := n.client.Post(ctx, n.client.ServiceURL("os-aggregates", strconv.Itoa(a.ID), "action"),
		map[string]any{action: map[string]string{"host": host}}, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	return err
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
		err = fmt.Errorf("%w: %d of %s", ErrServersRemain, len(left), where)
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
	if err := h.outOfPool(ctx, all, joined); err != nil {
		return mark, err
	}
	return mark, h.free(ctx, all, own, slices.DeleteFunc(slices.Clone(own.Hosts), func(host string) bool { return slices.Contains(wanted, host) }))
}

// take moves a host out of the pool, without the servers that are on it, into the reservation's own aggregate.
func (h hosts) take(ctx context.Context, all map[string]aggregates.Aggregate, own aggregates.Aggregate, host string) error {
	for _, a := range all {
		if a.Metadata[owner] != "" && a.Name != own.Name && slices.Contains(a.Hosts, host) {
			return fmt.Errorf("%w: host %s is in the aggregate of reservation %s", ErrInUse, host, a.Name)
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
		if err := h.free(ctx, all, own, own.Hosts); err != nil {
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
