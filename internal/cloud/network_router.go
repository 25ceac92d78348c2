package cloud

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"

	"berth/internal/safeurl"
)

// routerInterfaces are the owners of the ports that connect a subnet to a router.
var routerInterfaces = []string{
	"network:router_interface",
	"network:router_interface_distributed",
	"network:ha_router_replicated_interface",
}

// removeInterfaces removes the router interfaces among the ports of a network. The IDs of Neutron's routers
// are UUIDs; a port with another device is not an interface.
func (s networkSegments) removeInterfaces(ctx context.Context, network string, all []ports.Port) error {
	for _, p := range all {
		if !slices.Contains(routerInterfaces, p.DeviceOwner) || uuid.Validate(p.DeviceID) != nil {
			continue
		}
		err := s.removeInterface(ctx, p)
		for _, removeObstacle := range []func() error{
			func() error { return s.detachFloatingIPs(ctx, p.DeviceID, all) },
			func() error { return s.removeRoutes(ctx, p.DeviceID, network) },
			func() error { _, err := s.removeFromTrunks(ctx, trunks.ListOpts{}, all); return err },
		} {
			if !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
				break
			}
			if err = removeObstacle(); err == nil {
				err = s.removeInterface(ctx, p)
			}
		}
		if err != nil {
			return fmt.Errorf("remove interface %s of network %s from router %s: %w",
				p.ID, network, p.DeviceID, err)
		}
	}
	return nil
}

// removeInterface removes a router interface. Its success does not mean that the port is deleted: the router
// may not exist, or may not have this interface.
func (s networkSegments) removeInterface(ctx context.Context, p ports.Port) error {
	router, port := safeurl.Segment(p.DeviceID), routers.RemoveInterfaceOpts{PortID: p.ID}
	return ignoreNotFound(routers.RemoveInterface(ctx, s.client, router, port).Err)
}

// detachFloatingIPs detaches the floating IPs of a router from the ports of a network, and deletes their port
// forwardings to these ports. A floating IP with port forwardings has a router, but no port.
func (s networkSegments) detachFloatingIPs(ctx context.Context, router string, all []ports.Port) error {
	contains := func(port string) bool {
		return slices.ContainsFunc(all, func(p ports.Port) bool { return p.ID == port })
	}
	list := floatingips.List(s.client, floatingips.ListOpts{RouterID: router})
	found, err := listMatching(ctx, s.client, list, floatingips.ExtractFloatingIPs,
		func(f floatingips.FloatingIP) bool {
			return contains(f.PortID) || f.PortID == "" && f.RouterID == router
		})
	if err != nil {
		return fmt.Errorf("list the floating IPs: %w", err)
	}
	for _, f := range found {
		if f.PortID == "" {
			err = deletePortForwardings(ctx, s.client, f.ID, contains)
		} else {
			detached := floatingips.UpdateOpts{PortID: new(string)}
			err = floatingips.Update(ctx, s.client, safeurl.Segment(f.ID), detached).Err
		}
		if err := ignoreNotFound(err); err != nil {
			return fmt.Errorf("detach floating IP %s: %w", f.ID, err)
		}
	}
	return nil
}

// routeAttempts is how often removeRoutes tries to change the routes of a router that others change
// meanwhile.
const routeAttempts = 3

// removeRoutes removes the extra routes of a router whose next hop is on a network. Its last attempt changes
// the routes even if another request has changed the router meanwhile: otherwise a user who changes the
// router again and again would keep the network.
func (s networkSegments) removeRoutes(ctx context.Context, router, network string) error {
	connected, err := s.subnetsOf(ctx, network)
	if err != nil {
		return err
	}
	for attempt := 1; attempt <= routeAttempts; attempt++ {
		err = s.tryRemoveRoutes(ctx, router, connected, attempt == routeAttempts)
		if !gophercloud.ResponseCodeIs(err, http.StatusPreconditionFailed) {
			break
		}
	}
	return ignoreNotFound(err)
}

// tryRemoveRoutes removes the extra routes of a router whose next hop is on a subnet. Neutron refuses a list
// of routes if one of them has become invalid, which a user can cause, or if the list is longer than the
// quota. In these cases tryRemoveRoutes removes all routes of the router.
func (s networkSegments) tryRemoveRoutes(
	ctx context.Context,
	router string,
	connected []subnets.Subnet,
	anyRevision bool,
) error {
	r, err := answered(routers.Get(ctx, s.client, safeurl.Segment(router)).Extract())
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(r.Routes), func(route routers.Route) bool {
		hop, err := netip.ParseAddr(route.NextHop)
		return err == nil && slices.ContainsFunc(connected, func(one subnets.Subnet) bool {
			prefix, err := netip.ParsePrefix(one.CIDR)
			return err == nil && prefix.Contains(hop)
		})
	})
	if len(left) == len(r.Routes) {
		return nil
	}
	if anyRevision {
		r.RevisionNumber = 0
	}
	err = s.setRoutes(ctx, r, left)
	if gophercloud.ResponseCodeIs(err, http.StatusBadRequest) || gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		err = s.setRoutes(ctx, r, []routers.Route{})
	}
	return err
}

// setRoutes sets the extra routes of a router. If r has a revision, setRoutes fails if another request has
// changed the router since r was read.
func (s networkSegments) setRoutes(ctx context.Context, r *routers.Router, routes []routers.Route) error {
	change := routers.UpdateOpts{Routes: &routes}
	if r.RevisionNumber > 0 {
		change.RevisionNumber = &r.RevisionNumber
	}
	return routers.Update(ctx, s.client, safeurl.Segment(r.ID), change).Err
}
