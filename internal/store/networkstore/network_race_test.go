package networkstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// together runs f(0) to f(n-1) concurrently and waits for all.
func together(n int, f func(i int)) {
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

func TestPort_ConcurrentLastReportsActivateOnce(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/16")
	for round := range 60 {
		p := g.port(cmp1)
		reports := []network.Report{l2on1, dhcpOK, l2on1, dhcpOK}
		active := make([]bool, len(reports))

		together(len(reports), func(i int) {
			var s network.StatusView
			var err error
			if i%2 == 0 {
				s, err = g.Network.ReportPort(t.Context(), p.ID, reports[i:i+1])
			} else {
				s, err = g.Network.UpdatePortStatus(t.Context(), p.ID, reports[i:i+1])
			}
			if err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			active[i] = s.Status == network.Active && s.Accepted[0]
		})

		last := 0
		for _, a := range active {
			if a {
				last++
			}
		}
		s := g.settle(p.ID)
		if last != 1 || s.Status != network.Active || s.IgnoredReports != 2 {
			t.Fatalf("round %d: %d reports were the last one, then %+v", round, last, s)
		}
		if d := cmp.Diff([]string{"network-vif-plugged"}, events(s)); d != "" {
			t.Fatalf("round %d: %s", round, d)
		}
	}
}

func TestAddress_LastFreeAddressIsAllocatedOnce(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/28") // 13 addresses
	const contenders = 20
	var mutex sync.Mutex
	won, lost := map[string]bool{}, 0

	together(contenders, func(int) {
		ports, err := g.Network.CreatePorts(t.Context(), []network.PortChange{g.draft("")})
		mutex.Lock()
		defer mutex.Unlock()
		switch {
		case err == nil:
			won[ports[0].Addresses[0].IP.String()] = true
		case kind(err) == network.IPAddressGenerationFailure:
			lost++
		default:
			t.Error(err)
		}
	})

	if len(won) != 13 || lost != contenders-13 {
		t.Errorf("%d addresses handed out, %d refusals", len(won), lost)
	}
}

func TestAddress_SameAddressOrMACIsAllocatedOnce(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	for what, more := range map[network.Kind]func(*network.PortChange){
		network.AddressInUse: at("10.0.0.77"),
		network.MACInUse:     func(c *network.PortChange) { c.MAC = ptr("fa:16:3e:00:00:01") },
	} {
		results := make([]error, 8)
		together(len(results), func(i int) {
			_, results[i] = g.Network.CreatePorts(t.Context(), []network.PortChange{g.draft("", more)})
		})
		winners := 0
		for _, err := range results {
			if err == nil {
				winners++
			} else if kind(err) != what {
				t.Errorf("%s: %v", what, err)
			}
		}
		if winners != 1 {
			t.Errorf("%s: %d winners", what, winners)
		}
	}
}

func TestAddress_ConcurrentBulksFillSubnet(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	const clients, each = 12, 21 // one address of 253 is left
	results := make([]error, clients)
	drafts := slices.Repeat([]network.PortChange{g.draft("")}, each)

	together(clients, func(i int) { _, results[i] = g.Network.CreatePorts(t.Context(), drafts) })

	if err := errors.Join(results...); err != nil {
		t.Error(err)
	}
	taken, err := g.Network.AddressesTaken(t.Context(), []uuid.UUID{g.network.ID})
	if diff := cmp.Diff(map[uuid.UUID]int64{g.subnet.ID: clients * each}, taken); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := g.Network.CreatePorts(t.Context(), drafts[:1]); err != nil {
		t.Error("the last one:", err)
	}
	if _, err := g.Network.CreatePorts(t.Context(), drafts[:1]); kind(err) != network.IPAddressGenerationFailure {
		t.Error("one more:", err)
	}
}

func TestAgent_ConcurrentFirstHeartbeatsRegisterOnce(t *testing.T) {
	t.Parallel()
	g := ground{Store: storetest.New(t), t: t}
	results := make([]string, 16)
	together(len(results), func(i int) { results[i] = g.heartbeat(network.OVSAgent, cmp1) })

	news := 0
	for _, r := range results {
		if r == network.AgentNew {
			news++
		}
	}
	agents, err := g.Network.Agents(t.Context(), db.Listing{})
	if err != nil || len(agents) != 1 || news != 1 {
		t.Errorf("%d agents, %d times new, error %v", len(agents), news, err)
	}
}

func TestAgent_DownAndRevived(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	g := ground{Store: s, t: t}
	g.heartbeat(network.DHCPAgent, net1)
	storetest.Exec(t, url, `update agent set heartbeat_at = heartbeat_at - interval '76 seconds'`)

	if g.agent(network.DHCPAgent).Alive {
		t.Error("a silent agent is alive")
	}
	g = g.laid("10.0.0.0/24")
	if p := g.port(""); len(p.Blocks) != 0 {
		t.Errorf("a dead agent got the network: %v", entities(p.Blocks))
	}
	if r := g.heartbeat(network.DHCPAgent, net1); r != network.AgentRevived {
		t.Errorf("the agent is %s", r)
	}
	if p := g.port(""); len(p.Blocks) != 1 {
		t.Errorf("the next port does not wait for DHCP: %v", entities(p.Blocks))
	}
}

// counts is how many rows each table has that a request about ports may write.
func counts(t *testing.T, url string) string {
	t.Helper()
	var text string
	err := storetest.Connect(t, url).QueryRow(t.Context(), `
		select jsonb_build_object('network', (select count(*) from network), 'subnet', (select count(*) from subnet),
			'port', (select count(*) from port), 'address', (select count(*) from port_address),
			'block', (select count(*) from block), 'event', (select count(*) from nova_event),
			'binding', (select count(*) from dhcp_binding), 'journal', (select count(*) from journal_entry),
			'note', (select count(*) from note))::text`).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPort_FailedCreateLeavesNoRows(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	g := ground{Store: s, t: t}
	g.heartbeat(network.OVSAgent, cmp1)
	g = g.laid("10.0.0.0/29")
	g.heartbeat(network.DHCPAgent, net1)
	before := counts(t, url)

	_, err := g.Network.CreatePorts(t.Context(), []network.PortChange{g.draft(cmp1), g.draft(cmp1, at("10.0.0.7"))})

	if kind(err) != network.InvalidIPForNetwork {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff(before, counts(t, url)); d != "" {
		t.Error(d)
	}
}

func TestChanges_AreJournaledAndEnqueueNotes(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	g := ground{Store: s, t: t}
	g.heartbeat(network.OVSAgent, cmp1)
	g = g.laid("10.0.0.0/24")
	p := g.port(cmp1)
	p = g.update(p.ID, network.PortChange{Name: ptr("web-2")})
	g.update(p.ID, network.PortChange{Name: ptr("web-2")})
	g.settle(p.ID, l2on1)
	if err := g.Network.DeletePort(t.Context(), p.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := g.Network.DeleteNetwork(t.Context(), g.network.ID, nil); err != nil {
		t.Fatal(err)
	}

	rows, err := storetest.Connect(t, url).Query(t.Context(), `select object_type, operation, data, parents from journal_entry order by seq`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rows.Next() {
		var kind, operation string
		var data json.RawMessage
		var parents []string
		if err := rows.Scan(&kind, &operation, &data, &parents); err != nil {
			t.Fatal(err)
		}
		var body struct {
			ID        string `json:"id"`
			ProjectID string `json:"project_id"`
			Revision  *int64 `json:"revision_number"`
		}
		if err := json.Unmarshal(data, &body); err != nil || body.ID == "" || body.ProjectID != "p" || body.Revision == nil {
			t.Errorf("%s %s: %s %v", kind, operation, data, err)
		}
		got = append(got, fmt.Sprintf("%s %s %d parents at %d", kind, operation, len(parents), *body.Revision))
	}
	if d := cmp.Diff([]string{
		"network create 0 parents at 1", "subnet create 1 parents at 0",
		"security_group create 0 parents at 1", "security_group_rule create 1 parents at 1", "security_group_rule create 1 parents at 1",
		"security_group_rule create 1 parents at 1", "security_group_rule create 1 parents at 1",
		"port create 3 parents at 1", "port update 3 parents at 2", "port delete 3 parents at 3", "subnet delete 1 parents at 0", "network delete 0 parents at 1",
	}, got); d != "" {
		t.Error(d)
	}
	var fresh bool
	var summary string
	if err := storetest.Connect(t, url).QueryRow(t.Context(), `select fresh, summary from note where workflow_id = $1`, "port/"+p.ID.String()).
		Scan(&fresh, &summary); err != nil || !fresh || summary != "port web-1 on cmp-1" {
		t.Errorf("the port's note: fresh %v, %q, error %v", fresh, summary, err)
	}
}

func TestDHCPSchedule_UnscheduleDuringPortCreate(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/16")
	agent := g.agent(network.DHCPAgent).ID
	enabled := func(up bool) {
		t.Helper()
		if _, err := g.Network.UpdateAgent(t.Context(), agent, network.AgentChange{AdminUp: &up}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 30 {
		enabled(false) // so that no new port gives it the network back
		together(5, func(i int) {
			if i > 0 {
				g.port(cmp1)
			} else if err := g.Network.UnscheduleNetwork(t.Context(), agent, g.network.ID); err != nil {
				t.Error(err)
			}
		})
		ports, err := g.Network.Ports(t.Context(), db.Listing{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			if d := cmp.Diff([]string{"L2@cmp-1"}, entities(p.Blocks)); d != "" {
				t.Fatalf("round %d: %s", round, d)
			}
		}
		enabled(true) // and it takes the network
	}
}

func TestAddress_UpdateFixedIPs(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p := g.port(cmp1, at("10.0.0.9"))
	g.settle(p.ID, l2on1, dhcpOK)
	subnet := func(c *network.PortChange) { c.FixedIPs = &[]network.FixedIP{{Subnet: g.subnet.ID}} }
	var keep network.PortChange
	subnet(&keep)

	if kept := g.update(p.ID, keep); kept.Addresses[0].IP.String() != "10.0.0.9" || kept.Status != network.Active || kept.Revision != 2 {
		t.Errorf("asked for what it has: %+v", kept)
	}
	var move network.PortChange
	at("10.0.0.10")(&move)
	moved := g.update(p.ID, move)
	if d := cmp.Diff([]string{"DHCP@"}, entities(moved.Blocks)); d != "" || moved.Status != network.Down {
		t.Errorf("a new address is not announced yet: %s %s", moved.Status, d)
	}
	g.port("", at("10.0.0.9"))
	if err := g.Network.DeleteSubnet(t.Context(), g.subnet.ID, nil); kind(err) != network.SubnetInUse {
		t.Errorf("deleted a subnet in use: %v", err)
	}
}
