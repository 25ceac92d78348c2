package cloud

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/attributestags"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"

	"berth/internal/lease"
	"berth/internal/safeurl"
)

// addresses applies reservations of the type virtual:floatingip. addresses creates floating IPs for the
// reservation's project; a tag of each floating IP names the reservation. The project can change the tag, so
// the caller stores the IDs of the floating IPs.
type addresses struct {
	client *gophercloud.ServiceClient
	cloud  *Cloud
}

func (a addresses) apply(
	ctx context.Context,
	c lease.CloudReservation,
) (created lease.CloudIDs, err error) {
	for _, f := range c.FloatingIPs {
		id, err := a.create(ctx, c, f)
		if id != "" {
			created.FloatingIPIDs = append(created.FloatingIPIDs, id)
		}
		if err != nil {
			return created, err
		}
	}
	return created, a.deleteAllBut(ctx, c, c.FloatingIPs)
}

// create creates one floating IP and returns its ID, also if only the second of the two requests fails. The
// request that creates the floating IP contains a description that names the reservation; the second request
// sets the tags of the floating IP.
func (a addresses) create(
	ctx context.Context,
	c lease.CloudReservation,
	f lease.ReservableFloatingIP,
) (id string, err error) {
	found, err := a.find(ctx, c, f)
	if err != nil {
		return "", err
	}
	if found != nil {
		id = found.ID
	} else {
		made, err := answered(floatingips.Create(ctx, a.client, floatingips.CreateOpts{
			FloatingNetworkID: f.Network.String(),
			FloatingIP:        f.IP.String(),
			SubnetID:          f.Subnet.String(),
			ProjectID:         c.Project,
			Description:       reservationName(c),
		}).Extract())
		if err != nil {
			return "", fmt.Errorf("create floating IP %s: %w", f.IP, err)
		}
		id = made.ID
	}
	tags := []string{"blazar", reservationName(c)}
	if found != nil &&
		!slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(found.Tags, tag) }) {
		return id, nil
	}
	if _, err := attributestags.ReplaceAll(ctx, a.client, "floatingips", safeurl.Segment(id), attributestags.ReplaceAllOpts{Tags: tags}).Extract(); err != nil {
		return id, fmt.Errorf("set the tags of floating IP %s: %w", f.IP, err)
	}
	return id, nil
}

// find returns the reservation's floating IP with an address, or nil if Neutron has none. find deletes the
// one of a late attempt of another reservation.
func (a addresses) find(
	ctx context.Context,
	c lease.CloudReservation,
	f lease.ReservableFloatingIP,
) (*floatingips.FloatingIP, error) {
	all, err := a.at(ctx, f)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	found := &all[0]
	if belongsTo(*found, c) {
		return found, nil
	}
	now, err := a.cloud.readAgain(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case !isCreated(*found, now):
		return nil, fmt.Errorf("%w: floating IP %s", ErrInUse, f.IP)
	case isOfLateAttempt(c, append(slices.Clone(found.Tags), found.Description)...):
		return nil, a.detachAndDelete(ctx, *found)
	}
	return found, nil
}

// belongsTo reports whether a floating IP belongs to the reservation, by its stored ID or by its name. Every
// user can give a floating IP the description and the tag of a reservation, so the floating IP must also be
// in the reservation's project.
func belongsTo(f floatingips.FloatingIP, c lease.CloudReservation) bool {
	name := reservationName(c)
	return f.ProjectID == c.Project &&
		(slices.Contains(c.FloatingIPIDs, f.ID) || f.Description == name || slices.Contains(f.Tags, name))
}

// isCreated reports whether a floating IP of the reservation's project has an address at which berth has
// begun to create a floating IP for the reservation, whatever its ID, its description and its tags are: the
// answer of Neutron with the ID can be lost, and the project can change the others before berth sees the
// floating IP.
//
// The floating IP is not one that the project has created itself. Before berth began, no other floating IP
// had the address (see checkAddresses). By Neutron's default policy only administrators choose the address of
// a floating IP, and berth makes only addresses outside the allocation pools reservable, so that Neutron
// itself chooses none of them.
func isCreated(f floatingips.FloatingIP, c lease.CloudReservation) bool {
	return f.ProjectID == c.Project && isAtOneOf(f, c.Created)
}

// isAtOneOf reports whether a floating IP has one of the given addresses, in the network of the address.
func isAtOneOf(f floatingips.FloatingIP, all []lease.ReservableFloatingIP) bool {
	return slices.ContainsFunc(all, func(r lease.ReservableFloatingIP) bool {
		return f.FloatingNetworkID == r.Network.String() && f.FloatingIP == r.IP.String()
	})
}

// at lists the floating IPs with an address: usually none or one.
func (a addresses) at(
	ctx context.Context,
	f lease.ReservableFloatingIP,
) ([]floatingips.FloatingIP, error) {
	filter := floatingips.ListOpts{FloatingNetworkID: f.Network.String(), FloatingIP: f.IP.String()}
	return a.listFloatingIPs(ctx, filter, func(found floatingips.FloatingIP) bool {
		return isAtOneOf(found, []lease.ReservableFloatingIP{f})
	})
}

// checkAddresses returns ErrInUse if one of the given addresses has a floating IP that does not belong to the
// reservation.
func (a addresses) checkAddresses(
	ctx context.Context,
	c lease.CloudReservation,
	all []lease.ReservableFloatingIP,
) error {
	for _, f := range all {
		found, err := a.at(ctx, f)
		if err != nil {
			return err
		}
		if len(found) > 0 && !belongsTo(found[0], c) {
			return fmt.Errorf("%w: floating IP %s", ErrInUse, f.IP)
		}
	}
	return nil
}

// deleteAllBut deletes the reservation's floating IPs, except the floating IPs in `keep`.
func (a addresses) deleteAllBut(
	ctx context.Context,
	c lease.CloudReservation,
	keep []lease.ReservableFloatingIP,
) error {
	all, err := a.floatingIPsOf(ctx, c)
	all = slices.DeleteFunc(all, func(f floatingips.FloatingIP) bool {
		return slices.ContainsFunc(keep, func(k lease.ReservableFloatingIP) bool { return k.IP.String() == f.FloatingIP })
	})
	if err != nil || len(all) == 0 {
		return err
	}
	// after the list, so that no listed floating IP is one that another reservation has begun to create since
	if c, err = a.cloud.readAgain(ctx, c); err != nil {
		return err
	}
	for _, f := range all {
		if !isOwn(f, c) {
			continue
		}
		if err := a.detachAndDelete(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (a addresses) detachAndDelete(ctx context.Context, f floatingips.FloatingIP) error {
	if f.PortID != "" {
		detached := floatingips.UpdateOpts{PortID: new(string)}
		_, err := floatingips.Update(ctx, a.client, safeurl.Segment(f.ID), detached).Extract()
		if ignoreNotFound(err) != nil {
			return fmt.Errorf("detach floating IP %s: %w", f.FloatingIP, err)
		}
	}
	if err := ignoreNotFound(a.deleteFloatingIP(ctx, f.ID)); err != nil {
		return fmt.Errorf("delete floating IP %s: %w", f.FloatingIP, err)
	}
	return nil
}

// deleteFloatingIP deletes a floating IP with its port forwardings. Neutron refuses to delete a floating IP
// that has some.
func (a addresses) deleteFloatingIP(ctx context.Context, id string) error {
	err := floatingips.Delete(ctx, a.client, safeurl.Segment(id)).ExtractErr()
	if !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		return err
	}
	if err := deletePortForwardings(ctx, a.client, id, func(string) bool { return true }); err != nil {
		return err
	}
	return floatingips.Delete(ctx, a.client, safeurl.Segment(id)).ExtractErr()
}

// isOwn reports whether a floating IP is one of the reservation. One with the name of the reservation at an
// address at which berth has begun to create that of another reservation of the project is not: it became the
// other reservation's own.
func isOwn(f floatingips.FloatingIP, c lease.CloudReservation) bool {
	return isCreated(f, c) || belongsTo(f, c) && !isAtOneOf(f, c.CreatedByOthers)
}

// floatingIPsOf lists the floating IPs of a reservation.
func (a addresses) floatingIPsOf(
	ctx context.Context,
	c lease.CloudReservation,
) (all []floatingips.FloatingIP, err error) {
	filters := []floatingips.ListOpts{{Tags: reservationName(c)}, {Description: reservationName(c)}}
	own := func(f floatingips.FloatingIP) bool { return isOwn(f, c) }
	if len(c.Created)+len(c.FloatingIPIDs) > 0 {
		filters = append(filters, floatingips.ListOpts{ProjectID: c.Project})
	}
	for _, filter := range filters {
		found, err := a.listFloatingIPs(ctx, filter, own)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			known := func(other floatingips.FloatingIP) bool { return other.ID == f.ID }
			if !slices.ContainsFunc(all, known) {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

func (a addresses) remove(ctx context.Context, c lease.CloudReservation) error {
	return a.deleteAllBut(ctx, c, nil)
}

func (addresses) beforeEnd(context.Context, lease.CloudReservation) error { return nil }

// listFloatingIPs lists the floating IPs that match the filter. The function `matches` checks them, too.
func (a addresses) listFloatingIPs(
	ctx context.Context,
	filter floatingips.ListOpts,
	matches func(floatingips.FloatingIP) bool,
) ([]floatingips.FloatingIP, error) {
	list := floatingips.List(a.client, filter)
	all, err := listMatching(ctx, a.client, list, floatingips.ExtractFloatingIPs, matches)
	if err != nil {
		return nil, fmt.Errorf("list floating IPs: %w", err)
	}
	return all, nil
}
