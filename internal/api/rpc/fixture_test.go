package rpc_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/api/rpc"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/portstore"
	"berth/internal/store/storetest"
)

// fixture is a network with a DHCP subnet and two agents that report over RabbitMQ: DHCP on net1, Open
// vSwitch on cmp1.
type fixture struct {
	*store.Store
	*agent
	url      string // of the broker
	database string // URL of the database
	network  network.Network
	subnet   network.Subnet
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	rows, url := storetest.URL(t), newVirtualHost(t)
	s := storetest.Open(t, rows)
	startServer(t, s, url)
	st := &fixture{
		Store:    s,
		agent:    newAgent(t, url),
		url:      url,
		database: rows,
	}
	st.reportAgents(t)
	st.createNetwork(t, network.VXLAN)
	return st
}

// createNetwork creates the network of the fixture and a subnet on this network. A network of the type flat
// is on a physical network.
func (st *fixture) createNetwork(t *testing.T, networkType string) {
	t.Helper()
	physical := map[string]string{network.Flat: "physnet", network.VLAN: "physnet"}[networkType]
	name, cidr := "blue", netip.MustParsePrefix("10.1.0.0/16")
	project := "p1"
	networks, err := st.Network.CreateNetworks(t.Context(), []network.NetworkChange{
		{
			Name:            &name,
			Project:         &project,
			Type:            &networkType,
			PhysicalNetwork: &physical,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	st.network = networks[0]
	subnets, err := st.Network.CreateSubnets(t.Context(),
		[]network.SubnetChange{{Network: &st.network.ID, CIDR: &cidr, Project: &project}})
	if err != nil {
		t.Fatal(err)
	}
	st.subnet = subnets[0]
}

func (st *fixture) reportState(t *testing.T, kind, host, want string) {
	t.Helper()
	st.reportAgent(t, kind, host, want, map[string]any{"Port": "1.7", "Network": "1.1"})
}

// reportVersions registers an Open vSwitch agent that accepts the given versions of objects.
func (st *fixture) reportVersions(t *testing.T, host string, versions map[string]any) {
	t.Helper()
	st.reportAgent(t, "Open vSwitch agent", host, "new", versions)
}

// reportAgent reports the start of an agent that accepts the given versions of objects.
func (st *fixture) reportAgent(t *testing.T, kind, host, want string, versions map[string]any) {
	t.Helper()
	var got string
	o := st.request(t, map[string]any{
		"topic":   "q-reports-plugin",
		"method":  "report_state",
		"version": "1.2",
		"args": map[string]any{
			"agent_state": map[string]any{
				"agent_state": map[string]any{
					"agent_type":        kind,
					"host":              host,
					"binary":            "neutron-agent",
					"topic":             "N/A",
					"configurations":    map[string]any{"tunneling_ip": "10.9.9.1"},
					"start_flag":        true,
					"uuid":              uuid.NewString(),
					"resource_versions": versions,
				},
			},
			"time": "2026-11-20T16:56:24.405715"},
	})
	if err := json.Unmarshal(o.Result, &got); err != nil || got != want {
		t.Fatalf("report_state of the %s on host %s: got result %s, exception %s %s; want %q",
			kind, host, o.Result, o.Failure, o.Message, want)
	}
}

// reportAgents registers the agents of the fixture. Their heartbeats are in the future, so that the agents
// stay alive however slow the machine is.
func (st *fixture) reportAgents(t *testing.T) {
	t.Helper()
	st.reportState(t, "DHCP agent", "net1", "new")
	st.reportState(t, "Open vSwitch agent", "cmp1", "new")
	storetest.Exec(t, st.database, `update agent set heartbeat_at = now() + interval '1 hour'`)
}

// makeStale moves the heartbeats of a host's agents into the past, beyond AgentDownTime.
func (st *fixture) makeStale(t *testing.T, host string) {
	t.Helper()
	storetest.Exec(t, st.database,
		`update agent set heartbeat_at = now() - interval '80 seconds' where host = $1`, host)
}

// createPorts creates ports of servers on the host cmp1.
func (st *fixture) createPorts(t *testing.T, n int) []network.Port {
	t.Helper()
	host, owner, device, project := "cmp1", "compute:nova", uuid.NewString(), "p1"
	drafts := make([]network.PortChange, n)
	for i := range drafts {
		drafts[i] = network.PortChange{
			Network:     &st.network.ID,
			Host:        &host,
			DeviceOwner: &owner,
			DeviceID:    &device,
			Project:     &project,
		}
	}
	ports, err := st.Network.CreatePorts(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}

func (st *fixture) portStatus(t *testing.T, id uuid.UUID) string {
	t.Helper()
	p, err := st.Network.Port(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return p.Status
}

// publishNetwork publishes the stored notifications about the fixture's network.
func (st *fixture) publishNetwork(t *testing.T, c *rpc.Publisher) {
	t.Helper()
	due, err := st.Notifications.Unsent(t.Context(), st.network.ID, 100)
	if err != nil {
		t.Fatal(err)
	}
	published, err := c.Publish(t.Context(), due)
	if err != nil || len(published) != len(due) {
		t.Fatalf("publish the notifications about the network: published %d of %d, error %v; want all",
			len(published), len(due), err)
	}
	if err := st.Notifications.MarkSent(t.Context(), published); err != nil {
		t.Fatal(err)
	}
}

// publishAll publishes the stored notifications about the fixture's network, and the stored notifications
// that belong to no network.
func (st *fixture) publishAll(t *testing.T, c *rpc.Publisher) {
	t.Helper()
	queues, err := db.QueryAll(t.Context(), st.DB, pgx.RowTo[uuid.UUID], `
		select network_id
		from agent_notification
		where sent_at is null
		group by network_id
		order by network_id = $1, min(id)`, st.network.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range queues {
		due, err := st.Notifications.Unsent(t.Context(), id, 1000)
		if err != nil {
			t.Fatal(err)
		}
		published, err := c.Publish(t.Context(), due)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Notifications.MarkSent(t.Context(), published); err != nil {
			t.Fatal(err)
		}
	}
}

// newPublisher returns a publisher. After newPublisher has returned, the fixture's store records a
// notification for each change.
func (st *fixture) newPublisher(t *testing.T) *rpc.Publisher {
	t.Helper()
	*st.Network = *portstore.New(st.DB, portstore.Config{Network: networkstore.Config{NotifyAgents: true}})
	c := rpc.NewPublisher(rpc.Options{
		Store:         st.Network,
		Agents:        st.Agents,
		Notifications: st.Notifications,
		Brokers:       []string{st.url},
	})
	t.Cleanup(c.Close)
	return c
}

// newDHCPFixture returns a fixture whose agent receives the messages to the DHCP agent on the host net1.
// newDHCPFixture also returns a function that publishes the stored notifications, checks the method and the
// priority of the next message to the agent, and returns the payload of this message.
func newDHCPFixture(t *testing.T) (*fixture, func(method string, priority float64) map[string]any) {
	t.Helper()
	st := newFixture(t)
	st.listenTo(t, "dhcp_agent", "net1", "1.0")
	publisher := st.newPublisher(t)
	return st, func(method string, priority float64) map[string]any {
		t.Helper()
		st.publishAll(t, publisher)
		p := st.receiveMethod(t, method)["payload"].(map[string]any)
		if p["priority"] != priority {
			t.Errorf("receive %s: got priority %v, want %v", method, p["priority"], priority)
		}
		return p
	}
}
