package neutron_test

import (
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/quotas"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/rules"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunk_details"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
)

func TestGophercloud_SecurityGroupsAndQuotas(t *testing.T) {
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
	l.groups()
	l.quotas()
	l.carried()
}

func (l library) groups() {
	l.Helper()
	name, words := "doors", "d"
	created, err := groups.Create(l.ctx, l.client, groups.CreateOpts{Name: "web", Description: "w"}).Extract()
	l.check("create group", err)
	l.same("its first rules", 2, len(created.Rules))
	described := groups.UpdateOpts{Name: name, Description: &words}
	changed, err := groups.Update(l.ctx, l.client, created.ID, described).Extract()
	l.check("update group", err)
	l.same("group", []string{"doors", "d"}, []string{changed.Name, changed.Description})
	l.same("groups", 1, len(all(l, groups.List(l.client, groups.ListOpts{Name: name}), groups.ExtractGroups)))

	https, err := rules.Create(l.ctx, l.client, rules.CreateOpts{
		Direction:      rules.DirIngress,
		EtherType:      rules.EtherType4,
		SecGroupID:     created.ID,
		Protocol:       rules.ProtocolTCP,
		PortRangeMin:   443,
		PortRangeMax:   443,
		RemoteIPPrefix: "10.0.0.0/8",
	}).Extract()
	l.check("create rule", err)
	more, err := rules.CreateBulk(l.ctx, l.client, []rules.CreateOpts{
		{
			Direction:     rules.DirIngress,
			EtherType:     rules.EtherType4,
			SecGroupID:    created.ID,
			RemoteGroupID: created.ID,
		},
		{
			Direction:  rules.DirIngress,
			EtherType:  rules.EtherType6,
			SecGroupID: created.ID,
			Protocol:   rules.ProtocolUDP,
		}}).Extract()
	l.check("create rules", err)
	shown, err := rules.Get(l.ctx, l.client, https.ID).Extract()
	l.check("show rule", err)
	l.same("rule", https, shown)
	onHTTPS := rules.ListOpts{SecGroupID: created.ID, Protocol: "tcp", PortRangeMin: 443}
	l.same("rules", 1, len(all(l, rules.List(l.client, onHTTPS), rules.ExtractRules)))
	full, err := groups.Get(l.ctx, l.client, created.ID).Extract()
	l.check("show group", err)
	l.same("all its rules", 5, len(full.Rules))
	l.check("delete rule", rules.Delete(l.ctx, l.client, more[0].ID).ExtractErr())
	l.check("delete group", groups.Delete(l.ctx, l.client, created.ID).ExtractErr())
}

func (l library) quotas() {
	l.Helper()
	ten := 10
	update := quotas.UpdateOpts{Network: &ten, SecurityGroupRule: &ten}
	changed, err := quotas.Update(l.ctx, l.client, "demo", update).Extract()
	l.check("update quota", err)
	shown, err := quotas.Get(l.ctx, l.client, "demo").Extract()
	l.check("show quota", err)
	l.same("quota", changed, shown)
	l.same("limits", []int{10, -1, 10}, []int{shown.Network, shown.Port, shown.SecurityGroupRule})
	detail, err := quotas.GetDetail(l.ctx, l.client, "demo").Extract()
	l.check("show use", err)
	l.same("use", quotas.QuotaDetail{Limit: 10}, detail.Network)
	l.check("forget quota", quotas.Delete(l.ctx, l.client, "demo").ExtractErr())
}

func (l library) carried() {
	l.Helper()
	n, err := networks.Create(l.ctx, l.client, networks.CreateOpts{Name: "blue"}).Extract()
	l.check("create network", err)
	parent, err := ports.Create(l.ctx, l.client, ports.CreateOpts{NetworkID: n.ID}).Extract()
	l.check("create parent", err)
	sub, err := ports.Create(l.ctx, l.client, ports.CreateOpts{NetworkID: n.ID}).Extract()
	l.check("create subport", err)
	subport := trunks.Subport{PortID: sub.ID, SegmentationType: "vlan", SegmentationID: 7}
	trunk := trunks.CreateOpts{PortID: parent.ID, Subports: []trunks.Subport{subport}}
	t, err := trunks.Create(l.ctx, l.client, trunk).Extract()
	l.check("create trunk", err)
	var p struct {
		ports.Port
		trunk_details.TrunkDetailsExt
	}
	l.check("show parent", ports.Get(l.ctx, l.client, parent.ID).ExtractInto(&p))
	l.same("trunk", trunk_details.TrunkDetails{TrunkID: t.ID, SubPorts: []trunk_details.Subport{
		{
			Subport:    trunks.Subport{PortID: sub.ID, SegmentationType: "vlan", SegmentationID: 7},
			MACAddress: sub.MACAddress,
		}}}, p.TrunkDetails)
}
