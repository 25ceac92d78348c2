package rpc_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/api/rpc"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// senderFixture is a cloud whose hosts have a virtual host each. The client is in the virtual host of the
// host cmp2. The DHCP agent on the host net1 serves the fixture's network.
type senderFixture struct {
	fixture
	client   *rawClient
	server   *rpc.Server
	registry *prometheus.Registry
	foreign  network.Port // on the host cmp1
	own      network.Port // on the host cmp2, on the same network and in the same security group
}

// unusedVirtualHost returns the URL of a virtual host that several tests share, because nothing is consumed
// and published there.
func unusedVirtualHost(t *testing.T) string {
	t.Helper()
	unusedOnce.Do(func() { unusedURL = newVirtualHost(t) })
	return unusedURL
}

var (
	unusedOnce sync.Once
	unusedURL  string
)

func newSenderFixture(t *testing.T, change ...func(*rpc.Options)) *senderFixture {
	t.Helper()
	rows, main, vhost := storetest.URL(t), unusedVirtualHost(t), newVirtualHost(t)
	s := storetest.Open(t, rows)
	f := &senderFixture{
		fixture:  fixture{Store: s, url: main, database: rows},
		registry: prometheus.NewRegistry(),
	}
	for host, kind := range map[string]string{"net1": network.DHCPAgent, "cmp1": "Open vSwitch agent", "cmp2": "Open vSwitch agent"} {
		if _, err := s.Network.ReportState(t.Context(), network.AgentState{
			Type:             kind,
			Host:             host,
			Configurations:   []byte("{}"),
			ResourceVersions: map[string]string{"Port": "1.7"},
		}); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Exec(t, rows, `update agent set heartbeat_at = now() + interval '1 hour'`)
	f.createNetwork(t, network.VXLAN)
	f.foreign, f.own = f.createPort(t, "cmp1", f.network.ID), f.createPort(t, "cmp2", f.network.ID)
	if _, err := s.Agents.AddVirtualHost(t.Context(), "cmp2", path.Base(vhost), []string{"Open vSwitch agent", network.DHCPAgent}); err != nil {
		t.Fatal(err)
	}
	options := rpc.Options{
		Store:      s.Network,
		Agents:     s.Agents,
		Brokers:    []string{main},
		Host:       "here",
		Identities: true,
		Metrics:    f.registry,
	}
	for _, c := range change {
		c(&options)
	}
	f.server = rpc.NewServer(options)
	runUntilEnd(t, f.server.Run)
	eventually(t, "the server takes calls in the virtual host of cmp2", f.server.Connected)
	f.client = newRawClient(t, vhost)
	return f
}

func (f *senderFixture) createPort(t *testing.T, host string, on uuid.UUID) network.Port {
	t.Helper()
	owner, project, name := "compute:nova", "p1", "secret of "+host
	ports, err := f.Network.CreatePorts(t.Context(), []network.PortChange{
		{
			Network:     &on,
			Host:        &host,
			DeviceOwner: &owner,
			Project:     &project,
			Name:        &name,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ports[0]
}

// call calls a method in the virtual host of the host cmp2, and returns the result or the class of the
// exception.
func (f *senderFixture) call(t *testing.T, method, args string) (result, exception string) {
	t.Helper()
	f.client.send(t, envelope(fmt.Sprintf(
		`{"method":%q,"args":%s,"version":"1.0","_msg_id":"m","_reply_q":%q,"_unique_id":%q}`,
		method, args, f.client.queue, hexID(),
	)))
	m := openEnvelope(t, (<-f.client.replies).Body)
	if failure, ok := m["failure"].(string); ok {
		var thrown struct{ Class string }
		if err := json.Unmarshal([]byte(failure), &thrown); err != nil {
			t.Fatal(err)
		}
		return "", thrown.Class
	}
	text, err := json.Marshal(m["result"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text), ""
}

// cloudState is everything that a call of an agent can change.
type cloudState struct {
	Ports     []network.Port
	Agents    []network.Agent
	Tunnels   []network.TunnelEndpoint
	DHCPHosts []string
}

func (f *senderFixture) state(t *testing.T) (s cloudState) {
	t.Helper()
	var errs [4]error
	s.Ports, errs[0] = f.Network.Ports(t.Context(), db.Listing{})
	s.Agents, errs[1] = f.Network.Agents(t.Context(), db.Listing{})
	s.Tunnels, errs[2] = f.Network.TunnelEnds(t.Context(), "vxlan")
	s.DHCPHosts, errs[3] = f.Network.DHCPHosts(t.Context(), f.network.ID)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// checkUnchanged fails the test if the state differs from the state before, except for the number of reports
// that a port has ignored.
func (f *senderFixture) checkUnchanged(t *testing.T, what string, before cloudState) {
	t.Helper()
	if diff := cmp.Diff(before, f.state(t), cmpopts.IgnoreFields(network.Port{}, "IgnoredReports"), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
		cmpopts.IgnoreFields(network.Agent{}, "Alive")); diff != "" {
		t.Errorf("%s: the rows changed (-before +after):\n%s", what, diff)
	}
}

func (f *senderFixture) refusals(t *testing.T) map[string]float64 {
	t.Helper()
	return counters(t, f.registry, "berth_rpc_refused_total")
}

func (f *senderFixture) report(t *testing.T, id uuid.UUID, reports ...network.Report) {
	t.Helper()
	if _, err := f.Network.ReportPorts(t.Context(), map[uuid.UUID][]network.Report{id: reports}); err != nil {
		t.Fatal(err)
	}
}

// The attacker names the foreign host, its own host and no host.
func TestSender_CannotReportAForeignPortUpOrDown(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	attack := func(what string) {
		t.Helper()
		before := f.state(t)
		for _, method := range []string{"get_device_details", "update_device_up", "update_device_down"} {
			for host, want := range map[string]string{`"cmp1"`: "NotAuthorized", `"cmp2"`: "", `null`: ""} {
				if _, exception := f.call(t, method, fmt.Sprintf(`{"device":%q,"agent_id":"a","host":%s}`, f.foreign.ID, host)); exception != want {
					t.Errorf("%s about a foreign port for the host %s: got the exception %q, want %q",
						method, host, exception, want)
				}
			}
		}
		f.call(t, "update_device_list",
			fmt.Sprintf(`{"devices_up":[%q],"devices_down":[%[1]q],"host":null}`, f.foreign.ID))
		f.call(t, "dhcp_ready_on_ports", fmt.Sprintf(`{"port_ids":[%q]}`, f.foreign.ID))
		f.checkUnchanged(t, what, before)
	}
	attack("report a port that waits")
	f.report(t, f.foreign.ID, network.Report{Entity: network.L2, Host: "cmp1"},
		network.Report{Entity: network.DHCP, Host: "net1"})
	if status := f.portStatus(t, f.foreign.ID); status != network.Active {
		t.Fatalf("the foreign port after the reports of its own agents: got status %s, want ACTIVE", status)
	}
	attack("report an ACTIVE port")

	f.call(t, "update_device_up", fmt.Sprintf(`{"device":%q,"agent_id":"a","host":"cmp2"}`, f.own.ID))
	p, err := f.Network.Port(t.Context(), f.own.ID)
	if err != nil || !slices.Equal(p.StatusView().Remaining(), []string{network.DHCP}) {
		t.Errorf("report the sender's own port up: the port waits for %v, error %v; want DHCP alone",
			p.StatusView().Remaining(), err)
	}
}

func TestSender_ReadsOnlyWhatItsHostServes(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	blue := f.network.ID
	f.createNetwork(t, network.VXLAN)
	hidden := f.createPort(t, "cmp1", f.network.ID)
	group := func(project string) uuid.UUID {
		t.Helper()
		name := "hidden"
		made, err := f.Network.CreateSecurityGroups(t.Context(),
			[]network.SecurityGroupChange{{Name: &name, Project: &project}})
		if err != nil {
			t.Fatal(err)
		}
		return made[0].ID
	}("p2")
	byID := func(kind string, id uuid.UUID) string {
		return fmt.Sprintf(`{"resource_type":%q,"version":"1.0","filter_kwargs":{"id":[%q]}}`, kind, id)
	}
	by := func(kind, filter string, id uuid.UUID) string {
		return fmt.Sprintf(`{"resource_type":%q,"version":"1.0","filter_kwargs":{%q:[%q]}}`, kind, filter, id)
	}
	for _, c := range []struct{ method, args, result, exception string }{
		{"bulk_pull", byID("Port", hidden.ID), "[]", ""},
		{"bulk_pull", byID("Network", f.network.ID), "", "NotAuthorized"},
		{"bulk_pull", byID("Subnet", f.subnet.ID), "", "NotAuthorized"},
		{"bulk_pull", byID("SecurityGroup", group), "", "NotAuthorized"},
		{"bulk_pull", by("SecurityGroupRule", "security_group_id", group), "", "NotAuthorized"},
		{"bulk_pull", by("Port", "security_group_ids", group), "", "NotAuthorized"},
		{"bulk_pull", `{"resource_type":"Network","version":"1.0","filter_kwargs":{}}`, "", "NotAuthorized"},
		{"bulk_pull", byID("SecurityGroup", uuid.New()), "[]", ""}, // no such group: nothing is hidden
		{"pull", fmt.Sprintf(`{"resource_type":"Port","version":"1.0","resource_id":%q}`, hidden.ID), "null", ""},
		// net1 serves the DHCP of this network
		{"get_network_info", fmt.Sprintf(`{"network_id":%q}`, blue), "", "NotAuthorized"},
		{"get_network_details", fmt.Sprintf(`{"network":%q}`, f.network.ID), fmt.Sprintf(`{"id":%q,"provider:network_type":"vxlan","provider:physical_network":null,"provider:segmentation_id":%d}`,
			f.network.ID, *f.network.Segment), ""},
		{"get_dhcp_port", fmt.Sprintf(`{"port_id":%q}`, hidden.ID), "", "PortNotFound"},
		{"get_device_details", fmt.Sprintf(`{"device":%q,"host":"cmp2"}`, hidden.ID), fmt.Sprintf(`{"device":%q}`, hidden.ID), ""},
		{"security_group_info_for_devices", fmt.Sprintf(`{"devices":[%q]}`, hidden.ID), `{"devices":{},"security_groups":{},"sg_member_ips":{}}`, ""},
		{"get_active_networks_info", `{"host":"cmp2"}`, "[]", ""},
	} {
		if result, exception := f.call(t, c.method, c.args); result != c.result || exception != c.exception {
			t.Errorf("%s %s: got %s, exception %q; want %s, exception %q",
				c.method, c.args, result, exception, c.result, c.exception)
		}
	}

	all, _ := f.call(t, "get_ports", `{"filters":{}}`)
	everything, _ := f.call(t, "bulk_pull", `{"resource_type":"Port","version":"1.7","filter_kwargs":{}}`)
	for _, read := range []string{all, everything} {
		if !strings.Contains(read, "secret of cmp2") || strings.Contains(read, "cmp1") {
			t.Errorf("read all ports: got %s, want only the port on cmp2", read)
		}
	}
	members, exception := f.call(t, "bulk_pull", by("Port", "security_group_ids", f.own.SecurityGroups[0]))
	if exception != "" || !strings.Contains(members, "secret of cmp2") || strings.Contains(members, "cmp1") ||
		!strings.Contains(members, f.foreign.MAC) ||
		!strings.Contains(members, f.foreign.Addresses[0].IP.String()) {
		t.Errorf(
			"read the members of the remote group: got %s, exception %q; want the addresses of the foreign port and nothing else of it",
			members,
			exception,
		)
	}
	for _, args := range []string{byID("Network", blue), byID("Subnet", f.own.Addresses[0].Subnet), byID("SecurityGroup", f.own.SecurityGroups[0]),
		by("SecurityGroupRule", "security_group_id", f.own.SecurityGroups[0])} {
		if result, exception := f.call(t, "bulk_pull", args); exception != "" || result == "[]" {
			t.Errorf("read %s, which the host serves: got %s, exception %q; want the object",
				args, result, exception)
		}
	}
}

func TestSender_CannotMoveTheTunnelEndpointOfAnotherHost(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	if _, err := f.Network.SyncTunnel(t.Context(), network.TunnelEndpoint{Type: "vxlan", Host: "cmp1", IP: netip.MustParseAddr("192.0.2.1")}, false); err != nil {
		t.Fatal(err)
	}
	before := f.state(t)
	for _, args := range []string{`{"tunnel_ip":"192.0.2.9","tunnel_type":"vxlan","host":"cmp1"}`, `{"tunnel_ip":"192.0.2.1","tunnel_type":"vxlan","host":"cmp2"}`,
		`{"tunnel_ip":"192.0.2.1","tunnel_type":"vxlan"}`} {
		if result, exception := f.call(t, "tunnel_sync", args); exception != "NotAuthorized" {
			t.Errorf("tunnel_sync %s: got %s, exception %q; want NotAuthorized", args, result, exception)
		}
	}
	f.checkUnchanged(t, "move the tunnel endpoint of another host", before)
	if got := f.refusals(t); got["host"] != 1 || got["owner"] != 2 {
		t.Errorf("counted refusals: got %v, want one for the named host and two for the owner", got)
	}

	if _, exception := f.call(t, "tunnel_sync", `{"tunnel_ip":"192.0.2.2","tunnel_type":"vxlan"}`); exception != "" {
		t.Errorf("tunnel_sync with the sender's own address: got the exception %q, want none", exception)
	}
	if got := f.state(t).Tunnels; len(got) != 2 ||
		!slices.ContainsFunc(got, func(e network.TunnelEndpoint) bool { return e.Host == "cmp2" }) {
		t.Errorf("tunnel endpoints: got %v, want those of cmp1 and cmp2", got)
	}
}

// A forged name is one in an unusual place or spelling: the agent_id, or a key that differs only in case, or
// occurs twice.
func TestSender_CannotSpeakForAnotherHost(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	before := f.state(t)
	state := `{"agent_state":{"agent_state":{"agent_type":%q,"host":%q,"binary":"b","topic":"t","configurations":{}}}}`
	for _, c := range []struct{ method, args string }{
		{"report_state", fmt.Sprintf(state, network.DHCPAgent, "cmp1")},
		{"report_state", fmt.Sprintf(state, network.DHCPAgent, "new-host")},
		// the registration permits other types of agents
		{"report_state", fmt.Sprintf(state, "L3 agent", "cmp2")},
		{"report_state", `{"agent_state":{"agent_state":{"agent_type":"DHCP agent","host":"cmp2","HOST":"cmp1"}}}`},
		{"report_state", `{"agent_state":{"agent_state":{"agent_type":"DHCP agent","host":"cmp2"}},"AGENT_STATE":{"Agent_State":{"host":"cmp1"}}}`},
		{"get_active_networks_info", `{"host":"net1"}`},
		{"get_active_networks_info", `{"host":"cmp2","Host":"net1"}`},
		{"get_dvr_mac_address_by_host", `{"host":"cmp3"}`},
		{"get_devices_details_list", `{"devices":[],"agent_id":"ovs-agent-cmp1"}`},
		{"update_device_list", fmt.Sprintf(`{"devices_up":[%q],"host":"cmp1"}`, f.foreign.ID)},
		{"get_router_ids", `{"host":"cmp1"}`},
		{"method_that_does_not_exist", `{"host":"cmp1"}`},
	} {
		want := "NotAuthorized"
		if c.method == "method_that_does_not_exist" {
			want = "NoSuchMethod"
		}
		if result, exception := f.call(t, c.method, c.args); exception != want {
			t.Errorf("%s %s: got %s, exception %q; want %s", c.method, c.args, result, exception, want)
		}
	}
	f.checkUnchanged(t, "name another host", before)
	if got := f.refusals(t); got["host"] != 10 || got["agent_type"] != 1 {
		t.Errorf("counted refusals: got %v, want 10 for the named host and 1 for the agent type", got)
	}
}

// A port that nobody has bound can have the device ID of the network's DHCP agent.
func TestSender_ReleaseOfADHCPPortIgnoresPortsOfOthers(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	f.serveDHCPFrom(t, "cmp2")
	owner, device := network.DeviceOwnerDHCP, network.DHCPDeviceID("cmp2", f.network.ID)
	created := fmt.Sprintf(`{"port":{"port":{"network_id":%q,"device_id":%q,"tenant_id":"p1"}}}`, f.network.ID, device)
	if result, exception := f.call(t, "create_dhcp_port", created); exception != "" {
		t.Fatalf("create the port of the agent: got %s, exception %q", result, exception)
	}
	draft := network.PortChange{
		Network:     &f.network.ID,
		DeviceOwner: &owner,
		DeviceID:    &device,
		FixedIPs:    &[]network.FixedIP{},
	}
	planted, err := f.Network.CreatePorts(t.Context(), []network.PortChange{draft, draft})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Network.CreateTrunks(t.Context(), []network.TrunkChange{{Port: &planted[1].ID}}); err != nil {
		t.Fatal(err)
	}
	host := "cmp2"
	if _, err := f.Network.UpdatePort(t.Context(), planted[1].ID, network.PortChange{Host: &host}, nil); err != nil {
		t.Fatal(err)
	}

	released := fmt.Sprintf(`{"network_id":%q,"device_id":%q}`, f.network.ID, device)
	if result, exception := f.call(t, "release_dhcp_port", released); exception != "" {
		t.Errorf("release the port of the agent: got %s, exception %q; want no exception", result, exception)
	}
	left, err := f.Network.Ports(t.Context(), db.Listing{Where: []db.Condition{{Field: "device_id", In: []string{device}}}})
	stays := func(p network.Port) bool { return p.ID == planted[0].ID || p.ID == planted[1].ID }
	if err != nil || len(left) != 2 || !stays(left[0]) || !stays(left[1]) {
		t.Errorf("ports with the device ID of the agent: got %v, error %v; want only the planted ones", left, err)
	}
}

func TestSender_CannotChangeTheDHCPServiceOfAnotherHost(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	owner, host, project := network.DeviceOwnerDHCP, "net1", "p1"
	device, mine := network.DHCPDeviceID(host, f.network.ID), network.DHCPDeviceID("cmp2", f.network.ID)
	served, err := f.Network.EnsureDHCPPort(t.Context(), network.PortChange{
		Network:     &f.network.ID,
		DeviceOwner: &owner,
		DeviceID:    &device,
		Host:        &host,
		Project:     &project,
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	before := f.state(t)
	create := func(device string) string {
		return fmt.Sprintf(`{"port":{"port":{"network_id":%q,"device_id":%q,"tenant_id":"p1"}}}`,
			f.network.ID, device)
	}
	for _, c := range []struct{ method, args, exception string }{
		{"create_dhcp_port", create(mine), "NetworkNotFound"},
		{"create_dhcp_port", create(device), "NetworkNotFound"},
		{"update_dhcp_port", fmt.Sprintf(`{"port_id":%q,"port":{"port":{"admin_state_up":false}}}`, served.ID), "NetworkNotFound"},
		{"update_dhcp_port", fmt.Sprintf(`{"port_id":%q,"port":{"port":{}},"host":"net1"}`, served.ID), "NotAuthorized"},
		{"release_dhcp_port", fmt.Sprintf(`{"network_id":%q,"device_id":%q}`, f.network.ID, device), ""},
	} {
		if result, exception := f.call(t, c.method, c.args); exception != c.exception {
			t.Errorf("%s %s: got %s, exception %q; want %s", c.method, c.args, result, exception, c.exception)
		}
	}
	f.checkUnchanged(t, "change the DHCP service of another host", before)

	f.serveDHCPFrom(t, "cmp2")
	before = f.state(t)
	for _, c := range []struct{ method, args, exception string }{
		{"create_dhcp_port", create(device), "NotAuthorized"},
		{"create_dhcp_port", create(network.DHCPDeviceID("net2", f.network.ID)), "NotAuthorized"},
		{"create_dhcp_port", create(network.ReservedDHCPDevice), "NotAuthorized"},
		{"update_dhcp_port", fmt.Sprintf(`{"port_id":%q,"port":{"port":{"device_id":%q}}}`, served.ID, device), "DhcpPortInUse"},
	} {
		if result, exception := f.call(t, c.method, c.args); exception != c.exception {
			t.Errorf("%s %s on a network that both hosts serve: got %s, exception %q; want %s",
				c.method, c.args, result, exception, c.exception)
		}
	}
	f.checkUnchanged(t, "take over the DHCP port of another host", before)
	if result, exception := f.call(t, "create_dhcp_port", create(mine)); exception != "" ||
		!strings.Contains(result, `"binding:host_id":"cmp2"`) {
		t.Errorf("create a DHCP port for a served network: got %s, exception %q; want a port on cmp2",
			result, exception)
	}
	if result, exception := f.call(t, "get_network_info", fmt.Sprintf(`{"network_id":%q}`, f.network.ID)); exception != "" ||
		!strings.Contains(result, f.foreign.MAC) {
		t.Errorf(
			"read a network that the DHCP agent serves: got %s, exception %q; want the network with all its ports",
			result,
			exception,
		)
	}
	f.call(t, "dhcp_ready_on_ports", fmt.Sprintf(`{"port_ids":[%q]}`, f.foreign.ID))
	p, err := f.Network.Port(t.Context(), f.foreign.ID)
	if err != nil || slices.Contains(p.StatusView().Remaining(), network.DHCP) {
		t.Errorf(
			"report DHCP for a port on a served network: the port waits for %v, error %v; want no DHCP",
			p.StatusView().Remaining(),
			err,
		)
	}
}

// A DHCP agent needs few ports on a network, and none that uses the quota of a project other than that of the
// network.
func TestSender_CreatesFewDHCPPortsOfTheProjectOfTheNetwork(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	f.serveDHCPFrom(t, "cmp2")
	const ports = 40
	refused := 0
	for i := range ports {
		args := fmt.Sprintf(
			`{"port":{"port":{"network_id":%q,"device_id":"%s-%d","tenant_id":"victim","fixed_ips":[]}}}`,
			f.network.ID,
			network.DHCPDeviceID("cmp2", f.network.ID),
			i,
		)
		if result, exception := f.call(t, "create_dhcp_port", args); exception == "Conflict" {
			refused++
		} else if exception != "" {
			t.Fatalf("create_dhcp_port: got %s, exception %q", result, exception)
		}
	}
	if refused < ports/2 {
		t.Errorf("create %d DHCP ports on one network for one host: %d were refused, want most of them",
			ports, refused)
	}
	for project, want := range map[string]bool{"victim": false, "p1": true} {
		used, err := f.Network.QuotaUsage(t.Context(), project)
		if err != nil {
			t.Fatal(err)
		}
		if got := used["port"]; (got > 0) != want {
			t.Errorf("ports of the project %s after the calls of a DHCP agent: got %d, want some: %t",
				project, got, want)
		}
	}
}

// Each address of a port costs statements and locks in one transaction, and is missing for other ports.
func TestSender_ADHCPPortHasFewAddresses(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	f.serveDHCPFrom(t, "cmp2")
	subnets, err := f.Network.Subnets(t.Context(),
		db.Listing{Where: []db.Condition{{Field: "network", In: []string{f.network.ID.String()}}}})
	if err != nil {
		t.Fatal(err)
	}
	fixed := strings.Repeat(fmt.Sprintf(`{"subnet_id":%q},`, subnets[0].ID), 3)
	before := f.state(t)
	for method, args := range map[string]string{
		"create_dhcp_port": fmt.Sprintf(`{"port":{"port":{"network_id":%q,"device_id":"d","fixed_ips":[%s]}}}`, f.network.ID, fixed[:len(fixed)-1]),
		"update_dhcp_port": fmt.Sprintf(`{"port_id":%q,"port":{"port":{"fixed_ips":[%s]}}}`, f.own.ID, fixed[:len(fixed)-1]),
	} {
		if result, exception := f.call(t, method, args); exception != "TypeError" {
			t.Errorf("%s with three addresses in one subnet: got %.200s, exception %q; want TypeError",
				method, result, exception)
		}
	}
	f.checkUnchanged(t, "give a DHCP port many addresses", before)
}

// The owner of the network can give the port more addresses than the agent may request. An agent whose call
// fails synchronizes all its networks again and again.
func TestSender_ADHCPPortKeepsTheAddressesOfTheOwnerOfTheNetwork(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	f.serveDHCPFrom(t, "cmp2")
	device := network.DHCPDeviceID("cmp2", f.network.ID)
	created, _ := f.call(t, "create_dhcp_port", fmt.Sprintf(
		`{"port":{"port":{"network_id":%q,"device_id":%q,"fixed_ips":[{"subnet_id":%q}]}}}`,
		f.network.ID, device, f.subnet.ID))
	var port struct{ ID uuid.UUID }
	if err := json.Unmarshal([]byte(created), &port); err != nil {
		t.Fatal(created, err)
	}
	given := make([]network.FixedIP, 3)
	for i := range given {
		given[i].Subnet = f.subnet.ID
	}
	p, err := f.Network.UpdatePort(t.Context(), port.ID, network.PortChange{FixedIPs: &given}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var fixed []map[string]any
	for _, a := range p.Addresses {
		fixed = append(fixed, map[string]any{"subnet_id": a.Subnet, "ip_address": a.IP})
	}
	update := func(fixed []map[string]any) (result, exception string) {
		raw, err := json.Marshal(fixed)
		if err != nil {
			t.Fatal(err)
		}
		return f.call(t, "update_dhcp_port", fmt.Sprintf(
			`{"port_id":%q,"port":{"port":{"network_id":%q,"device_id":%q,"fixed_ips":%s}}}`,
			port.ID, f.network.ID, device, raw))
	}

	if result, exception := update(fixed); exception != "" || !strings.Contains(result, p.Addresses[2].IP.String()) {
		t.Errorf("keep three addresses of a DHCP port: got %.300s, exception %q; want the port", result, exception)
	}
	if result, exception := update(append(fixed, map[string]any{"subnet_id": f.subnet.ID})); exception != "TypeError" {
		t.Errorf("a fourth address for a DHCP port: got %.300s, exception %q; want TypeError", result, exception)
	}
}

// All calls that a virtual host may have at the same time wait for a locked port.
func TestSender_LeavesDatabaseConnectionsForOthers(t *testing.T) {
	t.Parallel()
	const calls = 8
	f := newSenderFixture(t)
	lock := storetest.Connect(t, f.database)
	if _, err := lock.Exec(t.Context(), `begin; select from port where id = '`+f.own.ID.String()+`' for update`); err != nil {
		t.Fatal(err)
	}
	for range calls {
		f.client.send(t, envelope(fmt.Sprintf(
			`{"method":"update_device_up","args":{"device":%q,"host":"cmp2"},"version":"1.0","_msg_id":"m","_reply_q":%q,"_unique_id":%q}`,
			f.own.ID, f.client.queue, hexID(),
		)))
	}
	var holding int
	eventually(t, "all calls wait", func() bool {
		if err := f.DB.QueryRow(db.WithReserve(t.Context()), `
			select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&holding); err != nil {
			t.Fatal(err)
		}
		return holding+f.DB.Pools()[0].Waiting == calls
	})
	if _, err := lock.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	for range calls {
		<-f.client.replies
	}
	if holding > 4 {
		t.Errorf("calls of a host that wait for a lock: got %d database connections of 8, want at most 4", holding)
	}
}

// The host cmp2 sends more calls than the rate allows; the next one would be due after an hour.
func TestSender_MessagesBeyondTheRateOfTheHostWait(t *testing.T) {
	t.Parallel()
	const burst = 3
	f := newSenderFixture(t, func(o *rpc.Options) { o.HostRate, o.HostBurst = 1.0/3600, burst })
	flooding, vhost := f.client, newVirtualHost(t)
	for i := range 2 * burst {
		flooding.send(t, envelope(fmt.Sprintf(
			`{"method":"tunnel_sync","args":{"tunnel_ip":"192.0.2.%d","tunnel_type":"vxlan","host":"cmp2"},"version":"1.0","_msg_id":"m","_reply_q":%q,"_unique_id":%q}`,
			i+1, flooding.queue, hexID(),
		)))
	}
	for range burst {
		<-flooding.replies
	}

	f.callFromOtherHost(t, vhost, burst)
	if n := executedCalls(t, f.registry); n != 2*burst {
		t.Errorf("executed calls of both hosts: got %d, want the %d that the rate allows each host", n, burst)
	}
	if ends, err := f.Network.TunnelEnds(t.Context(), "vxlan"); err != nil || len(ends) != 2 {
		t.Errorf("tunnel endpoints: got %v, error %v; want one of each host", ends, err)
	}
}

// callFromOtherHost makes calls in the virtual host of the host cmp1, which it registers.
func (f *senderFixture) callFromOtherHost(t *testing.T, vhost string, calls int) {
	t.Helper()
	if _, err := f.Agents.AddVirtualHost(t.Context(), "cmp1", path.Base(vhost), nil); err != nil {
		t.Fatal(err)
	}
	f.client = newRawClient(t, vhost)
	eventually(t, "the server takes calls in the virtual host of cmp1", func() bool {
		q, err := newRawClient(t, vhost).QueueDeclarePassive("q-plugin", false, false, false, false, nil)
		return err == nil && q.Consumers > 0
	})
	for range calls {
		_, exception := f.call(t, "tunnel_sync", `{"tunnel_ip":"192.0.2.101","tunnel_type":"vxlan","host":"cmp1"}`)
		if exception != "" {
			t.Errorf("call of another host: got the exception %s, want an answer", exception)
		}
	}
}

// The rate of the host allows four messages; the next one would be due after an hour.
func TestSender_CallsAboutManyPortsCountAsSeveralMessages(t *testing.T) {
	t.Parallel()
	for method, args := range map[string]string{
		"update_device_list":       `{"host":"cmp2","devices_up":%[1]s,"devices_down":%[1]s}`,
		"get_devices_details_list": `{"host":"cmp2","devices":%[2]s}`,
		"dhcp_ready_on_ports":      `{"port_ids":%[2]s}`,
		"get_ports":                `{"filters":{"id":%[2]s}}`,
		"bulk_pull":                `{"resource_type":"Port","version":"1.7","filter_kwargs":{"network_id":%[2]s}}`,
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			f := newSenderFixture(t, func(o *rpc.Options) { o.HostRate, o.HostBurst = 1.0/3600, 4 })
			var ids [2][]byte // of 20 and of 31 ports: one message and three further ones
			for i, n := range []int{20, 31} {
				many := make([]string, n)
				for at := range many {
					many[at] = uuid.NewString()
				}
				ids[i], _ = json.Marshal(many)
			}
			if method == "update_device_list" { // 1 + 1 + 1
				f.call(t, "has_alive_neutron_server", `{}`)
			}
			if _, exception := f.call(t, method, fmt.Sprintf(args, ids[0], ids[1])); exception != "" {
				t.Errorf("call about many ports: got the exception %s, want an answer", exception)
			}
			before := executedCalls(t, f.registry)
			f.client.send(t, envelope(`{"method":"tunnel_sync","args":{},"version":"1.0","_unique_id":"next"}`))
			f.callFromOtherHost(t, newVirtualHost(t), 3)
			if n := executedCalls(t, f.registry) - before; n != 3 {
				t.Errorf("calls after a call about many ports: got %d, want only the 3 of another host", n)
			}
		})
	}
}

// executedCalls returns the number of calls and casts that the server has executed.
func executedCalls(t *testing.T, registry *prometheus.Registry) (n int) {
	t.Helper()
	for _, calls := range counters(t, registry, "berth_rpc_calls_total") {
		n += int(calls)
	}
	return n
}

// serveDHCPFrom registers a DHCP agent on a host and schedules the fixture's network to it, too.
func (f *senderFixture) serveDHCPFrom(t *testing.T, host string) {
	t.Helper()
	if _, err := f.Network.ReportState(t.Context(), network.AgentState{Type: network.DHCPAgent, Host: host, Configurations: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(
		t, f.database,
		`insert into dhcp_binding (network_id, agent_id) select $1, id from agent where host = $2 and agent_type = $3`,
		f.network.ID, host, network.DHCPAgent,
	)
}

// Nothing is consumed in the virtual host of the broker's URL, and a virtual host is served exactly as long
// as it is registered.
func TestServer_ServesOnlyRegisteredVirtualHostsIfIdentitiesAreRequired(t *testing.T) {
	t.Parallel()
	f := newSenderFixture(t)
	main := newRawClient(t, f.url)
	if _, err := main.QueueDeclarePassive("q-plugin", false, false, false, false, nil); err == nil {
		t.Error("look for the queue q-plugin in the virtual host of the URL: it exists, want none")
	}

	registered, err := f.Agents.AddVirtualHost(t.Context(), "cmp3", "no-such-virtual-host", nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the unreachable virtual host is named",
		func() bool { return slices.Equal(f.server.Unreachable(), []string{"no-such-virtual-host"}) })
	if !f.server.Connected() {
		t.Error(
			"one of two virtual hosts is unreachable: the server reports that it is not connected, want connected",
		)
	}
	all, err := f.Agents.VirtualHosts(t.Context(), "cmp2")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []uuid.UUID{registered.ID, all[0].ID} {
		if _, err := f.Agents.RemoveVirtualHost(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "nothing consumes in a virtual host that is no longer registered", func() bool {
		q, err := f.client.QueueDeclarePassive("q-plugin", false, false, false, false, nil)
		return err == nil && q.Consumers == 0
	})
}

// Hosts can get their virtual hosts one after the other: the others still use the virtual host of the
// broker's URL.
func TestServer_ServesMainAndRegisteredVirtualHosts(t *testing.T) {
	t.Parallel()
	main, vhost := newVirtualHost(t), newVirtualHost(t)
	s := storetest.New(t)
	registry := startServer(t, s, main)
	if _, err := s.Agents.AddVirtualHost(t.Context(), "cmp2", path.Base(vhost), nil); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{main, vhost} {
		f := &senderFixture{fixture: fixture{Store: s}, client: newRawClient(t, url), registry: registry}
		eventually(t, "the server consumes in "+path.Base(url), func() bool {
			q, err := newRawClient(t, url).QueueDeclarePassive("q-plugin", false, false, false, false, nil)
			return err == nil && q.Consumers > 0
		})
		want := map[string]string{main: "", vhost: "NotAuthorized"}[url]
		if result, exception := f.call(t, "tunnel_sync", `{"tunnel_ip":"192.0.2.1","tunnel_type":"vxlan","host":"cmp1"}`); exception != want {
			t.Errorf("tunnel_sync of cmp1 in %s: got %s, exception %q; want %q",
				path.Base(url), result, exception, want)
		}
	}
}
