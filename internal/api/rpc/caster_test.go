package rpc_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/rpc"
	"berth/internal/network"
)

// listen has the agent take what is cast to a topic.
func (a *agent) listen(t *testing.T, topic, host, version string) {
	t.Helper()
	if o := a.ask(t, map[string]any{"topic": topic, "host": host, "version": version}); o.Failure != "" {
		t.Fatal(o.Failure, o.Message)
	}
}

// hear is the next message, which has to be of that method.
func (a *agent) hear(t *testing.T, method string) map[string]any {
	t.Helper()
	return a.heardOf(t, method)[method]
}

// hearAny is the next message.
func (a *agent) hearAny(t *testing.T) heard {
	t.Helper()
	select {
	case h := <-a.heard:
		return h
	case <-time.After(patience):
		t.Fatal("nothing is heard")
		return heard{}
	}
}

// told brings out what is announced of the network.
func (st *site) told(t *testing.T, c *rpc.Publisher) {
	t.Helper()
	due, err := st.Announcements(t.Context(), st.network.ID, 100)
	if err != nil {
		t.Fatal(err)
	}
	told, err := c.Publish(t.Context(), due)
	if err != nil || len(told) != len(due) {
		t.Fatalf("told %d of %d: %v", len(told), len(due), err)
	}
	if err := st.SettleAnnouncements(t.Context(), told); err != nil {
		t.Fatal(err)
	}
}

func TestDHCPAgentHearsOfItsNetworks(t *testing.T) {
	t.Parallel()
	st := newSite(t)
	caster := rpc.NewPublisher(rpc.Options{Store: st.Store, Brokers: []string{st.url}})
	t.Cleanup(caster.Close)
	hosting := []network.Announcement{{ID: 7, Network: st.network.ID, Kind: network.AboutHosting, Event: network.EventCreated, Data: []byte(`{"host":"net1"}`)}}
	if told, err := caster.Publish(t.Context(), hosting); err == nil || len(told) != 0 {
		t.Errorf("told %v of what nobody heard", told)
	}
	hosting[0].Age = network.AgentDownTime // it has had its time
	if told, err := caster.Publish(t.Context(), hosting); err != nil || len(told) != 1 {
		t.Errorf("told %v, %v", told, err)
	}

	st.listen(t, "dhcp_agent", "net1", "1.0")
	st.Announce()
	if told, err := caster.Publish(t.Context(), hosting); err != nil || len(told) != 1 {
		t.Fatalf("told %v, %v", told, err)
	}
	payload := func(method string, priority float64) map[string]any {
		t.Helper()
		p := st.hear(t, method)["payload"].(map[string]any)
		if p["priority"] != priority {
			t.Errorf("%s comes with priority %v, want %v", method, p["priority"], priority)
		}
		return p
	}
	if p := payload("network_create_end", 0); p["network"].(map[string]any)["id"] != st.network.ID.String() {
		t.Errorf("heard %v", p)
	}
	port := st.ports(t, 1)[0]
	st.told(t, caster)
	if p := payload("port_create_end", 5)["port"].(map[string]any); p["id"] != port.ID.String() || p["mac_address"] != port.MAC {
		t.Errorf("heard %v", p)
	}
	if _, err := st.UpdatePort(t.Context(), port.ID, network.PortChange{Fixed: &[]network.Fixed{}}, nil); err != nil {
		t.Fatal(err)
	}
	st.told(t, caster)
	payload("port_update_end", 6)
	if err := st.DeletePort(t.Context(), port.ID, nil); err != nil {
		t.Fatal(err)
	}
	st.told(t, caster)
	if p := payload("port_delete_end", 6); p["port_id"] != port.ID.String() || p["network_id"] != st.network.ID.String() {
		t.Errorf("heard %v", p)
	}
	off := false
	if _, err := st.UpdateSubnet(t.Context(), st.subnet.ID, network.SubnetChange{DHCP: &off}, nil); err != nil {
		t.Fatal(err)
	}
	if err := st.DeleteSubnet(t.Context(), st.subnet.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := st.DeleteNetwork(t.Context(), st.network.ID, nil); err != nil {
		t.Fatal(err)
	}
	st.told(t, caster)
	if p := payload("network_delete_end", 2); p["network_id"] != st.network.ID.String() {
		t.Errorf("heard %v", p)
	}
}

func TestAgentsThatTakeObjectsArePushedThem(t *testing.T) {
	t.Parallel()
	st := newSite(t)
	caster := rpc.NewPublisher(rpc.Options{Store: st.Store, Brokers: []string{st.url}})
	t.Cleanup(caster.Close)
	st.listen(t, "neutron-vo-Port-1.7", "cmp1", "1.1")
	st.Announce()
	port := st.ports(t, 1)[0]
	announced := network.Announcement{Network: uuid.New(), Kind: network.AboutPort, Event: network.EventCreated, Object: port.ID, Data: []byte("null")}
	if _, err := caster.Publish(t.Context(), []network.Announcement{announced}); err != nil {
		t.Fatal(err)
	}
	push := st.hear(t, "push")
	o := push["resource_list"].([]any)[0].(map[string]any)
	if data := o["versioned_object.data"].(map[string]any); push["event_type"] != "updated" || o["versioned_object.version"] != "1.7" || data["id"] != port.ID.String() {
		t.Errorf("pushed %v", push)
	}
	if err := st.DeletePort(t.Context(), port.ID, nil); err != nil {
		t.Fatal(err)
	}
	announced.Event, announced.Data = network.EventDeleted, []byte(`{}`)
	if _, err := caster.Publish(t.Context(), []network.Announcement{announced}); err != nil {
		t.Fatal(err)
	}
	push = st.hear(t, "push")
	if data := push["resource_list"].([]any)[0].(map[string]any)["versioned_object.data"]; push["event_type"] != "deleted" || data.(map[string]any)["id"] != port.ID.String() {
		t.Errorf("pushed %v", push)
	}
}
