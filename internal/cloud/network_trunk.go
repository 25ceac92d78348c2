package cloud

import (
	"context"
	"fmt"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"berth/internal/safeurl"
)

// removeFromTrunks removes ports from those trunks that match the filter, and returns the number of trunks
// that it has changed or deleted: it deletes the trunks whose parent is one of the ports. Neutron does not
// delete a port of a trunk.
func (s networkSegments) removeFromTrunks(
	ctx context.Context,
	filter trunks.ListOpts,
	all []ports.Port,
) (changed int, err error) {
	found, err := s.trunks(ctx, filter)
	if err != nil {
		return 0, fmt.Errorf("list trunks: %w", err)
	}
	contains := func(port string) bool {
		return slices.ContainsFunc(all, func(p ports.Port) bool { return p.ID == port })
	}
	for _, t := range found {
		var subports []trunks.RemoveSubport
		for _, sub := range t.Subports {
			if contains(sub.PortID) {
				subports = append(subports, trunks.RemoveSubport{PortID: sub.PortID})
			}
		}
		switch {
		case contains(t.PortID):
			err = s.changeTrunk(ctx, t, func(id string) error {
				return trunks.Delete(ctx, s.client, id).ExtractErr()
			})
		case len(subports) > 0:
			err = s.changeTrunk(ctx, t, func(id string) error {
				return trunks.RemoveSubports(ctx, s.client, id, trunks.RemoveSubportsOpts{Subports: subports}).Err
			})
		default:
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("remove ports from trunk %s: %w", t.ID, err)
		}
		changed++
	}
	return changed, nil
}

// changeTrunk changes or deletes a trunk. Neutron does so only while the trunk's administrative state is up.
func (s networkSegments) changeTrunk(ctx context.Context, t trunks.Trunk, change func(id string) error) error {
	id := safeurl.Segment(t.ID)
	if !t.AdminStateUp {
		up := true
		if err := trunks.Update(ctx, s.client, id, trunks.UpdateOpts{AdminStateUp: &up}).Err; err != nil {
			return ignoreNotFound(err)
		}
	}
	return ignoreNotFound(change(id))
}

// trunks returns the trunks that match the filter, or none if Neutron has no trunks. Neutron can filter
// them by their parent, but not by a subport.
func (s networkSegments) trunks(ctx context.Context, filter trunks.ListOpts) ([]trunks.Trunk, error) {
	query, err := filter.ToTrunkListQuery()
	if err != nil {
		return nil, err
	}
	list := linkedList(s.client, s.client.ServiceURL("trunks")+query, "trunks")
	all, err := listAll(ctx, s.client, list, extractLinked[trunks.Trunk])
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return all, nil
}
