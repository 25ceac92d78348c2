package neutron_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/agents"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/portsbinding"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
)

func TestGophercloud_NetworkSubnetPort(t *testing.T) {
	t.Parallel()
	c, ctx := open(t), t.Context()
	client := &gophercloud.ServiceClient{
		ProviderClient: &gophercloud.ProviderClient{TokenID: "admin"},
		Endpoint:       c.url + "/",
		ResourceBase:   c.url + "/v2.0/",
		Type:           "network",
	}
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: got error %v, want none", what, err)
		}
	}

	up := true
	net, err := networks.Create(ctx, client, networks.CreateOpts{Name: "blue", AdminStateUp: &up}).Extract()
	check("create network", err)
	subnet, err := subnets.Create(ctx, client, subnets.CreateOpts{
		NetworkID:  net.ID,
		CIDR:       "10.0.0.0/24",
		IPVersion:  gophercloud.IPv4,
		EnableDHCP: &up,
	}).Extract()
	check("create subnet", err)
	if subnet.GatewayIP != "10.0.0.1" || subnet.AllocationPools[0].Start != "10.0.0.2" ||
		subnet.AllocationPools[0].End != "10.0.0.254" {
		t.Errorf("created subnet %+v: want the gateway 10.0.0.1 and the pool 10.0.0.2 to 10.0.0.254", subnet)
	}
	type boundPort struct {
		ports.Port
		portsbinding.PortsBindingExt
	}
	var created boundPort
	check("create port", ports.Create(ctx, client, portsbinding.CreateOptsExt{
		CreateOptsBuilder: ports.CreateOpts{
			NetworkID:   net.ID,
			Name:        "web",
			DeviceOwner: "compute:nova",
			FixedIPs:    []ports.IP{{SubnetID: subnet.ID}},
		},
		HostID: "cmp-1", VNICType: "normal",
	}).ExtractInto(&created))
	if created.Status != "DOWN" || created.VIFType != "ovs" || created.HostID != "cmp-1" ||
		len(created.FixedIPs) != 1 {
		t.Errorf("created port %+v: want status DOWN, VIF type ovs, host cmp-1 and one fixed IP", created)
	}

	revision := created.RevisionNumber
	name := "web-2"
	update := ports.UpdateOpts{Name: &name, RevisionNumber: &revision}
	renamed, err := ports.Update(ctx, client, created.ID, update).Extract()
	check("update port with the revision of its creation", err)
	if renamed.Name != name || renamed.RevisionNumber != revision+1 {
		t.Errorf("renamed port %+v: want the new name and the next revision", renamed)
	}
	_, err = ports.Update(ctx, client, created.ID, ports.UpdateOpts{Name: &name, RevisionNumber: &revision}).Extract()
	if !gophercloud.ResponseCodeIs(err, http.StatusPreconditionFailed) {
		t.Errorf("update a port with an old revision number: got error %v, want 412", err)
	}

	for range 4 {
		_, err := ports.Create(ctx, client, ports.CreateOpts{NetworkID: net.ID}).Extract()
		check("create port", err)
	}
	pages, err := ports.List(client, ports.ListOpts{NetworkID: net.ID, Limit: 2}).AllPages(ctx)
	check("list ports", err)
	all, err := ports.ExtractPorts(pages)
	check("read ports", err)
	if len(all) != 5 || !slices.ContainsFunc(all, func(p ports.Port) bool { return p.ID == created.ID }) {
		t.Errorf("list of ports in pages: got %d ports, want 5 with the created one", len(all))
	}
	shown, err := networks.Get(ctx, client, net.ID).Extract()
	check("show network", err)
	if !slices.Equal(shown.Subnets, []string{subnet.ID}) || shown.CreatedAt.IsZero() {
		t.Errorf("shown network %+v: want its subnet and a creation time", shown)
	}
	found, err := agents.List(client, agents.ListOpts{AgentType: "DHCP agent"}).AllPages(ctx)
	check("list agents", err)
	list, err := agents.ExtractAgents(found)
	check("read agents", err)
	hosted, err := agents.ListDHCPNetworks(ctx, client, list[0].ID).Extract()
	check("list hosted networks", err)
	if len(hosted) != 1 || !list[0].Alive || list[0].HeartbeatTimestamp.IsZero() {
		t.Errorf(
			"agent %+v hosts the networks %v: want one network, and an agent that is alive and has a heartbeat time",
			list[0],
			hosted,
		)
	}

	for _, p := range all {
		check("delete port", ports.Delete(ctx, client, p.ID).ExtractErr())
	}
	check("delete subnet", subnets.Delete(ctx, client, subnet.ID).ExtractErr())
	check("delete network", networks.Delete(ctx, client, net.ID).ExtractErr())
	_, err = networks.Get(ctx, client, net.ID).Extract()
	if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		t.Errorf("show a deleted network: got error %v, want 404", err)
	}
}
