package activities_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/activities"
	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/lease"
	"berth/internal/network"
	"berth/internal/odl"
	"berth/internal/odl/odltest"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// served is where a neighbour answers for as long as the test runs.
func served(t *testing.T, neighbour http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(neighbour)
	t.Cleanup(server.Close)
	return server.URL
}

// mirror is a store, a controller, and the activities between them. Workflows are played by the test.
type mirror struct {
	*testing.T
	url   string
	north string // URL of the controller
	store *store.Store
	odl   *odltest.Controller
	acts  *activities.Activities
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	m := &mirror{T: t, url: storetest.URL(t), odl: odltest.New()}
	var err error
	if m.store, err = store.Open(t.Context(), m.url, store.Config{Lease: leasestore.Config{Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.store.Close)
	m.north = served(t, m.odl) + odltest.BasePath
	m.acts = m.anew()
	return m
}

// anew is another process before the same rows and the same controller, which knows of no trouble.
func (m *mirror) anew() *activities.Activities {
	m.Helper()
	client, err := odl.New(odl.Config{URL: m.north})
	if err != nil {
		m.Fatal(err)
	}
	client.ShareBreaker(m.store.Journal.Breaker(m.north))
	return activities.New(activities.Options{Store: m.store, ODL: client})
}

func ptr[T any](v T) *T { return &v }

// grow makes n networks with a subnet and two ports each.
func (m *mirror) grow(n int) (networks []network.Network) {
	m.Helper()
	for i := range n {
		made, err := m.store.Network.CreateNetworks(m.Context(), []network.NetworkChange{{Name: ptr(fmt.Sprint("net-", i)), Project: ptr("demo")}})
		if err != nil {
			m.Fatal(err)
		}
		networks = append(networks, made...)
		if _, err := m.store.Network.CreateSubnets(m.Context(), []network.SubnetChange{{Network: &made[0].ID, Project: ptr("demo"), IPVersion: ptr(4), CIDR: ptr(netip.MustParsePrefix("10.0.0.0/24"))}}); err != nil {
			m.Fatal(err)
		}
		port := network.PortChange{Network: &made[0].ID, Project: ptr("demo"), SecurityGroups: &[]uuid.UUID{}}
		if _, err := m.store.Network.CreatePorts(m.Context(), []network.PortChange{port, port}); err != nil {
			m.Fatal(err)
		}
	}
	return networks
}

// drain plays the workflows of all entries until none can go on.
func (m *mirror) drain() {
	m.Helper()
	for again := true; again; {
		again = false
		for _, state := range []journal.State{journal.Processing, journal.Pending} {
			entries, err := m.store.Journal.JournalEntries(m.Context(), journalstore.EntryFilter{State: state, Limit: 10_000})
			if err != nil {
				m.Fatal(err)
			}
			for _, e := range entries {
				p, err := m.acts.TryEntry(m.Context(), fmt.Sprint(e.Seq))
				if err != nil {
					m.Fatal(err)
				}
				again = again || p.State != string(journal.Pending)
			}
		}
	}
}

// rested ends the pauses between attempts.
func (m *mirror) rested() {
	m.Helper()
	storetest.Exec(m, m.url, `update journal_entry set retry_at = null`)
}

func (m *mirror) start(kind string, plan int64) journal.Run {
	m.Helper()
	r, err := m.store.Mirror.StartRun(m.Context(), journal.Run{Kind: kind, Plan: plan, Actor: "ann", Reason: "a test"})
	if err != nil {
		m.Fatal(err)
	}
	return r
}

// finish plays the workflow of a run, and those of the entries beside it, until the run has ended.
func (m *mirror) finish(r journal.Run) journal.Run {
	m.Helper()
	for range 200 {
		p, err := m.acts.StepRun(m.Context(), r.Kind)
		if err != nil {
			m.Fatal(err)
		}
		if p.Delay > 0 {
			m.rested()
			m.drain()
		}
		if p.State != string(journal.Running) {
			break
		}
	}
	r, err := m.store.Mirror.Run(m.Context(), r.ID)
	if err != nil {
		m.Fatal(err)
	}
	if r.State == journal.Running {
		m.Fatalf("the run does not end: %s", r.Sentence())
	}
	return r
}

// equal compares what the controller has with the rows, by an audit, and looks for breaches of the order.
func (m *mirror) equal() {
	m.Helper()
	if r := m.finish(m.start(contract.KeyAudit, 0)); r.Note != "0 missing, 0 different, 0 extra" {
		m.Errorf("%s", r.Sentence())
	}
	if v := m.odl.Violations(); len(v) > 0 {
		m.Errorf("the order was broken: %s", strings.Join(v[:min(len(v), 5)], "; "))
	}
}

// foreign records changes of objects that berth has no API for.
func (m *mirror) foreign(changes ...journal.Change) {
	m.Helper()
	if _, err := m.store.Journal.RecordChanges(m.Context(), changes); err != nil {
		m.Fatal(err)
	}
}

func object(op journal.Operation, typ, id string, attributes map[string]any) journal.Change {
	o := map[string]any{"id": id}
	for k, v := range attributes {
		o[k] = v
	}
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return journal.Change{Object: journal.Ref{Type: typ, ID: id}, Operation: op, Data: raw}
}

// everyType makes an object of every type that berth has no API for, which hang together.
func (m *mirror) everyType(net network.Network) {
	m.Helper()
	ports, err := m.store.Network.Ports(m.Context(), db.Listing{})
	if err != nil || len(ports) < 2 {
		m.Fatalf("%d ports, %v", len(ports), err)
	}
	ids := map[string]string{}
	id := func(name string) string {
		if ids[name] == "" {
			ids[name] = uuid.NewString()
		}
		return ids[name]
	}
	p, q := ports[0].ID.String(), ports[1].ID.String()
	add := func(typ string, attributes map[string]any) journal.Change {
		return object(journal.Create, typ, id(typ), attributes)
	}
	type o = map[string]any
	changes := []journal.Change{
		add("policy", o{"project_id": "demo", "rules": []o{{"id": id("rule"), "type": "bandwidth_limit", "max_kbps": 7}}}),
		add("security_group", o{"name": "web"}),
		add("security_group_rule", o{"security_group_id": id("security_group"), "protocol": "tcp"}),
		add("router", o{"name": "edge", "gw_port_id": p, "external_gateway_info": o{"network_id": net.ID}}),
		add("floatingip", o{"floating_network_id": net.ID, "router_id": id("router"), "port_id": q}),
		add("trunk", o{"port_id": p, "sub_ports": []o{{"port_id": q}}}),
		add("l2_gateway", o{"name": "g"}),
		add("l2gateway_connection", o{"network_id": net.ID, "l2_gateway_id": id("l2_gateway")}),
		add("flowclassifier", o{"logical_source_port": p}),
		add("portpair", o{"ingress": p, "egress": q}),
		add("portpairgroup", o{"port_pairs": []string{id("portpair")}}),
		add("portchain", o{"port_pair_groups": []string{id("portpairgroup")}, "flow_classifiers": []string{id("flowclassifier")}}),
		add("bgpvpn", o{"networks": []string{net.ID.String()}, "routers": []string{id("router")}}),
		add("loadbalancer", o{"vip_port_id": p}),
		add("listener", o{"loadbalancers": []o{{"id": id("loadbalancer")}}}),
		add("pool", o{"listeners": []o{{"id": id("listener")}}}),
		add("member", o{"pool_id": id("pool")}),
		add("healthmonitor", o{"pools": []o{{"id": id("pool")}}}),
	}
	m.foreign(changes...)
	if known := journal.Types(); len(changes)+3 != len(known) {
		m.Fatalf("%d types of %d", len(changes)+3, len(known))
	}
}

// took counts the writes that the controller has applied since its log had that length, by verb.
func (m *mirror) took(since int) map[string]int {
	counts := map[string]int{}
	for _, s := range m.odl.Requests()[since:] {
		if s.Applied {
			counts[s.Method]++
		}
	}
	return counts
}

func (m *mirror) entry(seq int64) journal.Entry {
	m.Helper()
	e, _, _, err := m.store.Journal.JournalEntry(m.Context(), seq)
	if err != nil {
		m.Fatal(err)
	}
	return e
}

// fail lets the entries of that type fail for good.
func (m *mirror) fail(typ string, status int) {
	m.Helper()
	m.odl.InjectFaults(odltest.Fault{Type: typ, Status: status, Times: 1000})
	for range 6 {
		m.rested()
		m.drain()
	}
	m.odl.ClearFaults()
}

func (m *mirror) step(kind string) (contract.RunProgress, error) {
	return m.acts.StepRun(m.Context(), kind)
}

// portsOf is a draft of one port on that network.
func portsOf(n network.Network, project string) []network.PortChange {
	return []network.PortChange{{Network: &n.ID, Project: &project}}
}
