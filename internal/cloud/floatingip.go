package cloud

import (
	"context"
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/attributestags"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"

	"berth/internal/lease"
)

// addresses is virtual:floatingip: floating IPs of the reservation's project, with a tag of the reservation.
type addresses struct{ client *gophercloud.ServiceClient }

func (a addresses) provide(ctx context.Context, c lease.Claim) (lease.Mark, error) {
	for _, f := range c.Floating {
		if err := a.create(ctx, c, f); err != nil {
			return lease.Mark{}, err
		}
	}
	return lease.Mark{}, a.drop(ctx, c, c.Floating)
}

// create makes one floating IP. Its description tells whose it is from the first moment on, the tags a moment later.
func (a addresses) create(ctx context.Context, c lease.Claim, f lease.Address) error {
	found, err := a.list(ctx, floatingips.ListOpts{FloatingNetworkID: f.Network.String(), FloatingIP: f.IP.String()})
	if err != nil {
		return err
	}
	if len(found) > 0 && !ours(found[0], c) {
		return fmt.Errorf("%w: floating IP %s", ErrInUse, f.IP)
	}
	var id string
	if len(found) > 0 {
		id = found[0].ID
	} else {
		made, err := floatingips.Create(ctx, a.client, floatingips.CreateOpts{FloatingNetworkID: f.Network.String(), FloatingIP: f.IP.String(),
			SubnetID: f.Subnet.String(), ProjectID: c.Project, Description: named(c)}).Extract()
		if err != nil {
			return fmt.Errorf("make floating IP %s: %w", f.IP, err)
		}
		id = made.ID
	}
	tags := []string{"blazar", named(c)}
	if len(found) > 0 && !slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(found[0].Tags, tag) }) {
		return nil
	}
	if _, err := attributestags.ReplaceAll(ctx, a.client, "floatingips", id, attributestags.ReplaceAllOpts{Tags: tags}).Extract(); err != nil {
		return fmt.Errorf("tags of floating IP %s: %w", f.IP, err)
	}
	return nil
}

// ours tells whether a floating IP is the reservation's.
func ours(f floatingips.FloatingIP, c lease.Claim) bool {
	return f.Description == named(c) || slices.Contains(f.Tags, named(c))
}

// drop deletes the reservation's floating IPs but for those to keep.
func (a addresses) drop(ctx context.Context, c lease.Claim, keep []lease.Address) error {
	all, err := a.list(ctx, floatingips.ListOpts{Tags: named(c)})
	if err != nil {
		return err
	}
	more, err := a.list(ctx, floatingips.ListOpts{Description: named(c)})
	if err != nil {
		return err
	}
	for _, f := range append(all, more...) {
		if slices.ContainsFunc(keep, func(k lease.Address) bool { return k.IP.String() == f.FloatingIP }) {
			continue
		}
		if f.PortID != "" {
			if _, err := floatingips.Update(ctx, a.client, f.ID, floatingips.UpdateOpts{PortID: new(string)}).Extract(); gone(err) != nil {
				return fmt.Errorf("detach floating IP %s: %w", f.FloatingIP, err)
			}
		}
		if err := gone(floatingips.Delete(ctx, a.client, f.ID).ExtractErr()); err != nil {
			return fmt.Errorf("delete floating IP %s: %w", f.FloatingIP, err)
		}
	}
	return nil
}

func (a addresses) withdraw(ctx context.Context, c lease.Claim) error { return a.drop(ctx, c, nil) }

func (addresses) beforeEnd(context.Context, lease.Claim) error { return nil }

func (a addresses) list(ctx context.Context, filter floatingips.ListOpts) ([]floatingips.FloatingIP, error) {
	pages, err := floatingips.List(a.client, filter).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list floating IPs: %w", err)
	}
	all, err := floatingips.ExtractFloatingIPs(pages)
	if err != nil {
		return nil, fmt.Errorf("list floating IPs: %w", err)
	}
	return all, nil
}
