package portstore_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// fixture is a store with one network and one subnet. Tests create ports on the network of the fixture.
type fixture struct {
	*store.Store
	t       testing.TB
	network network.Network
	subnet  network.Subnet
}

const (
	cmp1 = "cmp-1"
	cmp2 = "cmp-2"
	net1 = "net-1"
)

func ptr[T any](v T) *T { return &v }

// newFixture returns a fixture with Open vSwitch agents on two hosts and a DHCP agent that hosts the network.
func newFixture(t testing.TB, cidr string) fixture {
	s := storetest.New(t)
	fx := fixture{Store: s, t: t}
	fx.heartbeat(network.OVSAgent, cmp1)
	fx.heartbeat(network.OVSAgent, cmp2)
	fx.heartbeat(network.DHCPAgent, net1)
	return fx.withNetwork(cidr)
}

// withNetwork returns a copy of the fixture with a new network and a new subnet of this network.
func (fx fixture) withNetwork(cidr string) fixture {
	fx.t.Helper()
	nets, err := fx.Network.CreateNetworks(fx.t.Context(), []network.NetworkChange{
		{
			Project:         ptr("p"),
			Name:            ptr("blue"),
			Type:            ptr(network.Flat),
			PhysicalNetwork: ptr(uuid.NewString()),
		},
	})
	if err != nil {
		fx.t.Fatal(err)
	}
	fx.network = nets[0]
	subnets, err := fx.Network.CreateSubnets(fx.t.Context(), []network.SubnetChange{
		{Network: &fx.network.ID, Project: ptr("p"), CIDR: ptr(netip.MustParsePrefix(cidr))},
	})
	if err != nil {
		fx.t.Fatal(err)
	}
	fx.subnet = subnets[0]
	return fx
}

// newAgingFixture returns a fixture without agents, and a function that makes every agent count as down, as
// if the agents had stopped sending heartbeats.
func newAgingFixture(t *testing.T) (fixture, func()) {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	return fixture{Store: s, t: t}, func() {
		t.Helper()
		storetest.Exec(t, url, `update agent set heartbeat_at = heartbeat_at - interval '76 seconds'`)
	}
}

// dhcpHosts lists the hosts of the network's DHCP agents.
func (fx fixture) dhcpHosts(id uuid.UUID) []string {
	fx.t.Helper()
	agents, err := fx.Network.Agents(
		fx.t.Context(),
		db.Listing{Where: []db.Condition{{Field: "network", In: []string{id.String()}}},
			Sort: []db.Order{{Field: "host"}}},
	)
	if err != nil {
		fx.t.Fatal(err)
	}
	hosts := []string{}
	for _, a := range agents {
		hosts = append(hosts, a.Host)
	}
	return hosts
}

// dhcpAgentID returns the ID of the only agent on the host.
func (fx fixture) dhcpAgentID(host string) uuid.UUID {
	fx.t.Helper()
	agents, err := fx.Network.Agents(fx.t.Context(),
		db.Listing{Where: []db.Condition{{Field: "host", In: []string{host}}}})
	if err != nil || len(agents) != 1 {
		fx.t.Fatalf("got %d agents on host %s, error %v; want 1 agent", len(agents), host, err)
	}
	return agents[0].ID
}

// checkDHCPHosts checks that the DHCP agents on the hosts `want`, and no other DHCP agents, serve the
// network.
func (fx fixture) checkDHCPHosts(what string, want ...string) {
	fx.t.Helper()
	if d := cmp.Diff(want, fx.dhcpHosts(fx.network.ID)); d != "" {
		fx.t.Errorf("hosts of the network's DHCP agents at the step %q (-want +got):\n%s", what, d)
	}
}

// runConcurrently runs f(0) to f(n-1) concurrently and waits for all.
func runConcurrently(n int, f func(i int)) {
	start, all := make(chan struct{}), sync.WaitGroup{}
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

// heartbeat reports the state of an agent and returns the result.
func (fx fixture) heartbeat(kind, host string) string {
	fx.t.Helper()
	result, err := fx.Network.ReportState(fx.t.Context(), network.AgentState{
		Type:           kind,
		Host:           host,
		Binary:         "b",
		Topic:          "t",
		Configurations: json.RawMessage(`{}`),
	})
	if err != nil {
		fx.t.Fatal(err)
	}
	return result
}

// createPort creates a server's port on the host; the functions of the parameter `more` set further
// attributes.
func (fx fixture) createPort(host string, more ...func(*network.PortChange)) network.Port {
	fx.t.Helper()
	c := fx.portDraft(host, more...)
	ports, err := fx.Network.CreatePorts(fx.t.Context(), []network.PortChange{c})
	if err != nil {
		fx.t.Fatal(err)
	}
	return ports[0]
}

// portDraft returns the request with which createPort creates a port.
func (fx fixture) portDraft(host string, more ...func(*network.PortChange)) network.PortChange {
	c := network.PortChange{
		Network:     &fx.network.ID,
		Project:     ptr("p"),
		Name:        ptr("web-1"),
		Host:        &host,
		DeviceOwner: ptr("compute:nova"),
		DeviceID:    ptr("6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11"),
	}
	for _, m := range more {
		m(&c)
	}
	return c
}

func (fx fixture) updatePort(id uuid.UUID, c network.PortChange) network.Port {
	fx.t.Helper()
	p, err := fx.Network.UpdatePort(fx.t.Context(), id, c, nil)
	if err != nil {
		fx.t.Fatal(err)
	}
	return p
}

// updateStatus applies reports to a port through UpdatePortStatus.
func (fx fixture) updateStatus(id uuid.UUID, reports ...network.Report) network.StatusView {
	fx.t.Helper()
	s, err := fx.Network.UpdatePortStatus(fx.t.Context(), id, reports)
	if err != nil {
		fx.t.Fatal(err)
	}
	return s
}

func (fx fixture) readPort(id uuid.UUID) network.Port {
	fx.t.Helper()
	p, err := fx.Network.Port(fx.t.Context(), id)
	if err != nil {
		fx.t.Fatal(err)
	}
	return p
}

func withDeviceOwner(o string) func(*network.PortChange) {
	return func(c *network.PortChange) { c.DeviceOwner = &o }
}

func withFixedIP(ip string) func(*network.PortChange) {
	return func(c *network.PortChange) { c.FixedIPs = &[]network.FixedIP{{IP: netip.MustParseAddr(ip)}} }
}

func withFixedIPs(all ...network.FixedIP) func(*network.PortChange) {
	return func(c *network.PortChange) { c.FixedIPs = &all }
}

// blockNames formats blocks as entity@host.
func blockNames(blocks []network.Block) []string {
	names := []string{}
	for _, b := range blocks {
		names = append(names, b.Entity+"@"+b.Host)
	}
	return names
}

// eventNames returns the names of the Nova events in a status view.
func eventNames(s network.StatusView) []string {
	names := []string{}
	for _, e := range s.Events {
		names = append(names, e.Name)
	}
	return names
}

// deliverEvents deletes the undelivered Nova events of a port, as if Nova had got them, and returns their
// names.
func (fx fixture) deliverEvents(id uuid.UUID) []string {
	fx.t.Helper()
	events, err := fx.Notifications.NovaEvents(fx.t.Context(), id, 0)
	if err != nil {
		fx.t.Fatal(err)
	}
	var ids []int64
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	if err := fx.Notifications.DeleteNovaEvents(fx.t.Context(), ids); err != nil {
		fx.t.Fatal(err)
	}
	return eventNames(network.StatusView{Events: events})
}

// faultKind returns the kind of a network.Fault, or "" for other errors.
func faultKind(err error) network.Kind {
	var f *network.Fault
	if errors.As(err, &f) {
		return f.Kind
	}
	return ""
}

var (
	l2OnCmp1  = network.Report{Entity: network.L2, Host: cmp1}
	l2OnCmp2  = network.Report{Entity: network.L2, Host: cmp2}
	dhcpReady = network.Report{Entity: network.DHCP, Host: net1}
)

// agentOfType returns the first agent of the given type.
func (fx fixture) agentOfType(kind string) network.Agent {
	fx.t.Helper()
	agents, err := fx.Network.Agents(fx.t.Context(),
		db.Listing{Where: []db.Condition{{Field: "type", In: []string{kind}}}})
	if err != nil || len(agents) == 0 {
		fx.t.Fatalf("list agents of type %q: got none, error %v; want at least one", kind, err)
	}
	return agents[0]
}

// disableAgent disables the agent of the given type on the host.
func (fx fixture) disableAgent(kind, host string) {
	fx.t.Helper()
	agents, err := fx.Network.Agents(fx.t.Context(), db.Listing{
		Where: []db.Condition{{Field: "host", In: []string{host}}, {Field: "type", In: []string{kind}}},
	})
	if err != nil || len(agents) != 1 {
		fx.t.Fatalf("got %d agents on host %s, error %v; want 1 agent", len(agents), host, err)
	}
	if _, err := fx.Network.UpdateAgent(fx.t.Context(), agents[0].ID, network.AgentChange{AdminUp: ptr(false)}); err != nil {
		fx.t.Fatal(err)
	}
}

// bindingSummaries formats a port's bindings as host, status and VIF type.
func bindingSummaries(p network.Port) []string {
	all := []string{}
	for _, b := range p.AllBindings() {
		all = append(all, b.Host+" "+b.Status+" "+b.VIF)
	}
	return all
}

func (fx fixture) createBinding(p network.Port, host string) network.Port {
	fx.t.Helper()
	after, err := fx.Network.CreateBinding(fx.t.Context(), p.ID, network.BindingChange{Host: &host})
	if err != nil {
		fx.t.Fatal(err)
	}
	return after
}

func reportFromCmp1(entity, event string, revision int64) network.Report {
	return network.Report{
		Entity:   entity,
		Host:     cmp1,
		Event:    event,
		Revision: revision,
	}
}

// dhcpHeartbeat sends a heartbeat of the DHCP agent on the host, with the given configurations.
func (fx fixture) dhcpHeartbeat(host, configurations string) {
	fx.t.Helper()
	if _, err := fx.Network.ReportState(fx.t.Context(), network.AgentState{Type: network.DHCPAgent, Host: host, Configurations: json.RawMessage(configurations)}); err != nil {
		fx.t.Fatal(err)
	}
}

// checkPort checks a port's status and blocks at a step of the test.
func (fx fixture) checkPort(when string, p network.Port, status string, blocks ...string) {
	fx.t.Helper()
	after := fx.readPort(p.ID)
	if d := cmp.Diff(append([]string{}, blocks...), blockNames(after.Blocks)); d != "" ||
		after.Status != status {
		fx.t.Errorf("port at the step %q: got status %s, want %s; blocks (-want +got): %s",
			when, after.Status, status, d)
	}
}

// setSubnetDHCP enables or disables DHCP on the subnet.
func (fx fixture) setSubnetDHCP(yes bool) {
	fx.t.Helper()
	if _, err := fx.Network.UpdateSubnet(fx.t.Context(), fx.subnet.ID, network.SubnetChange{DHCP: &yes}, nil); err != nil {
		fx.t.Fatal(err)
	}
}

// l2LostOn returns a report of the L2 agent on the host that the port is unplugged.
func l2LostOn(host string) network.Report {
	return network.Report{Entity: network.L2, Host: host, Event: network.ReportLost}
}

func withVNIC(kind string) func(*network.PortChange) {
	return func(c *network.PortChange) { c.VNIC = &kind }
}

func withAdminDown(c *network.PortChange) { c.AdminUp = ptr(false) }

func (fx fixture) createTrunk(parent network.Port, subports ...network.Port) network.Trunk {
	fx.t.Helper()
	made, err := fx.Network.CreateTrunks(fx.t.Context(),
		[]network.TrunkChange{{Project: ptr("p"), Port: &parent.ID, Subports: ptr(vlans(subports...))}})
	if err != nil {
		fx.t.Fatal(err)
	}
	return made[0]
}

// vlans returns subports with the VLAN IDs 1, 2, 3 …
func vlans(ports ...network.Port) []network.Subport {
	list := []network.Subport{}
	for i, p := range ports {
		list = append(list, network.Subport{Port: p.ID, Type: network.VLAN, Segment: i + 1})
	}
	return list
}

// createUnownedPort creates a port without a device owner.
func (fx fixture) createUnownedPort() network.Port {
	fx.t.Helper()
	return fx.createPort("", func(c *network.PortChange) { c.DeviceID, c.DeviceOwner = nil, nil })
}

func (fx fixture) trunkStatus(trunk uuid.UUID) string {
	fx.t.Helper()
	all, err := fx.Network.Trunks(fx.t.Context(),
		db.Listing{Where: []db.Condition{{Field: "id", In: []string{trunk.String()}}}})
	if err != nil || len(all) != 1 {
		fx.t.Fatalf("list one trunk by ID: got %v, error %v; want this trunk", all, err)
	}
	return all[0].Status
}
