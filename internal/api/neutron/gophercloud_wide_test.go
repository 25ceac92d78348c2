package neutron_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"
	common "github.com/gophercloud/gophercloud/v2/openstack/common/extensions"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/apiversions"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/agents"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/attributestags"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/extradhcpopts"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/mtu"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/networkipavailabilities"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/portsbinding"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/portsecurity"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/provider"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/gophercloud/gophercloud/v2/pagination"
)

// library runs gophercloud against the API.
type library struct {
	*testing.T
	ctx    context.Context
	client *gophercloud.ServiceClient
}

func (l library) check(what string, err error) {
	l.Helper()
	if err != nil {
		l.Fatalf("%s: got error %v, want none", what, err)
	}
}

func (l library) same(what string, want, got any) {
	l.Helper()
	if d := cmp.Diff(want, got); d != "" {
		l.Errorf("%s differs (-want +got):\n%s", what, d)
	}
}

// all reads every page of a list and returns all objects.
func all[T any](l library, pager pagination.Pager, read func(pagination.Page) ([]T, error)) []T {
	l.Helper()
	pages, err := pager.AllPages(l.ctx)
	l.check("list", err)
	list, err := read(pages)
	l.check("read list", err)
	return list
}

func TestGophercloud_Extensions(t *testing.T) {
	t.Parallel()
	c := open(t)
	l := library{
		t,
		t.Context(),
		&gophercloud.ServiceClient{
			ProviderClient: &gophercloud.ProviderClient{TokenID: "admin"},
			Endpoint:       c.url + "/",
			ResourceBase:   c.url + "/v2.0/",
			Type:           "network",
		},
	}
	l.discover()
	net := l.network()
	subnet := l.subnet(net)
	parent, sub := l.ports(net, subnet)
	l.trunk(parent, sub)
	l.agent(net)
	l.check("delete parent", ports.Delete(l.ctx, l.client, parent).ExtractErr())
	l.check("delete port", ports.Delete(l.ctx, l.client, sub).ExtractErr())
	l.check("delete subnet", subnets.Delete(l.ctx, l.client, subnet).ExtractErr())
	l.check("delete network", networks.Delete(l.ctx, l.client, net).ExtractErr())
}

func (l library) discover() {
	l.Helper()
	versions := all(l, apiversions.ListVersions(l.client), apiversions.ExtractAPIVersions)
	l.same("versions", []apiversions.APIVersion{{ID: "v2.0", Status: "CURRENT"}}, versions)
	names := []string{}
	for _, r := range all(l, apiversions.ListVersionResources(l.client, "v2.0"), apiversions.ExtractVersionResources) {
		names = append(names, r.Name)
	}
	l.same("resources",
		[]string{"network", "subnet", "port", "trunk", "security_group", "security_group_rule"}, names)
	known := map[string]bool{}
	for _, e := range all(l, extensions.List(l.client), func(p pagination.Page) ([]extensions.Extension, error) { return extensions.ExtractExtensions(p) }) {
		known[e.Alias] = true
	}
	if !known["trunk"] || !known["standard-attr-tag"] || !known["extra_dhcp_opt"] {
		l.Errorf(
			"extensions by alias: got %v, want trunk, standard-attr-tag and extra_dhcp_opt among them",
			known,
		)
	}
	one, err := common.Get(l.ctx, l.client, "agent").Extract()
	l.check("show extension", err)
	l.same("extension", "agent", one.Alias)
	_, err = extensions.Get(l.ctx, l.client, "router").Extract()
	if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		l.Errorf("show an unknown extension: got error %v, want 404", err)
	}
}

// network creates a network with the options of every extension.
func (l library) network() string {
	l.Helper()
	yes, no, name := true, false, "navy"
	created := networks.Create(
		l.ctx,
		l.client,
		mtu.CreateOptsExt{MTU: 1400, CreateOptsBuilder: external.CreateOptsExt{External: &no,
			CreateOptsBuilder: portsecurity.NetworkCreateOptsExt{PortSecurityEnabled: &yes,
				CreateOptsBuilder: provider.CreateOptsExt{
					Segments: []provider.Segment{
						{NetworkType: "vlan", PhysicalNetwork: "phys", SegmentationID: 7},
					},
					CreateOptsBuilder: networks.CreateOpts{Name: "blue", Shared: &no},
				}}}},
	)
	var n struct {
		networks.Network
		provider.NetworkProviderExt
		mtu.NetworkMTUExt
		external.NetworkExternalExt
		portsecurity.PortSecurityExt
	}
	l.check("create network", created.ExtractInto(&n))
	l.same("network", []any{"vlan", "phys", "7", 1400, false, true},
		[]any{n.NetworkType, n.PhysicalNetwork, n.SegmentationID, n.MTU, n.External, n.PortSecurityEnabled})
	changed := networks.Update(
		l.ctx,
		l.client,
		n.ID,
		mtu.UpdateOptsExt{MTU: 1300, UpdateOptsBuilder: external.UpdateOptsExt{External: &yes,
			UpdateOptsBuilder: portsecurity.NetworkUpdateOptsExt{
				PortSecurityEnabled: &no,
				UpdateOptsBuilder:   networks.UpdateOpts{Name: &name},
			}}},
	)
	l.check("update network", changed.ExtractInto(&n))
	l.same("changed network", []any{"navy", 1300, true, false},
		[]any{n.Name, n.MTU, n.External, n.PortSecurityEnabled})

	tag := attributestags.ReplaceAllOpts{Tags: []string{"a", "b"}}
	tags, err := attributestags.ReplaceAll(l.ctx, l.client, "networks", n.ID, tag).Extract()
	l.check("replace tags", err)
	l.same("tags", []string{"a", "b"}, tags)
	l.check("add tag", attributestags.Add(l.ctx, l.client, "networks", n.ID, "c").ExtractErr())
	l.check("delete tag", attributestags.Delete(l.ctx, l.client, "networks", n.ID, "a").ExtractErr())
	has, err := attributestags.Confirm(l.ctx, l.client, "networks", n.ID, "c").Extract()
	l.check("confirm tag", err)
	l.same("has the tag", true, has)
	tags, err = attributestags.List(l.ctx, l.client, "networks", n.ID).Extract()
	l.check("list tags", err)
	l.same("tags", []string{"b", "c"}, tags)
	l.same("networks by tag", 1, len(all(l, networks.List(l.client, external.ListOptsExt{External: &yes,
		ListOptsBuilder: mtu.ListOptsExt{
			MTU:             1300,
			ListOptsBuilder: networks.ListOpts{Tags: "b,c", NotTags: "a"},
		}}), networks.ExtractNetworks)))
	l.check("delete tags", attributestags.DeleteAll(l.ctx, l.client, "networks", n.ID).ExtractErr())
	return n.ID
}

func (l library) subnet(net string) string {
	l.Helper()
	no, name, gateway := false, "shore", "10.0.0.2"
	created, err := subnets.Create(l.ctx, l.client, subnets.CreateOpts{
		NetworkID: net,
		Name:      "sea",
		IPVersion: gophercloud.IPv4,
		CIDR:      "10.0.0.0/24",
		AllocationPools: []subnets.AllocationPool{
			{Start: "10.0.0.10", End: "10.0.0.20"},
		},
		DNSNameservers: []string{"9.9.9.9"},
		HostRoutes:     []subnets.HostRoute{{DestinationCIDR: "10.9.0.0/24", NextHop: "10.0.0.9"}},
	}).Extract()
	l.check("create subnet", err)
	changed, err := subnets.Update(l.ctx, l.client, created.ID, subnets.UpdateOpts{
		Name:           &name,
		GatewayIP:      &gateway,
		EnableDHCP:     &no,
		DNSNameservers: &[]string{},
		HostRoutes:     &[]subnets.HostRoute{},
		RevisionNumber: &created.RevisionNumber,
	}).Extract()
	l.check("update subnet", err)
	shown, err := subnets.Get(l.ctx, l.client, created.ID).Extract()
	l.check("show subnet", err)
	l.same("subnet", changed, shown)
	l.same("changed subnet", []any{"shore", "10.0.0.2", false, []string{}, []subnets.HostRoute{}},
		[]any{shown.Name, shown.GatewayIP, shown.EnableDHCP, shown.DNSNameservers, shown.HostRoutes})
	left, err := networkipavailabilities.Get(l.ctx, l.client, net).Extract()
	l.check("show the IP availability of the network", err)
	l.same("total and used addresses", []string{"11", "0"}, []string{left.TotalIPs, left.UsedIPs})
	ofNetwork := networkipavailabilities.ListOpts{NetworkID: net, IPVersion: "4"}
	listed := networkipavailabilities.List(l.client, ofNetwork)
	l.same("list of IP availabilities", []networkipavailabilities.NetworkIPAvailability{*left},
		all(l, listed, networkipavailabilities.ExtractNetworkIPAvailabilities))
	wanted := subnets.ListOpts{NetworkID: net, CIDR: "10.0.0.0/24", GatewayIP: "10.0.0.2"}
	l.same("subnets", 1, len(all(l, subnets.List(l.client, wanted), subnets.ExtractSubnets)))
	return created.ID
}

// ports creates two ports with the options of every extension.
func (l library) ports(net, subnet string) (parent, sub string) {
	l.Helper()
	yes, no := true, false
	created := ports.Create(l.ctx, l.client, extradhcpopts.CreateOptsExt{
		ExtraDHCPOpts: []extradhcpopts.CreateExtraDHCPOpt{{OptName: "mtu", OptValue: "1400"}},
		CreateOptsBuilder: portsecurity.PortCreateOptsExt{
			PortSecurityEnabled: &yes,
			CreateOptsBuilder: ports.CreateOpts{
				NetworkID: net,
				Name:      "parent",
				FixedIPs: []ports.IP{
					{SubnetID: subnet, IPAddress: "10.0.0.12"},
				},
				AllowedAddressPairs: []ports.AddressPair{{IPAddress: "10.0.0.99"}},
			},
		},
	})
	var p struct {
		ports.Port
		extradhcpopts.ExtraDHCPOptsExt
		portsecurity.PortSecurityExt
		portsbinding.PortsBindingExt
	}
	l.check("create port", created.ExtractInto(&p))
	value, host := "1300", "cmp-1"
	changed := ports.Update(l.ctx, l.client, p.ID, extradhcpopts.UpdateOptsExt{
		ExtraDHCPOpts: []extradhcpopts.UpdateExtraDHCPOpt{{OptName: "mtu", OptValue: &value}},
		UpdateOptsBuilder: portsecurity.PortUpdateOptsExt{
			PortSecurityEnabled: &no,
			UpdateOptsBuilder: portsbinding.UpdateOptsExt{VNICType: "normal",
				UpdateOptsBuilder: ports.UpdateOpts{
					AllowedAddressPairs: &[]ports.AddressPair{},
					SecurityGroups:      &[]string{},
				}},
		},
	})
	l.check("update port", changed.ExtractInto(&p))
	l.same("port", []any{
		[]extradhcpopts.ExtraDHCPOpt{{OptName: "mtu", OptValue: "1300", IPVersion: 4}},
		false,
		[]ports.AddressPair{},
	}, []any{p.ExtraDHCPOpts, p.PortSecurityEnabled, p.AllowedAddressPairs})
	other, err := ports.Create(l.ctx, l.client, portsbinding.CreateOptsExt{
		HostID:            host,
		CreateOptsBuilder: ports.CreateOpts{NetworkID: net, FixedIPs: []ports.IP{}},
	}).Extract()
	l.check("create port", err)
	unbound := portsbinding.UpdateOptsExt{HostID: new(string), UpdateOptsBuilder: ports.UpdateOpts{}}
	other, err = ports.Update(l.ctx, l.client, other.ID, unbound).Extract()
	l.check("unbind port", err)
	shown, err := ports.Get(l.ctx, l.client, other.ID).Extract()
	l.check("show port", err)
	l.same("port", other, shown)
	address := ports.FixedIPOpts{IPAddress: "10.0.0.12", SubnetID: subnet}
	withAddress := ports.ListOpts{FixedIPs: []ports.FixedIPOpts{address}}
	found := all(l, ports.List(l.client, withAddress), ports.ExtractPorts)
	l.same("ports by address", []string{p.ID}, []string{found[0].ID})
	return p.ID, other.ID
}

func (l library) trunk(parent, sub string) {
	l.Helper()
	name, no, yes := "trunk", false, true
	created, err := trunks.Create(l.ctx, l.client, trunks.CreateOpts{PortID: parent, Name: "t"}).Extract()
	l.check("create trunk", err)
	seven := trunks.Subport{PortID: sub, SegmentationType: "vlan", SegmentationID: 7}
	added := trunks.AddSubportsOpts{Subports: []trunks.Subport{seven}}
	grown, err := trunks.AddSubports(l.ctx, l.client, created.ID, added).Extract()
	l.check("add subport", err)
	shown, err := trunks.Get(l.ctx, l.client, created.ID).Extract()
	l.check("show trunk", err)
	l.same("trunk", shown, grown)
	list, err := trunks.GetSubports(l.ctx, l.client, created.ID).Extract()
	l.check("list subports", err)
	l.same("subports", []trunks.Subport{seven}, list)
	l.same("trunks", []trunks.Trunk{*shown},
		all(l, trunks.List(l.client, trunks.ListOpts{PortID: parent}), trunks.ExtractTrunks))
	removed := trunks.RemoveSubportsOpts{Subports: []trunks.RemoveSubport{{PortID: sub}}}
	less, err := trunks.RemoveSubports(l.ctx, l.client, created.ID, removed).Extract()
	l.check("remove subport", err)
	l.same("subports", []trunks.Subport{}, less.Subports)
	disabled := trunks.UpdateOpts{Name: &name, AdminStateUp: &no, RevisionNumber: &less.RevisionNumber}
	changed, err := trunks.Update(l.ctx, l.client, created.ID, disabled).Extract()
	l.check("update trunk", err)
	l.same("changed trunk", []any{"trunk", false, "DOWN"},
		[]any{changed.Name, changed.AdminStateUp, changed.Status})
	_, err = trunks.Update(l.ctx, l.client, created.ID, trunks.UpdateOpts{AdminStateUp: &yes}).Extract()
	// a disabled trunk cannot be deleted
	l.check("enable trunk", err)
	l.check("delete trunk", trunks.Delete(l.ctx, l.client, created.ID).ExtractErr())
}

func (l library) agent(net string) {
	l.Helper()
	up, words := true, "d"
	agent := all(l, agents.List(l.client, agents.ListOpts{AgentType: "DHCP agent", Host: "net-1"}), agents.ExtractAgents)[0]
	hosted, err := agents.ListDHCPNetworks(l.ctx, l.client, agent.ID).Extract()
	l.check("list the agent's networks", err)
	l.same("its networks", []string{net}, []string{hosted[0].ID})
	l.check("remove the network from the agent",
		agents.RemoveDHCPNetwork(l.ctx, l.client, agent.ID, net).ExtractErr())
	scheduled := agents.ScheduleDHCPNetworkOpts{NetworkID: net}
	l.check("schedule the network to the agent",
		agents.ScheduleDHCPNetwork(l.ctx, l.client, agent.ID, scheduled).ExtractErr())
	update := agents.UpdateOpts{Description: &words, AdminStateUp: &up}
	_, err = agents.Update(l.ctx, l.client, agent.ID, update).Extract()
	l.check("update agent", err)
	shown, err := agents.Get(l.ctx, l.client, agent.ID).Extract()
	l.check("show agent", err)
	l.same("agent", "d", shown.Description)
	l.check("delete agent", agents.Delete(l.ctx, l.client, agent.ID).ExtractErr())
}
