package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store"
)

// What DHCP agents do first: the lower, the sooner.
const (
	firstOfNetworks = iota
	changeOfNetwork
	endOfNetwork
	changeOfSubnet
	endOfSubnet
	portOfOne
	portOfOthers
)

// topicDHCP is what DHCP agents listen to, each under its host.
const topicDHCP = "dhcp_agent"

// pushVersion is that of the method by which versioned objects are pushed.
const pushVersion = "1.1"

// post collects the letters of an announcement.
type post struct {
	letters []letter
	err     error
}

// add adds a letter. Nobody can listen to a topic whose name is too long for the broker.
func (p *post) add(topic string, fanout bool, method, version string, args any) {
	if len(topic)+len(fanoutSuffix) > maxName {
		return
	}
	body, err := cast(method, version, args)
	p.err = errors.Join(p.err, err)
	p.letters = append(p.letters, letter{topic, fanout, body})
}

// dhcp tells a DHCP agent of something.
func (p *post) dhcp(host, method string, priority int, payload object) {
	payload["priority"] = priority
	p.add(topicDHCP+"."+host, false, method, "1.0", object{"payload": payload})
}

// notify tells agents that do not take objects.
func (p *post) notify(what, method, version string, args object) {
	p.add("q-agent-notifier-"+what, true, method, version, args)
}

// members tells them that somebody has come to security groups, gone from them, or moved.
func (p *post) members(groups []uuid.UUID) {
	if len(groups) > 0 {
		p.notify("security_group-update", "security_groups_member_updated", "1.1", object{"security_groups": groups})
	}
}

// push sends a versioned object to those who understand each of its versions.
func (p *post) push(kind, event string, versions []string, as func(version string) object) {
	for _, v := range versions {
		p.add("neutron-vo-"+kind+"-"+v, true, "push", pushVersion, object{"resource_list": []object{as(v)}, "event_type": event})
	}
}

// pushed are the types of objects by the kind of what is announced.
var pushed = map[string]string{network.AboutNetwork: typeNetwork, network.AboutSubnet: typeSubnet, network.AboutPort: typePort,
	network.AboutGroup: typeGroup, network.AboutRule: typeRule}

// letters are what agents are told. Of what lives they are told how it is now, so that an announcement that comes once more says
// nothing wrong; what is gone meanwhile has an announcement of that behind this one.
func (d *Desk) letters(ctx context.Context, a network.Announcement, versions map[string][]string) ([]letter, error) {
	p := &post{}
	hosts, err := d.Store.DHCPHosts(ctx, a.Network)
	if err != nil {
		return nil, err
	}
	wanted := versions[pushed[a.Kind]]
	switch {
	case pushed[a.Kind] == "":
		err = d.single(ctx, p, a)
	case a.Event == network.EventDeleted:
		kind := pushed[a.Kind]
		p.push(kind, "deleted", wanted, func(v string) object { return inVersion(kind, v, object{"id": a.Object}) })
		err = p.deleted(a, hosts)
	case a.Kind == network.AboutPort:
		err = d.port(ctx, p, a, hosts, wanted)
	default:
		err = d.other(ctx, p, a, hosts, wanted)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return p.letters, errors.Join(err, p.err)
}

// single tells of what concerns agents themselves.
func (d *Desk) single(ctx context.Context, p *post, a network.Announcement) error {
	var at network.Hosting
	var end network.TunnelEnd
	if err := errors.Join(json.Unmarshal(a.Data, &at), json.Unmarshal(a.Data, &end)); err != nil {
		return err
	}
	switch a.Kind {
	case network.AboutRouterMAC:
		macs, err := d.Store.RouterMACs(ctx)
		p.notify("dvr-update", "dvr_mac_address_update", "1.0", object{"dvr_macs": list(macs)})
		return err
	case network.AboutTunnel:
		return d.tunnel(ctx, p, end)
	case network.AboutAgent:
		p.dhcp(at.Host, "agent_updated", firstOfNetworks, object{"admin_state_up": at.AdminUp})
		return nil
	}
	there, err := d.Store.Serves(ctx, at.Host, a.Network)
	if there {
		p.dhcp(at.Host, "network_create_end", firstOfNetworks, object{"network": object{"id": a.Network}})
	} else {
		p.dhcp(at.Host, "network_delete_end", endOfNetwork, object{"network_id": a.Network})
	}
	return err
}

// tunnel tells of the end of a tunnel, or that it is none any more.
func (d *Desk) tunnel(ctx context.Context, p *post, end network.TunnelEnd) error {
	ends, err := d.Store.TunnelEnds(ctx, end.Type)
	args := object{"tunnel_ip": end.IP, "tunnel_type": end.Type}
	if slices.ContainsFunc(ends, func(e network.TunnelEnd) bool { return e.IP == end.IP }) {
		p.notify("tunnel-update", "tunnel_update", "1.0", args)
	} else {
		p.notify("tunnel-delete", "tunnel_delete", "1.0", args)
	}
	return err
}

func (p *post) deleted(a network.Announcement, hosts []string) error {
	var was struct {
		Fixed  []object    `json:"fixed_ips"`
		Groups []uuid.UUID `json:"security_groups"`
		Owner  string      `json:"device_owner"`
		Group  uuid.UUID   `json:"security_group_id"`
	}
	if err := json.Unmarshal(a.Data, &was); err != nil {
		return err
	}
	switch a.Kind {
	case network.AboutNetwork: // who hosted it is told of that by itself
		p.notify("network-delete", "network_delete", "1.0", object{"network_id": a.Object})
	case network.AboutPort:
		p.notify("port-delete", "port_delete", "1.0", object{"port_id": a.Object})
		if was.Owner != network.DHCPOwner {
			p.members(was.Groups)
		}
	case network.AboutRule:
		p.rules(was.Group)
	}
	for _, host := range hosts {
		switch a.Kind {
		case network.AboutSubnet:
			p.dhcp(host, "subnet_delete_end", endOfSubnet, object{"subnet_id": a.Object, "network_id": a.Network})
		case network.AboutPort:
			p.dhcp(host, "port_delete_end", portOfOthers, object{"port_id": a.Object, "network_id": a.Network, "fixed_ips": list(was.Fixed)})
		}
	}
	return nil
}

// rules tells agents that do not take objects that a group's rules have changed.
func (p *post) rules(group uuid.UUID) {
	p.notify("security_group-update", "security_groups_rule_updated", "1.1", object{"security_groups": []uuid.UUID{group}})
}

// port tells of a port as it is now.
func (d *Desk) port(ctx context.Context, p *post, a network.Announcement, hosts, versions []string) error {
	var left network.Passage
	if err := json.Unmarshal(a.Data, &left); err != nil {
		return err
	}
	now, err := d.Store.Port(ctx, a.Object)
	if err != nil {
		return err
	}
	n, err := d.Store.Network(ctx, now.Network)
	if err != nil {
		return err
	}
	p.push(typePort, "updated", versions, func(v string) object { return portObject(now, n, v) })
	p.notify("port-update", "port_update", "1.0", object{"port": viewPort(now), "network_type": n.Type, "segmentation_id": n.Segment,
		"physical_network": orNull(n.PhysicalNetwork)})
	if left.From != "" && left.From != now.Host && now.Host != "" {
		p.notify("binding-deactivate", "binding_deactivate", "1.5", object{"port_id": now.ID, "host": left.From, "network_id": now.Network})
		p.notify("binding-activate", "binding_activate", "1.5", object{"port_id": now.ID, "host": now.Host})
	}
	if a.Event == network.EventCreated {
		left.Groups = now.SecurityGroups
	}
	if now.DeviceOwner != network.DHCPOwner {
		p.members(left.Groups)
	}
	for i, host := range hosts {
		priority := portOfOthers
		switch {
		case a.Event == network.EventCreated && i == first(now.ID, len(hosts)):
			priority = portOfOne
			fallthrough
		case a.Event == network.EventCreated:
			p.dhcp(host, "port_create_end", priority, object{"port": viewPort(now)})
		case a.Event == network.EventReaddressed:
			p.dhcp(host, "port_update_end", priority, object{"port": viewPort(now)})
		}
	}
	return nil
}

// first is which of several agents does a port before the others: by chance, but always the same.
func first(id uuid.UUID, of int) int { return int(id[15]) % of }

// other tells of a network, a subnet, a group or a rule as it is now.
func (d *Desk) other(ctx context.Context, p *post, a network.Announcement, hosts, versions []string) error {
	found, err := pull(ctx, d, pullArgs{Type: pushed[a.Kind], ID: a.Object.String()})
	if err != nil || found == nil {
		return err
	}
	data := found.(object)["versioned_object.data"].(object)
	p.push(pushed[a.Kind], "updated", versions, func(v string) object { return inVersion(pushed[a.Kind], v, data) })
	switch a.Kind {
	case network.AboutRule:
		p.rules(data["security_group_id"].(uuid.UUID))
	case network.AboutNetwork:
		if a.Event == network.EventUpdated {
			return d.served(ctx, p, a.Object, hosts)
		}
	case network.AboutSubnet:
		return d.subnet(ctx, p, a, hosts)
	}
	return nil
}

// served tells those who serve a network that it has changed.
func (d *Desk) served(ctx context.Context, p *post, id uuid.UUID, hosts []string) error {
	n, err := d.Store.Network(ctx, id)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		p.dhcp(host, "network_update_end", changeOfNetwork, object{"network": viewNetwork(n)})
	}
	return nil
}

func (d *Desk) subnet(ctx context.Context, p *post, a network.Announcement, hosts []string) error {
	s, err := d.Store.Subnet(ctx, a.Object)
	if err != nil {
		return err
	}
	method := "subnet_update_end"
	if a.Event == network.EventCreated {
		method = "subnet_create_end"
	}
	for _, host := range hosts {
		p.dhcp(host, method, changeOfSubnet, object{"subnet": viewSubnet(s)})
	}
	return nil
}
