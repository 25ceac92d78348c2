package cloud

import (
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/portforwarding"

	"berth/internal/safeurl"
)

// deletePortForwardings deletes the port forwardings of a floating IP to those ports for which the function
// `leadsTo` returns true. Neutron without the extension for port forwardings has none.
func deletePortForwardings(
	ctx context.Context,
	neutron *gophercloud.ServiceClient,
	floatingIP string,
	leadsTo func(port string) bool,
) error {
	address := safeurl.Segment(floatingIP)
	list := linkedList(neutron, neutron.ServiceURL("floatingips", address, "port_forwardings"), "port_forwardings")
	all, err := listMatching(ctx, neutron, list, extractLinked[portforwarding.PortForwarding],
		func(f portforwarding.PortForwarding) bool { return leadsTo(f.InternalPortID) })
	if err != nil {
		return ignoreNotFound(err)
	}
	for _, f := range all {
		err := portforwarding.Delete(ctx, neutron, address, safeurl.Segment(f.ID)).ExtractErr()
		if err := ignoreNotFound(err); err != nil {
			return fmt.Errorf("delete port forwarding %s: %w", f.ID, err)
		}
	}
	return nil
}
