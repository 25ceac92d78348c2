package cloud

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"berth/internal/lease"
	"berth/internal/safeurl"
)

// deletePorts deletes the ports of a network, except the ports that Neutron deletes itself with the network.
// Neutron creates ports for the interfaces of distributed routers, refuses to delete them, and deletes them
// with the interface. So deletePorts deletes the ports that may belong to a router only after it has removed
// the interfaces.
func (s networkSegments) deletePorts(ctx context.Context, network string) error {
	all, err := s.portsWithoutServers(ctx, network)
	if err != nil {
		return err
	}
	ofNeutron := func(p ports.Port) bool { return strings.HasPrefix(p.DeviceOwner, ownersOfNeutron) }
	if err := s.deleteAll(ctx, all, ofNeutron); err != nil {
		return err
	}
	if err := s.removeInterfaces(ctx, network, all); err != nil {
		return err
	}
	left, err := s.portsWithoutServers(ctx, network)
	if err != nil {
		return err
	}
	deletedLater := func(p ports.Port) bool { return slices.Contains(autoDeletedPorts, p.DeviceOwner) }
	return s.deleteAll(ctx, left, deletedLater)
}

// ownersOfNeutron is the prefix of the owners of Neutron's own ports. Users can give their ports such an
// owner, too.
const ownersOfNeutron = "network:"

// autoDeletedPorts are the owners of the ports that Neutron deletes with their network. Neutron also deletes
// ports with the owner network:floatingip_agent_gateway, but not if a user has given such a port the ID of a
// router.
var autoDeletedPorts = []string{"network:dhcp", "network:distributed"}

// portFilter selects the ports of a network, and the attributes that Neutron returns. A user can give a port
// so many DHCP options that a list with all attributes of the network's ports is larger than maxAnswer.
type portFilter struct {
	Network string   `q:"network_id"`
	Fields  []string `q:"fields"`
}

// ToPortListQuery returns the query of the request that lists the ports.
func (f portFilter) ToPortListQuery() (string, error) {
	q, err := gophercloud.BuildQueryString(f)
	return q.String(), err
}

// portsWithoutServers returns the ports of a network, or ErrServersRemain if a server has one of them.
func (s networkSegments) portsWithoutServers(ctx context.Context, network string) ([]ports.Port, error) {
	list := ports.List(s.client, portFilter{network, []string{"id", "network_id", "device_owner", "device_id"}})
	all, err := listMatching(ctx, s.client, list, ports.ExtractPorts,
		func(p ports.Port) bool { return p.NetworkID == network })
	if err != nil {
		return nil, fmt.Errorf("list the ports of network %s: %w", network, err)
	}
	for _, p := range all {
		is, err := s.isOfServer(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("look for server %s of port %s: %w", p.DeviceID, p.ID, err)
		}
		if is {
			return nil, fmt.Errorf("%w: server %s has port %s on network %s",
				ErrServersRemain, p.DeviceID, p.ID, network)
		}
	}
	return all, nil
}

// isOfServer reports whether a port belongs to a server. A user can give a port the owner of a server's port,
// so Nova must have the server that the port names. Without Nova, isOfServer believes the port.
func (s networkSegments) isOfServer(ctx context.Context, p ports.Port) (bool, error) {
	if !strings.HasPrefix(p.DeviceOwner, "compute:") && !strings.HasPrefix(p.DeviceOwner, "baremetal:") {
		return false, nil
	}
	if s.nova == nil {
		return true, nil
	}
	if uuid.Validate(p.DeviceID) != nil {
		return false, nil
	}
	is, err := s.nova.hasServer(ctx, p.DeviceID)
	if err != nil {
		err = callError(lease.PartyNova, err)
	}
	return is, err
}

// deleteAll deletes the ports of a network, except those for which the function `kept` returns true.
func (s networkSegments) deleteAll(ctx context.Context, all []ports.Port, kept func(ports.Port) bool) error {
	for _, p := range all {
		if kept(p) {
			continue
		}
		if err := ignoreNotFound(s.deletePort(ctx, p, all)); err != nil {
			return fmt.Errorf("delete port %s of network %s: %w", p.ID, p.NetworkID, err)
		}
	}
	return nil
}

// deletePort deletes a port of a network that has the ports in `all`. Neutron refuses to delete a port of a
// trunk. A user can also create a port with the owner and the ID of a router that exists, but does not have
// the port; Neutron refuses to delete such a port until it has another owner.
func (s networkSegments) deletePort(ctx context.Context, p ports.Port, all []ports.Port) error {
	id := safeurl.Segment(p.ID)
	err := ports.Delete(ctx, s.client, id).ExtractErr()
	refused := func() bool { return gophercloud.ResponseCodeIs(err, http.StatusConflict) }
	if refused() && strings.HasPrefix(p.DeviceOwner, ownersOfNeutron) {
		noOwner := ports.UpdateOpts{DeviceOwner: new(string), DeviceID: new(string)}
		if err := ports.Update(ctx, s.client, id, noOwner).Err; err != nil {
			return err
		}
		err = ports.Delete(ctx, s.client, id).ExtractErr()
	}
	if !refused() {
		return err
	}
	changed, err := s.removeFromTrunks(ctx, trunks.ListOpts{PortID: p.ID}, all)
	if err == nil && changed == 0 {
		_, err = s.removeFromTrunks(ctx, trunks.ListOpts{}, all)
	}
	if err != nil {
		return err
	}
	return ports.Delete(ctx, s.client, id).ExtractErr()
}
