package rpc_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/api/rpc"
	"berth/internal/network"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
)

func TestPublish_DHCPAgentGetsNetworkAndPortNotifications(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	publisher := rpc.NewPublisher(rpc.Options{
		Store:         st.Store.Network,
		Agents:        st.Agents,
		Notifications: st.Notifications,
		Brokers:       []string{st.url},
	})
	t.Cleanup(publisher.Close)
	hosting := []network.AgentNotification{
		{
			ID:       7,
			Network:  st.network.ID,
			Resource: network.ResourceDHCPHosting,
			Event:    network.EventCreated,
			Data:     []byte(`{"host":"net1"}`),
		},
	}
	if published, err := publisher.Publish(t.Context(), hosting); err == nil || len(published) != 0 {
		t.Errorf(
			"publish a new notification without a listening agent: published %v, want none and an error",
			published,
		)
	}
	hosting[0].Age = network.AgentDownTime // old enough to be published without a listening agent
	if published, err := publisher.Publish(t.Context(), hosting); err != nil || len(published) != 1 {
		t.Errorf(
			"publish an old notification without a listening agent: published %v, error %v; want the notification and no error",
			published,
			err,
		)
	}

	st.listenTo(t, "dhcp_agent", "net1", "1.0")
	*st.Network = *portstore.New(st.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	if published, err := publisher.Publish(t.Context(), hosting); err != nil || len(published) != 1 {
		t.Fatalf(
			"publish a notification to a listening agent: published %v, error %v; want the notification and no error",
			published,
			err,
		)
	}
	payload := func(method string, priority float64) map[string]any {
		t.Helper()
		p := st.receiveMethod(t, method)["payload"].(map[string]any)
		if p["priority"] != priority {
			t.Errorf("receive %s: got priority %v, want %v", method, p["priority"], priority)
		}
		return p
	}
	if p := payload("network_create_end", 0); p["network"].(map[string]any)["id"] != st.network.ID.String() {
		t.Errorf("receive network_create_end: got %v, want the network's ID", p)
	}
	port := st.createPorts(t, 1)[0]
	st.publishNetwork(t, publisher)
	if p := payload("port_create_end", 5)["port"].(map[string]any); p["id"] != port.ID.String() ||
		p["mac_address"] != port.MAC {
		t.Errorf("receive port_create_end: got %v, want the port's ID and MAC", p)
	}
	if _, err := st.Network.UpdatePort(t.Context(), port.ID, network.PortChange{FixedIPs: &[]network.FixedIP{}}, nil); err != nil {
		t.Fatal(err)
	}
	st.publishNetwork(t, publisher)
	payload("port_update_end", 6)
	if err := st.Network.DeletePort(t.Context(), port.ID, nil); err != nil {
		t.Fatal(err)
	}
	st.publishNetwork(t, publisher)
	if p := payload("port_delete_end", 6); p["port_id"] != port.ID.String() ||
		p["network_id"] != st.network.ID.String() {
		t.Errorf("receive port_delete_end: got %v, want the IDs of the port and of the network", p)
	}
	off := false
	if _, err := st.Network.UpdateSubnet(t.Context(), st.subnet.ID, network.SubnetChange{DHCP: &off}, nil); err != nil {
		t.Fatal(err)
	}
	if err := st.Network.DeleteSubnet(t.Context(), st.subnet.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := st.Network.DeleteNetwork(t.Context(), st.network.ID, nil); err != nil {
		t.Fatal(err)
	}
	st.publishNetwork(t, publisher)
	if p := payload("network_delete_end", 2); p["network_id"] != st.network.ID.String() {
		t.Errorf("receive network_delete_end: got %v, want the network's ID", p)
	}
}

func TestPublish_PushesVersionedObjects(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	publisher := rpc.NewPublisher(rpc.Options{
		Store:         st.Store.Network,
		Agents:        st.Agents,
		Notifications: st.Notifications,
		Brokers:       []string{st.url},
	})
	t.Cleanup(publisher.Close)
	st.listenTo(t, "neutron-vo-Port-1.7", "cmp1", "1.1")
	*st.Network = *portstore.New(st.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	port := st.createPorts(t, 1)[0]
	announced := network.AgentNotification{
		Network:    uuid.New(),
		Resource:   network.ResourcePort,
		Event:      network.EventCreated,
		ResourceID: port.ID,
		Data:       []byte("null"),
	}
	if _, err := publisher.Publish(t.Context(), []network.AgentNotification{announced}); err != nil {
		t.Fatal(err)
	}
	push := st.receiveMethod(t, "push")
	o := push["resource_list"].([]any)[0].(map[string]any)
	if data := o["versioned_object.data"].(map[string]any); push["event_type"] != "updated" ||
		o["versioned_object.version"] != "1.7" ||
		data["id"] != port.ID.String() {
		t.Errorf(
			"receive the push of a changed port: got %v, want the event updated and the port in version 1.7",
			push,
		)
	}
	if err := st.Network.DeletePort(t.Context(), port.ID, nil); err != nil {
		t.Fatal(err)
	}
	announced.Event, announced.Data = network.EventDeleted, []byte(`{}`)
	if _, err := publisher.Publish(t.Context(), []network.AgentNotification{announced}); err != nil {
		t.Fatal(err)
	}
	push = st.receiveMethod(t, "push")
	if data := push["resource_list"].([]any)[0].(map[string]any)["versioned_object.data"]; push["event_type"] != "deleted" ||
		data.(map[string]any)["id"] != port.ID.String() {
		t.Errorf("receive the push of a deleted port: got %v, want the event deleted and the port's ID", push)
	}
}

// The other network has so many notifications that the test ends before they are published.
func TestPublish_NetworkWithManyNotificationsDelaysOthersByOne(t *testing.T) {
	t.Parallel()
	const many = 100_000
	st, registry := newFixture(t), prometheus.NewRegistry()
	publisher := rpc.NewPublisher(rpc.Options{
		Store:         st.Store.Network,
		Agents:        st.Agents,
		Notifications: st.Notifications,
		Brokers:       []string{st.url},
		Metrics:       registry,
	})
	t.Cleanup(publisher.Close)
	one := network.AgentNotification{
		ID:       7,
		Network:  st.network.ID,
		Resource: network.ResourceDHCPHosting,
		Event:    network.EventCreated,
		Data:     []byte(`{"host":"net1"}`),
		Age:      network.AgentDownTime,
	}
	runUntilEnd(t, func(ctx context.Context) {
		published, err := publisher.Publish(ctx, slices.Repeat([]network.AgentNotification{one}, many))
		if err == nil || len(published) == 0 {
			t.Errorf("publish many notifications until the context ends: got %d published, error %v; want some and an error",
				len(published), err)
		}
	})
	told := func() float64 { return counters(t, registry, "berth_rpc_casts_total")[network.ResourceDHCPHosting] }
	eventually(t, "the first of many notifications is published", func() bool { return told() > 0 })
	if published, err := publisher.Publish(t.Context(), []network.AgentNotification{one}); err != nil || len(published) != 1 {
		t.Errorf("publish one notification meanwhile: got %v, error %v; want it published", published, err)
	}
	if n := told(); n >= many {
		t.Errorf("published notifications of the other network before this one: got all %v", n)
	}
}
