package networkstore_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

// ground is a network with one subnet, on which tests put ports.
type ground struct {
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

// ready makes a ground with Open vSwitch agents on two hosts and a DHCP agent that hosts the network.
func ready(t testing.TB, cidr string) ground {
	s := storetest.New(t)
	g := ground{Store: s, t: t}
	g.heartbeat(network.OVSAgent, cmp1)
	g.heartbeat(network.OVSAgent, cmp2)
	g.heartbeat(network.DHCPAgent, net1)
	return g.laid(cidr)
}

// laid adds the network and the subnet.
func (g ground) laid(cidr string) ground {
	g.t.Helper()
	nets, err := g.Network.CreateNetworks(g.t.Context(), []network.NetworkChange{{Project: ptr("p"), Name: ptr("blue")}})
	if err != nil {
		g.t.Fatal(err)
	}
	g.network = nets[0]
	subnets, err := g.Network.CreateSubnets(g.t.Context(), []network.SubnetChange{{Network: &g.network.ID, Project: ptr("p"), CIDR: ptr(netip.MustParsePrefix(cidr))}})
	if err != nil {
		g.t.Fatal(err)
	}
	g.subnet = subnets[0]
	return g
}

func (g ground) heartbeat(kind, host string) string {
	g.t.Helper()
	result, err := g.Network.ReportState(g.t.Context(), network.AgentState{Type: kind, Host: host, Binary: "b", Topic: "t", Configurations: json.RawMessage(`{}`)})
	if err != nil {
		g.t.Fatal(err)
	}
	return result
}

// port makes a port of a server on that host; further changes may be given.
func (g ground) port(host string, more ...func(*network.PortChange)) network.Port {
	g.t.Helper()
	c := g.draft(host, more...)
	ports, err := g.Network.CreatePorts(g.t.Context(), []network.PortChange{c})
	if err != nil {
		g.t.Fatal(err)
	}
	return ports[0]
}

func (g ground) draft(host string, more ...func(*network.PortChange)) network.PortChange {
	c := network.PortChange{Network: &g.network.ID, Project: ptr("p"), Name: ptr("web-1"), Host: &host,
		DeviceOwner: ptr("compute:nova"), DeviceID: ptr("6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11")}
	for _, m := range more {
		m(&c)
	}
	return c
}

func (g ground) update(id uuid.UUID, c network.PortChange) network.Port {
	g.t.Helper()
	p, err := g.Network.UpdatePort(g.t.Context(), id, c, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

func (g ground) settle(id uuid.UUID, reports ...network.Report) network.StatusView {
	g.t.Helper()
	s, err := g.Network.UpdatePortStatus(g.t.Context(), id, reports)
	if err != nil {
		g.t.Fatal(err)
	}
	return s
}

func (g ground) look(id uuid.UUID) network.Port {
	g.t.Helper()
	p, err := g.Network.Port(g.t.Context(), id)
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

func owner(o string) func(*network.PortChange) {
	return func(c *network.PortChange) { c.DeviceOwner = &o }
}

func at(ip string) func(*network.PortChange) {
	return func(c *network.PortChange) { c.FixedIPs = &[]network.FixedIP{{IP: netip.MustParseAddr(ip)}} }
}

func entities(blocks []network.Block) []string {
	names := []string{}
	for _, b := range blocks {
		names = append(names, b.Entity+"@"+b.Host)
	}
	return names
}

func events(s network.StatusView) []string {
	names := []string{}
	for _, e := range s.Events {
		names = append(names, e.Name)
	}
	return names
}

func kind(err error) network.Kind {
	var f *network.Fault
	if errors.As(err, &f) {
		return f.Kind
	}
	return ""
}

var (
	l2on1  = network.Report{Entity: network.L2, Host: cmp1}
	l2on2  = network.Report{Entity: network.L2, Host: cmp2}
	dhcpOK = network.Report{Entity: network.DHCP, Host: net1}
)

func TestPort_ActiveOnlyAfterLastReport(t *testing.T) {
	t.Parallel()
	for _, order := range [][]network.Report{{l2on1, dhcpOK}, {dhcpOK, l2on1}} {
		g := ready(t, "10.0.0.0/24")
		p := g.port(cmp1)
		if d := cmp.Diff([]string{"DHCP@", "L2@cmp-1"}, entities(p.Blocks)); d != "" || p.Status != network.Down || p.Revision != 1 {
			t.Fatalf("a new port is %s at revision %d, blocks %s", p.Status, p.Revision, d)
		}

		first := g.settle(p.ID, order[0])
		second := g.settle(p.ID, order[1])
		again := g.settle(p.ID, order...)

		if first.Status != network.Down || len(first.Waiting) != 1 || len(first.Events) != 0 {
			t.Errorf("after the first report: %+v", first)
		}
		if second.Status != network.Active || len(second.Waiting) != 0 {
			t.Errorf("after the second report: %+v", second)
		}
		if d := cmp.Diff([]string{"network-vif-plugged"}, events(again)); d != "" {
			t.Error(d)
		}
		if after := g.look(p.ID); after.Revision != 2 || again.IgnoredReports != 2 {
			t.Errorf("duplicates changed the port: revision %d, ignored %d", after.Revision, again.IgnoredReports)
		}
		if err := g.Network.DeleteNovaEvents(t.Context(), []int64{again.Events[0].ID}); err != nil {
			t.Fatal(err)
		}
		if s := g.settle(p.ID); len(s.Events) != 0 {
			t.Errorf("a delivered event is still there: %v", s.Events)
		}
	}
}

func TestPort_IgnoredReportsAreCounted(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)

	s := g.settle(p.ID, l2on2, network.Report{Entity: "L2"}, network.Report{Entity: network.DHCP, Host: cmp1}, network.Report{Entity: "moon", Host: cmp1})

	if s.IgnoredReports != 4 || len(s.Waiting) != 2 || s.Status != network.Down {
		t.Errorf("want four ignored reports and nothing else, got %+v", s)
	}
	if d := cmp.Diff([]bool{false, false, false, false}, s.Accepted); d != "" {
		t.Error(d)
	}
	if after := g.look(p.ID); after.Revision != 1 {
		t.Errorf("revision %d", after.Revision)
	}
}

func TestPort_RebindingNeedsNewReport(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)
	g.settle(p.ID, l2on1, dhcpOK)

	moved := g.update(p.ID, network.PortChange{Host: ptr(cmp2)})
	if d := cmp.Diff([]string{"L2@cmp-2"}, entities(moved.Blocks)); d != "" || moved.Status != network.Down {
		t.Fatalf("after the move: %s %s", moved.Status, d)
	}
	if s := g.settle(p.ID, l2on1); s.Status != network.Down || s.IgnoredReports != 1 {
		t.Errorf("the old host's report: %+v", s)
	}
	s := g.settle(p.ID, l2on2)
	if d := cmp.Diff([]string{"network-vif-plugged", "network-vif-unplugged", "network-changed", "network-vif-plugged"}, events(s)); d != "" {
		t.Error(d)
	}
	loose := g.update(p.ID, network.PortChange{Host: ptr("")})
	if loose.Status != network.Down || loose.VIF != network.VIFUnbound || len(loose.Blocks) != 0 {
		t.Errorf("unbound: %+v", loose)
	}
}

func TestPort_AdminStateAppliesWithoutNewReports(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1, func(c *network.PortChange) { c.AdminUp = ptr(false) })
	if s := g.settle(p.ID, l2on1, dhcpOK); s.Status != network.Down || s.Reason == "" {
		t.Fatalf("administratively down: %+v", s)
	}
	if up := g.update(p.ID, network.PortChange{AdminUp: ptr(true)}); up.Status != network.Active {
		t.Errorf("up again: %s, waiting %v", up.Status, up.Blocks)
	}
}

func TestPort_DHCPBlockIsRemovedWithDHCP(t *testing.T) {
	t.Parallel()
	gone := map[string]func(g ground, p network.Port) error{
		"no addresses": func(g ground, p network.Port) error {
			_, err := g.Network.UpdatePort(g.t.Context(), p.ID, network.PortChange{FixedIPs: &[]network.FixedIP{}}, nil)
			return err
		},
		"DHCP switched off": func(g ground, _ network.Port) error {
			_, err := g.Network.UpdateSubnet(g.t.Context(), g.subnet.ID, network.SubnetChange{DHCP: ptr(false)}, nil)
			return err
		},
		"unscheduled": func(g ground, _ network.Port) error {
			return g.Network.UnscheduleNetwork(g.t.Context(), g.agent(network.DHCPAgent).ID, g.network.ID)
		},
		"agent deleted": func(g ground, _ network.Port) error {
			return g.Network.DeleteAgent(g.t.Context(), g.agent(network.DHCPAgent).ID)
		},
		"owner exempt": func(g ground, p network.Port) error {
			_, err := g.Network.UpdatePort(g.t.Context(), p.ID, network.PortChange{DeviceOwner: ptr("network:dhcp")}, nil)
			return err
		},
	}
	for name, act := range gone {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := ready(t, "10.0.0.0/24")
			p := g.port(cmp1)
			if s := g.settle(p.ID, l2on1); len(s.Waiting) != 1 {
				t.Fatalf("%+v", s)
			}

			if err := act(g, p); err != nil {
				t.Fatal(err)
			}

			if after := g.look(p.ID); after.Status != network.Active {
				t.Errorf("%s, waiting for %v", after.Status, entities(after.Blocks))
			}
		})
	}
}

func (g ground) agent(kind string) network.Agent {
	g.t.Helper()
	agents, err := g.Network.Agents(g.t.Context(), db.Listing{Where: []db.Condition{{Field: "type", In: []string{kind}}}})
	if err != nil || len(agents) == 0 {
		g.t.Fatalf("no %s: %v", kind, err)
	}
	return agents[0]
}

func TestPort_BlocksDependOnDeviceOwner(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	for owner_, want := range map[string][]string{
		"compute:az1":                            {"DHCP@", "L2@cmp-1"},
		"baremetal:none":                         {"DHCP@", "L2@cmp-1"},
		"network:distributed":                    {"DHCP@", "L2@cmp-1"},
		"":                                       {"L2@cmp-1"},
		"network:dhcp":                           {},
		"network:floatingip":                     {},
		"network:ha_router_replicated_interface": {},
	} {
		p := g.port(cmp1, owner(owner_))
		if d := cmp.Diff(want, entities(p.Blocks)); d != "" {
			t.Errorf("owner %q: %s", owner_, d)
		}
	}
}

func TestPort_FailedBindingIsRetriedWhenAgentRegisters(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port("cmp-9")
	if p.VIF != network.VIFFailed || p.StatusView().Reason == "" {
		t.Fatalf("bound to nobody: %+v", p)
	}

	if r := g.heartbeat(network.OVSAgent, "cmp-9"); r != network.AgentNew {
		t.Errorf("the agent is %s", r)
	}

	if after := g.look(p.ID); after.VIF != network.VIFOVS || len(after.Blocks) != 2 {
		t.Errorf("after the agent came: %s, blocks %v", after.VIF, entities(after.Blocks))
	}
	newest, err := g.Journal.JournalEntries(t.Context(), journalstore.EntryFilter{Type: "port", Newest: true, Limit: 1})
	if err != nil || len(newest) != 1 || newest[0].Operation != "update" || !strings.Contains(string(newest[0].Data), `"binding:vif_type": "ovs"`) {
		t.Errorf("the controller is not told of the binding: %+v, error %v", newest, err)
	}
	if r := g.heartbeat(network.OVSAgent, "cmp-9"); r != network.AgentAlive {
		t.Errorf("the agent is %s", r)
	}
}

func TestPort_DeleteKeepsOnlyNovaEvents(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1)

	if err := g.Network.DeletePort(t.Context(), p.ID, nil); err != nil {
		t.Fatal(err)
	}

	s := g.settle(p.ID, l2on1)
	if d := cmp.Diff([]string{"network-vif-deleted"}, events(s)); d != "" || !s.Deleted {
		t.Errorf("%+v %s", s, d)
	}
	if _, err := g.Network.ReportPort(t.Context(), p.ID, []network.Report{l2on1}); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("report to a deleted port: %v", err)
	}
	if err := g.Network.DeletePort(t.Context(), p.ID, nil); kind(err) != network.PortNotFound {
		t.Errorf("second delete: %v", err)
	}
	if again := g.port(cmp1, at(p.Addresses[0].IP.String())); len(again.Addresses) != 1 {
		t.Errorf("the address was not released: %v", again.Addresses)
	}
}
