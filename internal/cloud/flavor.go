package cloud

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"

	"berth/internal/lease"
	"berth/internal/safeurl"
)

// instances applies reservations of the types virtual:instance and flavor:instance. Each reservation of
// instances gets a flavor that only the project of the reservation may use. The reservation's flavor requires
// a resource class of its own, and only the hosts in the reservation's aggregate have inventory of this
// class.
type instances struct {
	nova
	cloud *Cloud
}

func (i instances) apply(ctx context.Context, c lease.CloudReservation) (lease.CloudIDs, error) {
	var mark lease.CloudIDs
	var err error
	if c.Affinity != lease.AffinityNone {
		if mark.ServerGroupID, err = i.ensureServerGroup(ctx, c); err != nil {
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
	if len(own.Hosts) > 0 {
		if err := i.cloud.checkRevision(ctx, c); err != nil {
			return mark, err
		}
	}
	for _, s := range c.ComputeHosts {
		if err := i.addHost(ctx, own, s.Service); err != nil {
			return mark, err
		}
	}
	for _, host := range own.Hosts {
		wanted := slices.ContainsFunc(c.ComputeHosts,
			func(s lease.ReservedHost) bool { return s.Service == host })
		if wanted {
			continue
		}
		if err := i.removeHost(ctx, own, host); err != nil {
			return mark, err
		}
	}
	return mark, i.createFlavor(ctx, c, mark.ServerGroupID)
}

// ensureServerGroup returns the ID of the server group with the reservation's affinity policy, and creates
// the server group if it does not exist.
func (i instances) ensureServerGroup(ctx context.Context, c lease.CloudReservation) (string, error) {
	all, err := i.serverGroups(ctx, c)
	if err != nil || len(all) > 0 {
		if len(all) > 0 {
			return all[0].ID, nil
		}
		return "", err
	}
	g, err := answered(servergroups.Create(ctx, i.client,
		servergroups.CreateOpts{Name: reservationName(c), Policies: []string{string(c.Affinity)}}).Extract())
	if err != nil {
		return "", fmt.Errorf("create server group %s: %w", reservationName(c), err)
	}
	return g.ID, nil
}

// serverGroups lists the server groups of a reservation, which belong to the project of berth's own user: a
// group of another project can have the same name. A reservation has two server groups if Nova's answer to
// the first creation was lost and the creation was repeated.
func (i instances) serverGroups(
	ctx context.Context,
	c lease.CloudReservation,
) ([]servergroups.ServerGroup, error) {
	list := servergroups.List(i.client, servergroups.ListOpts{})
	all, err := listAll(ctx, i.client, list, servergroups.ExtractServerGroups)
	if err != nil {
		return nil, fmt.Errorf("list server groups: %w", err)
	}
	ofOther := func(g servergroups.ServerGroup) bool { return g.Name != reservationName(c) }
	return slices.DeleteFunc(all, ofOther), nil
}

// reservationName is the name of a reservation's flavor and server group.
func reservationName(c lease.CloudReservation) string { return nameOfReservation(c.ID) }

func nameOfReservation(id uuid.UUID) string { return reservationPrefix + id.String() }

// reservationPrefix is the beginning of the name of every reservation.
const reservationPrefix = "reservation:"

// isOfLateAttempt reports whether an object that berth has begun to create for the reservation has, of all
// its names and tags, only those of another reservation. Then a late attempt of that reservation has created
// the object just before berth began. That attempt may have listed the object before, too, and may delete it
// at any time, so the reservation cannot keep it.
func isOfLateAttempt(c lease.CloudReservation, names ...string) bool {
	return !slices.Contains(names, reservationName(c)) &&
		slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, reservationPrefix) })
}

// createFlavor creates the reservation's flavor and gives the reservation's project access to the flavor.
// createFlavor is the last step of instances.apply.
func (i instances) createFlavor(ctx context.Context, c lease.CloudReservation, group string) error {
	id := c.ID.String()
	size := lease.Flavor{VCPUs: c.VCPUs, MemoryMB: c.MemoryMB, DiskGB: c.DiskGB}
	specs := flavors.ExtraSpecsOpts{}
	if c.Flavor != nil {
		size = *c.Flavor
		maps.Copy(specs, c.Flavor.ExtraSpecs)
	}
	specs["aggregate_instance_extra_specs:reservation"] = id
	specs["resources:"+lease.ReservationResourceClass(c.ID)] = "1"
	if group != "" {
		specs["affinity_id"] = group
	}
	disk, ephemeral, public := int(size.DiskGB), int(size.Ephemeral), false
	_, err := flavors.Create(ctx, i.client, flavors.CreateOpts{
		ID:        id,
		Name:      reservationName(c),
		VCPUs:     int(size.VCPUs),
		RAM:       int(size.MemoryMB),
		Disk:      &disk,
		Ephemeral: &ephemeral,
		IsPublic:  &public,
	}).Extract()
	if ignoreConflict(err) != nil {
		return fmt.Errorf("create flavor %s: %w", id, err)
	}
	if _, err := flavors.CreateExtraSpecs(ctx, i.client, id, specs).Extract(); err != nil {
		return fmt.Errorf("set the extra specs of flavor %s: %w", id, err)
	}
	access := flavors.AddAccessOpts{Tenant: c.Project}
	if _, err := flavors.AddAccess(ctx, i.client, id, access).Extract(); ignoreConflict(err) != nil {
		return fmt.Errorf("change the access of project %s to flavor %s: %w", c.Project, id, err)
	}
	return nil
}

// remove first ends the project's access to the flavor, so that the project cannot create new servers while
// remove deletes the existing ones. The flavor stays until no server has slots of the reservation, because
// Nova finds no server by a flavor that is deleted.
func (i instances) remove(ctx context.Context, c lease.CloudReservation) error {
	id := c.ID.String()
	access := flavors.RemoveAccessOpts{Tenant: c.Project}
	if _, err := flavors.RemoveAccess(ctx, i.client, id, access).Extract(); ignoreNotFound(err) != nil {
		return fmt.Errorf("change the access of project %s to flavor %s: %w", c.Project, id, err)
	}
	if err := i.deleteServers(ctx, serverFilter{Flavor: id}, "flavor "+id); err != nil {
		return err
	}
	if err := i.deleteConsumers(ctx, c.ID); err != nil {
		return err
	}
	groups, err := i.serverGroups(ctx, c)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := ignoreNotFound(servergroups.Delete(ctx, i.client, safeurl.Segment(g.ID)).ExtractErr()); err != nil {
			return fmt.Errorf("delete server group %s: %w", g.ID, err)
		}
	}
	if err := ignoreNotFound(flavors.Delete(ctx, i.client, id).ExtractErr()); err != nil {
		return fmt.Errorf("delete flavor %s: %w", id, err)
	}
	all, err := i.aggregates(ctx)
	own, is := all[id]
	if err != nil || !is {
		return err
	}
	for _, host := range own.Hosts {
		if err := i.removeHost(ctx, own, host); err != nil {
			return err
		}
	}
	return i.deleteAggregate(ctx, own)
}

func (instances) beforeEnd(context.Context, lease.CloudReservation) error { return nil }

// Flavor reads the flavor with the given ID from Nova, for a project that wants to use it; the empty project
// may use every flavor. Flavor returns a *lease.Fault if Nova has no flavor with this ID. Because Nova shows
// berth the private flavors of all projects, Flavor returns the same fault for a private flavor to which the
// project has no access.
func (c *Cloud) Flavor(ctx context.Context, project, id string) (lease.Flavor, error) {
	if c == nil || c.nova == nil {
		return lease.Flavor{}, lease.Faultf(lease.UnsupportedType,
			"The resource type %s is not supported without Nova.", lease.FlavorInstance)
	}
	f, err := answered(flavors.Get(ctx, c.nova, safeurl.Segment(id)).Extract())
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return lease.Flavor{}, unknownFlavor(id)
	}
	if err != nil {
		return lease.Flavor{}, fmt.Errorf("read flavor %s: %w", id, err)
	}
	if project != "" && !f.IsPublic {
		if err := c.checkFlavorAccess(ctx, project, f.ID, id); err != nil {
			return lease.Flavor{}, err
		}
	}
	specs, err := flavors.ListExtraSpecs(ctx, c.nova, safeurl.Segment(f.ID)).Extract()
	if err != nil {
		return lease.Flavor{}, fmt.Errorf("read the extra specs of flavor %s: %w", id, err)
	}
	return lease.Flavor{
		ID:         f.ID,
		Name:       f.Name,
		VCPUs:      int64(f.VCPUs),
		MemoryMB:   int64(f.RAM),
		DiskGB:     int64(f.Disk),
		Ephemeral:  int64(f.Ephemeral),
		ExtraSpecs: specs,
	}, nil
}

// checkFlavorAccess returns the fault for an unknown flavor if a private flavor is not for the project.
func (c *Cloud) checkFlavorAccess(ctx context.Context, project, flavor, requested string) error {
	list := flavors.ListAccesses(c.nova, safeurl.Segment(flavor))
	all, err := listAll(ctx, c.nova, list, flavors.ExtractAccesses)
	if err != nil {
		return fmt.Errorf("list the projects that may use flavor %s: %w", flavor, err)
	}
	if !slices.ContainsFunc(all, func(a flavors.FlavorAccess) bool { return a.TenantID == project }) {
		return unknownFlavor(requested)
	}
	return nil
}

func unknownFlavor(id string) error {
	return lease.Faultf(lease.UnknownFlavor, "Flavor %s could not be found.", id)
}
