package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
)

// Priorities of notifications to DHCP agents. A DHCP agent with several waiting notifications handles the
// notification with the lowest priority number first.
const (
	priorityNetworkCreate = iota
	priorityNetworkUpdate
	priorityNetworkDelete
	prioritySubnetUpdate
	prioritySubnetDelete
	priorityPortCreateHigh
	priorityPortUpdate
)

// topicDHCP is the topic of DHCP agents. The DHCP agent on the host HOST receives the messages with the topic
// dhcp_agent.HOST.
const topicDHCP = "dhcp_agent"

// pushVersion is the RPC version of push, the method that sends versioned objects (ResourcesPushRpcApi).
const pushVersion = "1.1"

// messageBuilder collects the RPC messages for one stored notification.
type messageBuilder struct {
	to       audience // of the next messages to L2 agents
	messages []addressedMessage
	err      error
}

// add adds a message to the builder. If the topic is too long for RabbitMQ, add skips the message, because no
// agent can bind a queue to the topic.
func (b *messageBuilder) add(to audience, topic string, fanout bool, method, version string, args any) {
	if !oslomsg.ValidTopic(topic) {
		return
	}
	body, err := oslomsg.EncodeCast(method, version, args)
	b.err = errors.Join(b.err, err)
	b.messages = append(b.messages,
		addressedMessage{oslomsg.Message{Topic: topic, Fanout: fanout, Body: body}, to})
}

// addDHCP adds a message that is addressed to the DHCP agent on a host.
func (b *messageBuilder) addDHCP(host, method string, priority int, payload object) {
	payload["priority"] = priority
	b.add(onlyHosts(host), topicDHCP+"."+host, false, method, "1.0", object{"payload": payload})
}

// addL2 adds a message that is addressed to all L2 agents, on the topic q-agent-notifier-<subject>.
func (b *messageBuilder) addL2(subject, method, version string, args object) {
	b.add(b.to, "q-agent-notifier-"+subject, true, method, version, args)
}

// addMemberUpdate adds a message that tells L2 agents that the members of security groups changed.
func (b *messageBuilder) addMemberUpdate(groups []uuid.UUID) {
	if len(groups) > 0 {
		b.addL2("security_group-update", "security_groups_member_updated", "1.1",
			object{"security_groups": groups})
	}
}

// addRuleUpdate adds a message that tells L2 agents that the rules of a security group changed.
func (b *messageBuilder) addRuleUpdate(group uuid.UUID) {
	b.addL2("security_group-update", "security_groups_rule_updated", "1.1",
		object{"security_groups": []uuid.UUID{group}})
}

// addPush adds push messages with a versioned object: one message for each version of the object that agents
// use.
func (b *messageBuilder) addPush(
	objectType, event string,
	versions []string,
	encode func(version string) object,
) {
	for _, v := range versions {
		b.add(b.to, pushTopic(objectType, v), true, "push", pushVersion,
			object{"resource_list": []object{encode(v)}, "event_type": event})
	}
}

// pushTopic returns the topic of the agents that accept a version of an object type.
func pushTopic(objectType, version string) string {
	return pushTopicPrefix + objectType + "-" + version
}

// pushTopicPrefix is the beginning of the topics of pushes, and of no other topic.
const pushTopicPrefix = "neutron-vo-"

// pushedTypes maps the resource of a notification (such as a port) to the type of the versioned object that
// berth pushes to L2 agents.
var pushedTypes = map[string]string{
	network.ResourceNetwork:           typeNetwork,
	network.ResourceSubnet:            typeSubnet,
	network.ResourcePort:              typePort,
	network.ResourceSecurityGroup:     typeSecurityGroup,
	network.ResourceSecurityGroupRule: typeSecurityGroupRule,
}

// buildMessages returns the RPC messages for a stored notification. The RPC messages contain the current
// state of the object, so it does no harm if agents receive a notification twice. If the object does not
// exist any more, buildMessages returns no messages, because a later notification reports the deletion of the
// object.
func (h *handlers) buildMessages(
	ctx context.Context,
	n network.AgentNotification,
	versions map[string][]string,
) ([]addressedMessage, error) {
	b := &messageBuilder{to: everyone}
	dhcpHosts, err := h.Store.DHCPHosts(ctx, n.Network)
	if err != nil {
		return nil, err
	}
	objectType := pushedTypes[n.Resource]
	switch {
	case objectType == "":
		err = h.buildAgentMessages(ctx, b, n)
	case n.Event == network.EventDeleted:
		b.addPush(objectType, "deleted", versions[objectType], func(v string) object {
			return attribute.Versioned(objectType, v, object{"id": n.ResourceID})
		})
		err = b.addDeleted(n, dhcpHosts)
	case n.Resource == network.ResourcePort:
		err = h.buildPortMessages(ctx, b, n, dhcpHosts, versions[objectType])
	default:
		err = h.buildObjectMessages(ctx, b, n, dhcpHosts, versions[objectType])
	}
	if errors.Is(err, db.ErrNotFound) {
		return nil, nil
	}
	return b.messages, errors.Join(err, b.err)
}

// buildAgentMessages adds the messages about agents: scheduling, administrative state, tunnel endpoints and
// DVR MACs.
func (h *handlers) buildAgentMessages(
	ctx context.Context,
	b *messageBuilder,
	n network.AgentNotification,
) error {
	var hosting network.DHCPAgentHost
	var endpoint network.TunnelEndpoint
	if err := errors.Join(json.Unmarshal(n.Data, &hosting), json.Unmarshal(n.Data, &endpoint)); err != nil {
		return err
	}
	switch n.Resource {
	case network.ResourceDVRMAC:
		macs, err := h.Store.RouterMACs(ctx)
		b.addL2("dvr-update", "dvr_mac_address_update", "1.0", object{"dvr_macs": emptyIfNil(macs)})
		return err
	case network.ResourceTunnel:
		return h.buildTunnelMessage(ctx, b, endpoint)
	case network.ResourceDHCPAgent:
		b.addDHCP(hosting.Host, "agent_updated", priorityNetworkCreate,
			object{"admin_state_up": hosting.AdminUp})
		return nil
	}
	hosted, err := h.Store.DHCPAgentHosts(ctx, hosting.Host, n.Network)
	if hosted {
		b.addDHCP(hosting.Host, "network_create_end", priorityNetworkCreate,
			object{"network": object{"id": n.Network}})
	} else {
		b.addDHCP(hosting.Host, "network_delete_end", priorityNetworkDelete, object{"network_id": n.Network})
	}
	return err
}

// buildTunnelMessage adds the message tunnel_update if the tunnel endpoint exists, otherwise tunnel_delete.
func (h *handlers) buildTunnelMessage(
	ctx context.Context,
	b *messageBuilder,
	endpoint network.TunnelEndpoint,
) error {
	endpoints, err := h.Store.TunnelEnds(ctx, endpoint.Type)
	args := object{"tunnel_ip": endpoint.IP, "tunnel_type": endpoint.Type}
	if slices.ContainsFunc(endpoints, func(e network.TunnelEndpoint) bool { return e.IP == endpoint.IP }) {
		b.addL2("tunnel-update", "tunnel_update", "1.0", args)
	} else {
		b.addL2("tunnel-delete", "tunnel_delete", "1.0", args)
	}
	return err
}

// addDeleted adds the messages about a deleted object, addressed to all L2 agents and to the DHCP agents on
// the hosts `dhcpHosts`.
func (b *messageBuilder) addDeleted(n network.AgentNotification, dhcpHosts []string) error {
	var before struct {
		Fixed  []object    `json:"fixed_ips"`
		Groups []uuid.UUID `json:"security_groups"`
		Owner  string      `json:"device_owner"`
		Group  uuid.UUID   `json:"security_group_id"`
	}
	if err := json.Unmarshal(n.Data, &before); err != nil {
		return err
	}
	switch n.Resource {
	// DHCP agents get network_delete_end from the notification about their scheduling
	case network.ResourceNetwork:
		b.addL2("network-delete", "network_delete", "1.0", object{"network_id": n.ResourceID})
	case network.ResourcePort:
		b.addL2("port-delete", "port_delete", "1.0", object{"port_id": n.ResourceID})
		if before.Owner != network.DeviceOwnerDHCP {
			b.addMemberUpdate(before.Groups)
		}
	case network.ResourceSecurityGroupRule:
		b.addRuleUpdate(before.Group)
	}
	for _, host := range dhcpHosts {
		switch n.Resource {
		case network.ResourceSubnet:
			b.addDHCP(host, "subnet_delete_end", prioritySubnetDelete,
				object{"subnet_id": n.ResourceID, "network_id": n.Network})
		case network.ResourcePort:
			b.addDHCP(host, "port_delete_end", priorityPortUpdate, object{
				"port_id":    n.ResourceID,
				"network_id": n.Network,
				"fixed_ips":  emptyIfNil(before.Fixed),
			})
		}
	}
	return nil
}

// buildPortMessages adds the messages about a created or changed port.
func (h *handlers) buildPortMessages(
	ctx context.Context,
	b *messageBuilder,
	n network.AgentNotification,
	dhcpHosts, versions []string,
) error {
	var change network.PortSideEffects
	if err := json.Unmarshal(n.Data, &change); err != nil {
		return err
	}
	port, err := h.Store.Port(ctx, n.ResourceID)
	if err != nil {
		return err
	}
	net, err := h.Store.Network(ctx, port.Network)
	if err != nil {
		return err
	}
	wiring := hostsOf(port)
	b.to = exceptHosts(wiring...)
	b.addPush(typePort, "updated", versions,
		func(v string) object { return attribute.PortVersioned(reducedPort(port), net, v) })
	b.to = onlyHosts(wiring...)
	b.addPush(typePort, "updated", versions,
		func(v string) object { return attribute.PortVersioned(port, net, v) })
	b.to = onlyHosts(append(wiring, change.PreviousHost)...) // the previous host must disconnect the port
	b.addL2("port-update", "port_update", "1.0", object{
		"port":             attribute.PortRPC(port),
		"network_type":     net.Type,
		"segmentation_id":  net.Segment,
		"physical_network": nullIfEmpty(net.PhysicalNetwork),
	})
	if change.PreviousHost != "" && change.PreviousHost != port.Host && port.Host != "" {
		b.addL2("binding-deactivate", "binding_deactivate", "1.5",
			object{"port_id": port.ID, "host": change.PreviousHost, "network_id": port.Network})
		b.addL2("binding-activate", "binding_activate", "1.5", object{"port_id": port.ID, "host": port.Host})
	}
	b.to = everyone
	if n.Event == network.EventCreated {
		change.AffectedGroups = port.SecurityGroups
	}
	if port.DeviceOwner != network.DeviceOwnerDHCP {
		b.addMemberUpdate(change.AffectedGroups)
	}
	b.addDHCPPort(n.Event, port, dhcpHosts)
	return nil
}

// addDHCPPort adds the messages to the DHCP agents about a port that is new, or whose MAC address, IP
// addresses or DHCP options have changed. If the port is new, addDHCPPort gives high priority to the message
// for exactly one of the DHCP agents.
func (b *messageBuilder) addDHCPPort(event string, port network.Port, hosts []string) {
	for i, host := range hosts {
		priority := priorityPortUpdate
		switch {
		case event == network.EventCreated && i == highPriorityAgent(port.ID, len(hosts)):
			priority = priorityPortCreateHigh
			fallthrough
		case event == network.EventCreated:
			b.addDHCP(host, "port_create_end", priority, object{"port": attribute.PortRPC(port)})
		case event == network.EventDHCPUpdated:
			b.addDHCP(host, "port_update_end", priority, object{"port": attribute.PortRPC(port)})
		}
	}
}

// highPriorityAgent chooses the DHCP agent that gets a new port's message with high priority. The choice
// depends only on the port's ID and the number of agents, so that a repeated notification gives high priority
// to the same agent.
func highPriorityAgent(id uuid.UUID, agents int) int { return int(id[15]) % agents }

// buildObjectMessages adds the messages about a created or changed network, subnet, security group or rule.
func (h *handlers) buildObjectMessages(
	ctx context.Context,
	b *messageBuilder,
	n network.AgentNotification,
	dhcpHosts, versions []string,
) error {
	objectType := pushedTypes[n.Resource]
	found, err := h.pushedObject(ctx, objectType, n.ResourceID)
	if err != nil || found == nil {
		return err
	}
	data := found["versioned_object.data"].(object)
	b.addPush(objectType, "updated", versions,
		func(v string) object { return attribute.Versioned(objectType, v, data) })
	switch n.Resource {
	case network.ResourceSecurityGroupRule:
		b.addRuleUpdate(data["security_group_id"].(uuid.UUID))
	case network.ResourceNetwork:
		if n.Event == network.EventUpdated {
			return h.buildNetworkUpdate(ctx, b, n.ResourceID, dhcpHosts)
		}
	case network.ResourceSubnet:
		return h.buildSubnetMessages(ctx, b, n, dhcpHosts)
	}
	return nil
}

// buildNetworkUpdate adds a message about a changed network, addressed to the network's DHCP agents.
func (h *handlers) buildNetworkUpdate(
	ctx context.Context,
	b *messageBuilder,
	id uuid.UUID,
	dhcpHosts []string,
) error {
	n, err := h.Store.Network(ctx, id)
	if err != nil {
		return err
	}
	for _, host := range dhcpHosts {
		b.addDHCP(host, "network_update_end", priorityNetworkUpdate, object{"network": viewNetwork(n)})
	}
	return nil
}

// buildSubnetMessages adds the messages about a created or changed subnet, addressed to the DHCP agents that
// serve the subnet's network.
func (h *handlers) buildSubnetMessages(
	ctx context.Context,
	b *messageBuilder,
	n network.AgentNotification,
	dhcpHosts []string,
) error {
	s, err := h.Store.Subnet(ctx, n.ResourceID)
	if err != nil {
		return err
	}
	method := "subnet_update_end"
	if n.Event == network.EventCreated {
		method = "subnet_create_end"
	}
	for _, host := range dhcpHosts {
		b.addDHCP(host, method, prioritySubnetUpdate, object{"subnet": viewSubnet(s)})
	}
	return nil
}
