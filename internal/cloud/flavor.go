package cloud

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"berth/internal/lease"
)

// instances is virtual:instance and flavor:instance: a flavor that only the reservation's project may use, and that
// fits only into the room that inventory has for the reservation on the hosts of its aggregate.
type instances struct{ nova }

func (i instances) provide(ctx context.Context, c lease.Claim) (lease.Mark, error) {
	var mark lease.Mark
	var err error
	if c.Affinity != lease.Anywhere {
		if mark.ServerGroupID, err = i.group(ctx, c); err != nil {
			return mark, err
		}
	}
	all, err := i.aggregates(ctx)
	if err != nil {
		return mark, err
	}
	metadata := map[string]any{"reservation": c.ID.String(), "filter_tenant_id": c.Project, owner: c.Project}
	if mark.ServerGroupID != "" {
		metadata["affinity_id"] = mark.ServerGroupID
	}
	own, err := i.aggregate(ctx, all, c.ID.String(), "", metadata)
	if err != nil {
		return mark, err
	}
	id := int64(own.ID)
	mark.AggregateID = &id
	for _, s := range c.Servers {
		if err := i.join(ctx, own, s.Service); err != nil {
			return mark, err
		}
	}
	for _, host := range own.Hosts {
		wanted := slices.ContainsFunc(c.Servers, func(s lease.ClaimedHost) bool { return s.Service == host })
		if wanted {
			continue
		}
		if err := i.part(ctx, own, host); err != nil {
			return mark, err
		}
	}
	return mark, i.flavor(ctx, c, mark.ServerGroupID)
}

// group is the server group that keeps the instances together or apart.
func (i instances) group(ctx context.Context, c lease.Claim) (string, error) {
	all, err := i.groups(ctx, c)
	if err != nil || len(all) > 0 {
		if len(all) > 0 {
			return all[0].ID, nil
		}
		return "", err
	}
	g, err := servergroups.Create(ctx, i.client, servergroups.CreateOpts{Name: named(c), Policies: []string{string(c.Affinity)}}).Extract()
	if err != nil {
		return "", fmt.Errorf("make server group %s: %w", named(c), err)
	}
	return g.ID, nil
}

// groups are the server groups of a reservation: one, or two where making the first was not heard of.
func (i instances) groups(ctx context.Context, c lease.Claim) ([]servergroups.ServerGroup, error) {
	pages, err := servergroups.List(i.client, servergroups.ListOpts{AllProjects: true}).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list server groups: %w", err)
	}
	all, err := servergroups.ExtractServerGroups(pages)
	if err != nil {
		return nil, fmt.Errorf("list server groups: %w", err)
	}
	return slices.DeleteFunc(all, func(g servergroups.ServerGroup) bool { return g.Name != named(c) }), nil
}

// named is what a reservation's flavor and server group are called.
func named(c lease.Claim) string { return "reservation:" + c.ID.String() }

// flavor makes the reservation's flavor and lets its project use it, once all else is there.
func (i instances) flavor(ctx context.Context, c lease.Claim, group string) error {
	id := c.ID.String()
	size, specs := lease.Flavor{VCPUs: c.VCPUs, MemoryMB: c.MemoryMB, DiskGB: c.DiskGB}, flavors.ExtraSpecsOpts{}
	if c.Flavor != nil {
		size = *c.Flavor
		maps.Copy(specs, c.Flavor.ExtraSpecs)
	}
	specs["aggregate_instance_extra_specs:reservation"] = id
	specs["resources:"+lease.ReservationClass(c.ID)] = "1"
	if group != "" {
		specs["affinity_id"] = group
	}
	disk, ephemeral, public := int(size.DiskGB), int(size.Ephemeral), false
	_, err := flavors.Create(ctx, i.client, flavors.CreateOpts{ID: id, Name: named(c), VCPUs: int(size.VCPUs), RAM: int(size.MemoryMB),
		Disk: &disk, Ephemeral: &ephemeral, IsPublic: &public}).Extract()
	if there(err) != nil {
		return fmt.Errorf("make flavor %s: %w", id, err)
	}
	if _, err := flavors.CreateExtraSpecs(ctx, i.client, id, specs).Extract(); err != nil {
		return fmt.Errorf("extra specs of flavor %s: %w", id, err)
	}
	if _, err := flavors.AddAccess(ctx, i.client, id, flavors.AddAccessOpts{Tenant: c.Project}).Extract(); there(err) != nil {
		return fmt.Errorf("access of project %s to flavor %s: %w", c.Project, id, err)
	}
	return nil
}

// withdraw shuts the door first, so that no server comes after those that are asked to go.
func (i instances) withdraw(ctx context.Context, c lease.Claim) error {
	id := c.ID.String()
	if _, err := flavors.RemoveAccess(ctx, i.client, id, flavors.RemoveAccessOpts{Tenant: c.Project}).Extract(); gone(err) != nil {
		return fmt.Errorf("access of project %s to flavor %s: %w", c.Project, id, err)
	}
	if err := i.cleared(ctx, servers.ListOpts{Flavor: id}, "flavor "+id); err != nil {
		return err
	}
	groups, err := i.groups(ctx, c)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := gone(servergroups.Delete(ctx, i.client, g.ID).ExtractErr()); err != nil {
			return fmt.Errorf("delete server group %s: %w", g.ID, err)
		}
	}
	if err := gone(flavors.Delete(ctx, i.client, id).ExtractErr()); err != nil {
		return fmt.Errorf("delete flavor %s: %w", id, err)
	}
	all, err := i.aggregates(ctx)
	own, is := all[id]
	if err != nil || !is {
		return err
	}
	for _, host := range own.Hosts {
		if err := i.part(ctx, own, host); err != nil {
			return err
		}
	}
	return i.dissolve(ctx, own)
}

func (instances) beforeEnd(context.Context, lease.Claim) error { return nil }

// Flavor is Nova's flavor with that ID; a *lease.Fault if there is none.
func (c *Cloud) Flavor(ctx context.Context, id string) (lease.Flavor, error) {
	if c == nil || c.nova == nil {
		return lease.Flavor{}, lease.Refuse(lease.UnsupportedType, "The resource type %s is not supported without Nova.", lease.FlavorInstance)
	}
	f, err := flavors.Get(ctx, c.nova, id).Extract()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return lease.Flavor{}, lease.Refuse(lease.UnknownFlavor, "Flavor %s could not be found.", id)
	}
	if err != nil {
		return lease.Flavor{}, fmt.Errorf("flavor %s: %w", id, err)
	}
	specs, err := flavors.ListExtraSpecs(ctx, c.nova, f.ID).Extract()
	if err != nil {
		return lease.Flavor{}, fmt.Errorf("extra specs of flavor %s: %w", id, err)
	}
	return lease.Flavor{ID: f.ID, Name: f.Name, VCPUs: int64(f.VCPUs), MemoryMB: int64(f.RAM), DiskGB: int64(f.Disk),
		Ephemeral: int64(f.Ephemeral), ExtraSpecs: specs}, nil
}
