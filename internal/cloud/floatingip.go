package cloud

import (
	"context"
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/attributestags"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"

	"berth/internal/lease"
	"berth/internal/safeurl"
)

// addresses applies reservations of the type virtual:floatingip. addresses creates floating IPs for the
// reservation's project; a tag of each floating IP names the reservation.
type addresses struct{ client *gophercloud.ServiceClient }

func (a addresses) apply(ctx context.Context, c lease.CloudReservation) (lease.CloudIDs, error) {
	for _, f := range c.FloatingIPs {
		if err := a.create(ctx, c, f); err != nil {
			return lease.CloudIDs{}, err
		}
	}
	return lease.CloudIDs{}, a.deleteAllBut(ctx, c, c.FloatingIPs)
}

// create creates one floating IP. The request that creates the floating IP contains a description that names
// the reservation; a second request sets the tags of the floating IP.
func (a addresses) create(ctx context.Context, c lease.CloudReservation, f lease.ReservableFloatingIP) error {
	found, err := a.listFloatingIPs(ctx,
		floatingips.ListOpts{FloatingNetworkID: f.Network.String(), FloatingIP: f.IP.String()},
		func(found floatingips.FloatingIP) bool {
			return found.FloatingNetworkID == f.Network.String() && found.FloatingIP == f.IP.String()
		})
	if err != nil {
		return err
	}
	if len(found) > 0 && !belongsTo(found[0], c) {
		return fmt.Errorf("%w: floating IP %s", ErrInUse, f.IP)
	}
	var id string
	if len(found) > 0 {
		id = found[0].ID
	} else {
		made, err := answered(floatingips.Create(ctx, a.client, floatingips.CreateOpts{
			FloatingNetworkID: f.Network.String(),
			FloatingIP:        f.IP.String(),
			SubnetID:          f.Subnet.String(),
			ProjectID:         c.Project,
			Description:       reservationName(c),
		}).Extract())
		if err != nil {
			return fmt.Errorf("create floating IP %s: %w", f.IP, err)
		}
		id = made.ID
	}
	tags := []string{"blazar", reservationName(c)}
	if len(found) > 0 &&
		!slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(found[0].Tags, tag) }) {
		return nil
	}
	if _, err := attributestags.ReplaceAll(ctx, a.client, "floatingips", safeurl.Segment(id), attributestags.ReplaceAllOpts{Tags: tags}).Extract(); err != nil {
		return fmt.Errorf("set the tags of floating IP %s: %w", f.IP, err)
	}
	return nil
}

// belongsTo reports whether a floating IP belongs to the reservation. Every user can give a floating IP the
// description and the tag of a reservation, so the floating IP must also be in the reservation's project.
func belongsTo(f floatingips.FloatingIP, c lease.CloudReservation) bool {
	return f.ProjectID == c.Project &&
		(f.Description == reservationName(c) || slices.Contains(f.Tags, reservationName(c)))
}

// deleteAllBut deletes the reservation's floating IPs, except the floating IPs in `keep`.
func (a addresses) deleteAllBut(
	ctx context.Context,
	c lease.CloudReservation,
	keep []lease.ReservableFloatingIP,
) error {
	own := func(f floatingips.FloatingIP) bool { return belongsTo(f, c) }
	all, err := a.listFloatingIPs(ctx, floatingips.ListOpts{Tags: reservationName(c)}, own)
	if err != nil {
		return err
	}
	more, err := a.listFloatingIPs(ctx, floatingips.ListOpts{Description: reservationName(c)}, own)
	if err != nil {
		return err
	}
	for _, f := range append(all, more...) {
		same := func(k lease.ReservableFloatingIP) bool { return k.IP.String() == f.FloatingIP }
		if slices.ContainsFunc(keep, same) {
			continue
		}
		if f.PortID != "" {
			detached := floatingips.UpdateOpts{PortID: new(string)}
			_, err := floatingips.Update(ctx, a.client, safeurl.Segment(f.ID), detached).Extract()
			if ignoreNotFound(err) != nil {
				return fmt.Errorf("detach floating IP %s: %w", f.FloatingIP, err)
			}
		}
		if err := ignoreNotFound(floatingips.Delete(ctx, a.client, safeurl.Segment(f.ID)).ExtractErr()); err != nil {
			return fmt.Errorf("delete floating IP %s: %w", f.FloatingIP, err)
		}
	}
	return nil
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
