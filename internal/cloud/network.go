package cloud

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/attributestags"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/provider"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"berth/internal/lease"
	"berth/internal/safeurl"
)

// networkSegments applies reservations of the type network. networkSegments creates one network on the
// reserved segment for the reservation's project; a tag of the network names the reservation.
type networkSegments struct {
	client *gophercloud.ServiceClient
	nova   *nova // says which servers exist; nil: Nova is not used
	cloud  *Cloud
}

// networkDraft is a network with the attributes of its segment, which the gophercloud type of a new network
// does not have.
type networkDraft struct {
	Name            string `json:"name"`
	Description     string `json:"description"`
	Project         string `json:"project_id,omitempty"`
	Type            string `json:"provider:network_type"`
	PhysicalNetwork string `json:"provider:physical_network,omitempty"`
	Segment         int    `json:"provider:segmentation_id"`
}

// ToNetworkCreateMap returns the body of the request that creates the network.
func (d networkDraft) ToNetworkCreateMap() (map[string]any, error) {
	return gophercloud.BuildRequestBody(d, "network")
}

// apply makes three requests: the first creates the network with a name that contains the reservation's ID,
// the second sets the network's tags, and the third sets the name that the reservation requests. If a request
// fails, the next attempt finds the network by its segment (see belongsTo). The first request already
// contains the description, because mechanism drivers of Neutron read the description when the network is
// created. apply returns the ID of the network also if a later request fails.
func (s networkSegments) apply(ctx context.Context, c lease.CloudReservation) (lease.CloudIDs, error) {
	n, err := s.findOrCreate(ctx, c)
	if err != nil {
		return lease.CloudIDs{}, err
	}
	ids := lease.CloudIDs{NetworkID: n.ID}
	tags := []string{"blazar", reservationName(c)}
	if slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(n.Tags, tag) }) {
		if _, err := attributestags.ReplaceAll(ctx, s.client, "networks", safeurl.Segment(n.ID), attributestags.ReplaceAllOpts{Tags: tags}).Extract(); err != nil {
			return ids, fmt.Errorf("set the tags of network %s: %w", n.ID, err)
		}
	}
	if n.Name == reservationName(c) {
		change := networks.UpdateOpts{Name: &c.NetworkName}
		if _, err := networks.Update(ctx, s.client, safeurl.Segment(n.ID), change).Extract(); err != nil {
			return ids, fmt.Errorf("rename network %s: %w", n.ID, err)
		}
	}
	return ids, nil
}

// findOrCreate returns the network of a reservation. findOrCreate deletes the one of a late attempt of
// another reservation.
func (s networkSegments) findOrCreate(
	ctx context.Context,
	c lease.CloudReservation,
) (networks.Network, error) {
	found, err := s.networksOf(ctx, c)
	if err != nil {
		return networks.Network{}, err
	}
	for _, n := range found {
		if n.ID == c.NetworkID || !isOfLateAttempt(c, append(slices.Clone(n.Tags), n.Name)...) {
			return n.Network, nil
		}
		if err := s.deleteWithPorts(ctx, n.ID); err != nil {
			return networks.Network{}, err
		}
	}
	made, err := answered(
		networks.Create(ctx, s.client, networkDraft{
			Name:            reservationName(c),
			Description:     c.NetworkDescription,
			Project:         c.Project,
			Type:            c.Segment.NetworkType,
			PhysicalNetwork: c.Segment.PhysicalNetwork,
			Segment:         c.Segment.ID,
		}).Extract(),
	)
	if err != nil {
		return networks.Network{}, fmt.Errorf("create network %s on segment %s: %w",
			c.NetworkName, c.Segment, err)
	}
	return *made, nil
}

// foundNetwork is a network with the attributes of its segment.
type foundNetwork struct {
	networks.Network
	provider.NetworkProviderExt
}

// isOn reports whether the network is on a segment.
func (n foundNetwork) isOn(s lease.Segment) bool {
	return n.NetworkType == s.NetworkType && n.PhysicalNetwork == s.PhysicalNetwork &&
		n.SegmentationID == strconv.Itoa(s.ID)
}

// belongsTo reports whether a network belongs to a reservation. It must be the network whose ID berth has
// stored, or a network of the reservation's project on the reserved segment, which only administrators choose
// by Neutron's default policy and of which Neutron has one network at most.
//
// If berth has begun to create a network there for the reservation, the segment suffices: the answer of
// Neutron with the ID can be lost, and the project can change the name and the tags before berth sees the
// network. The network is not another one of the project: before berth began, no network of another owner was
// on the segment (see checkSegment). Otherwise the name or the tag must also name the reservation. If the
// segment is not known any more, because the reservation has ended, the name and the tag do not suffice.
func (n foundNetwork) belongsTo(c lease.CloudReservation) bool {
	isNamed := n.Name == reservationName(c) || slices.Contains(n.Tags, reservationName(c))
	return n.ID == c.NetworkID || n.ProjectID == c.Project && n.isOn(c.Segment) && (isNamed || c.NetworkBegun)
}

// segmentFilter selects the networks on a segment, of one project or, if Project is empty, of all projects.
type segmentFilter struct {
	Type            string `q:"provider:network_type"`
	PhysicalNetwork string `q:"provider:physical_network"`
	Segment         int    `q:"provider:segmentation_id"`
	Project         string `q:"project_id"`
}

// ToNetworkListQuery returns the query of the request that lists the networks.
func (f segmentFilter) ToNetworkListQuery() (string, error) {
	q, err := gophercloud.BuildQueryString(f)
	return q.String(), err
}

func onSegment(s lease.Segment, project string) segmentFilter {
	return segmentFilter{
		Type:            s.NetworkType,
		PhysicalNetwork: s.PhysicalNetwork,
		Segment:         s.ID,
		Project:         project,
	}
}

// checkSegment returns ErrInUse if a network that does not belong to the reservation is on its segment.
func (s networkSegments) checkSegment(ctx context.Context, c lease.CloudReservation) error {
	found, err := s.listNetworks(ctx, onSegment(c.Segment, ""))
	for _, n := range found {
		if n.isOn(c.Segment) && !n.belongsTo(c) {
			return fmt.Errorf("%w: network %s is on segment %s", ErrInUse, n.ID, c.Segment)
		}
	}
	return err
}

// networksOf returns the networks of a reservation: usually none or one. The network whose ID berth has
// stored comes first.
func (s networkSegments) networksOf(ctx context.Context, c lease.CloudReservation) ([]foundNetwork, error) {
	filters := []networks.ListOptsBuilder{
		networks.ListOpts{Tags: reservationName(c), ProjectID: c.Project},
		networks.ListOpts{Name: reservationName(c), ProjectID: c.Project},
	}
	if c.NetworkID != "" {
		filters = slices.Insert(filters, 0, networks.ListOptsBuilder(networks.ListOpts{ID: c.NetworkID}))
	}
	if c.NetworkBegun {
		filters = append(filters, onSegment(c.Segment, c.Project))
	}
	var all []foundNetwork
	for _, filter := range filters {
		found, err := s.listNetworks(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, n := range found {
			known := slices.ContainsFunc(all, func(other foundNetwork) bool { return other.ID == n.ID })
			if !known && n.belongsTo(c) {
				all = append(all, n)
			}
		}
	}
	if len(all) == 0 || !c.NetworkBegun {
		return all, nil
	}
	// after the lists, so that no listed network is one of a reservation that begins to create it meanwhile
	now, err := s.cloud.readAgain(ctx, c)
	return slices.DeleteFunc(all, func(n foundNetwork) bool { return !n.belongsTo(now) }), err
}

func (s networkSegments) listNetworks(
	ctx context.Context,
	filter networks.ListOptsBuilder,
) ([]foundNetwork, error) {
	all, err := listAll(ctx, s.client, networks.List(s.client, filter),
		func(page pagination.Page) (found []foundNetwork, err error) {
			err = networks.ExtractNetworksInto(page, &found)
			return found, err
		})
	if err != nil {
		return nil, fmt.Errorf("list networks: %w", err)
	}
	return all, nil
}

// remove deletes the network of a reservation with its router interfaces, ports and subnets. While a server
// has a port on the network, remove deletes nothing and returns ErrServersRemain, because the server may
// belong to another reservation or to none.
func (s networkSegments) remove(ctx context.Context, c lease.CloudReservation) error {
	all, err := s.networksOf(ctx, c)
	if err != nil {
		return err
	}
	for _, n := range all {
		if err := s.deleteWithPorts(ctx, n.ID); err != nil {
			return err
		}
	}
	return nil
}

// deleteWithPorts deletes a network with its router interfaces, ports and subnets. While a server has a port
// on the network, deleteWithPorts deletes nothing and returns ErrServersRemain.
func (s networkSegments) deleteWithPorts(ctx context.Context, network string) error {
	if err := s.deletePorts(ctx, network); err != nil {
		return err
	}
	return s.deleteWithAutoDeletedPorts(ctx, network)
}

// deleteWithAutoDeletedPorts deletes a network whose remaining ports Neutron deletes with it. Neutron refuses
// to do so while such a port is one of a trunk.
func (s networkSegments) deleteWithAutoDeletedPorts(ctx context.Context, network string) error {
	err := s.deleteNetwork(ctx, network)
	if !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		return err
	}
	left, err := s.portsWithoutServers(ctx, network)
	if err != nil {
		return err
	}
	if _, err := s.removeFromTrunks(ctx, trunks.ListOpts{}, left); err != nil {
		return err
	}
	return s.deleteNetwork(ctx, network)
}

// deleteNetwork deletes a network and its subnets.
func (s networkSegments) deleteNetwork(ctx context.Context, network string) error {
	if err := s.deleteSubnets(ctx, network); err != nil {
		return err
	}
	if err := ignoreNotFound(networks.Delete(ctx, s.client, safeurl.Segment(network)).ExtractErr()); err != nil {
		return fmt.Errorf("delete network %s: %w", network, err)
	}
	return nil
}

func (s networkSegments) deleteSubnets(ctx context.Context, network string) error {
	all, err := s.subnetsOf(ctx, network)
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := ignoreNotFound(subnets.Delete(ctx, s.client, safeurl.Segment(one.ID)).ExtractErr()); err != nil {
			return fmt.Errorf("delete subnet %s of network %s: %w", one.ID, network, err)
		}
	}
	return nil
}

func (s networkSegments) subnetsOf(ctx context.Context, network string) ([]subnets.Subnet, error) {
	list := subnets.List(s.client, subnets.ListOpts{NetworkID: network})
	all, err := listMatching(ctx, s.client, list, subnets.ExtractSubnets,
		func(one subnets.Subnet) bool { return one.NetworkID == network })
	if err != nil {
		return nil, fmt.Errorf("list the subnets of network %s: %w", network, err)
	}
	return all, nil
}

func (networkSegments) beforeEnd(context.Context, lease.CloudReservation) error { return nil }
