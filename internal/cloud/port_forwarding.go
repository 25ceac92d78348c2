package cloud

import (
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/portforwarding"
	"github.com/gophercloud/gophercloud/v2/pagination"

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
	newPage := func(r pagination.PageResult) pagination.Page {
		return forwardingPage{portforwarding.PortForwardingPage{
			LinkedPageBase: pagination.LinkedPageBase{PageResult: r},
		}}
	}
	list := portforwarding.List(neutron, nil, address).WithPageCreator(newPage)
	all, err := listMatching(ctx, neutron, list,
		func(page pagination.Page) ([]portforwarding.PortForwarding, error) {
			return portforwarding.ExtractPortForwardings(page.(forwardingPage).PortForwardingPage)
		},
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

// forwardingPage is a page of a list of port forwardings whose link to the next page is where Neutron puts
// it.
type forwardingPage struct {
	portforwarding.PortForwardingPage
}

// NextPageURL returns the address of the next page, or "".
func (p forwardingPage) NextPageURL() (string, error) {
	var s struct {
		Links []gophercloud.Link `json:"port_forwardings_links"`
	}
	if err := p.ExtractInto(&s); err != nil {
		return "", err
	}
	return gophercloud.ExtractNextURL(s.Links)
}
