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
	"berth/internal/network"
	"berth/internal/odl/odltest"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// startServer serves an HTTP handler until the test ends, and returns its URL.
func startServer(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// mirrorFixture is a store, a simulated controller, and the activities between them. The test calls the
// activities as the workflows do.
type mirrorFixture struct {
	*testing.T
	url           string // of the database
	controllerURL string
	store         *store.Store
	odl           *odltest.Controller
	acts          *activities.Activities
}

func newMirrorFixture(t *testing.T) *mirrorFixture {
	t.Helper()
	m := &mirrorFixture{T: t, url: storetest.URL(t), odl: odltest.New()}
	var err error
	if m.store, err = store.Open(t.Context(), m.url, storetest.Config()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.store.Close)
	m.controllerURL = startServer(t, m.odl) + odltest.BasePath
	m.acts = m.newActivities()
	return m
}

// newActivities returns activities as another process has them, with the same database and the same
// controller. The circuit breaker of that process is closed.
func (m *mirrorFixture) newActivities() *activities.Activities {
	m.Helper()
	client, err := newClient(m.controllerURL)
	if err != nil {
		m.Fatal(err)
	}
	client.ShareBreaker(m.store.Journal.Breaker(m.controllerURL))
	return newActivities(activities.Options{Store: m.store, ODL: client})
}

func ptr[T any](v T) *T { return &v }

// createNetworks creates n networks with a subnet and two ports each.
func (m *mirrorFixture) createNetworks(n int) (networks []network.Network) {
	m.Helper()
	for i := range n {
		made, err := m.store.Network.CreateNetworks(m.Context(),
			[]network.NetworkChange{{Name: ptr(fmt.Sprint("net-", i)), Project: ptr("demo")}})
		if err != nil {
			m.Fatal(err)
		}
		networks = append(networks, made...)
		if _, err := m.store.Network.CreateSubnets(m.Context(), []network.SubnetChange{{
			Network:   &made[0].ID,
			Project:   ptr("demo"),
			IPVersion: ptr(4),
			CIDR:      ptr(netip.MustParsePrefix("10.0.0.0/24")),
		}}); err != nil {
			m.Fatal(err)
		}
		port := network.PortChange{Network: &made[0].ID, Project: ptr("demo"), SecurityGroups: &[]uuid.UUID{}}
		if _, err := m.store.Network.CreatePorts(m.Context(), []network.PortChange{port, port}); err != nil {
			m.Fatal(err)
		}
	}
	return networks
}

// drainJournal tries all open entries until none makes progress.
func (m *mirrorFixture) drainJournal() {
	m.Helper()
	for again := true; again; {
		again = false
		for _, state := range []journal.State{journal.Processing, journal.Pending} {
			entries, err := m.store.Journal.JournalEntries(m.Context(),
				journalstore.EntryFilter{State: state, Limit: 10_000})
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

// endRetryDelays ends the pauses between the attempts of all entries.
func (m *mirrorFixture) endRetryDelays() {
	m.Helper()
	storetest.Exec(m, m.url, `update journal_entry set retry_at = null`)
}

func (m *mirrorFixture) startRun(kind string, plan int64) journal.Run {
	m.Helper()
	r, err := m.store.Mirror.StartRun(m.Context(), journal.Run{
		Kind:   kind,
		Plan:   plan,
		Actor:  "ann",
		Reason: "a test",
	})
	if err != nil {
		m.Fatal(err)
	}
	return r
}

// finishRun performs the steps of a run and tries the open entries until the run has ended.
func (m *mirrorFixture) finishRun(r journal.Run) journal.Run {
	m.Helper()
	for range 200 {
		p, err := m.acts.StepRun(m.Context(), r.Kind)
		if err != nil {
			m.Fatal(err)
		}
		if p.Delay > 0 {
			m.endRetryDelays()
			m.drainJournal()
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
		m.Fatalf("the run has not ended after 200 steps: %s", r.Sentence())
	}
	return r
}

// checkInSync checks that an audit finds no difference, and that the controller received all requests in the
// right order.
func (m *mirrorFixture) checkInSync() {
	m.Helper()
	if r := m.finishRun(m.startRun(contract.KeyAudit, 0)); r.Note != "0 missing, 0 different, 0 extra" {
		m.Errorf("audit of the controller: got %q, want no difference", r.Sentence())
	}
	if v := m.odl.Violations(); len(v) > 0 {
		m.Errorf("the controller received requests in the wrong order: %s",
			strings.Join(v[:min(len(v), 5)], "; "))
	}
}

// recordChanges records journal entries for objects that berth has no API for.
func (m *mirrorFixture) recordChanges(changes ...journal.Change) {
	m.Helper()
	if _, err := m.store.Journal.RecordChanges(m.Context(), changes); err != nil {
		m.Fatal(err)
	}
}

func newChange(op journal.Operation, typ, id string, attributes map[string]any) journal.Change {
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

// createEveryType records the creation of one object of each type that berth has no API for. The objects
// refer to each other.
func (m *mirrorFixture) createEveryType(net network.Network) {
	m.Helper()
	ports, err := m.store.Network.Ports(m.Context(), db.Listing{})
	if err != nil || len(ports) < 2 {
		m.Fatalf("list the ports of the test: got %d ports, error %v; want at least 2 and no error",
			len(ports), err)
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
		return newChange(journal.Create, typ, id(typ), attributes)
	}
	type o = map[string]any
	changes := []journal.Change{
		add("policy", o{
			"project_id": "demo",
			"rules":      []o{{"id": id("rule"), "type": "bandwidth_limit", "max_kbps": 7}},
		}),
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
		add("portchain", o{
			"port_pair_groups": []string{id("portpairgroup")},
			"flow_classifiers": []string{id("flowclassifier")},
		}),
		add("bgpvpn", o{"networks": []string{net.ID.String()}, "routers": []string{id("router")}}),
		add("loadbalancer", o{"vip_port_id": p}),
		add("listener", o{"loadbalancers": []o{{"id": id("loadbalancer")}}}),
		add("pool", o{"listeners": []o{{"id": id("listener")}}}),
		add("member", o{"pool_id": id("pool")}),
		add("healthmonitor", o{"pools": []o{{"id": id("pool")}}}),
	}
	m.recordChanges(changes...)
	if known := journal.Types(); len(changes)+3 != len(known) {
		m.Fatalf("the test creates only %d of %d object types, want all", len(changes)+3, len(known))
	}
}

// appliedWrites counts the requests that the controller has applied, by HTTP method. It skips the first
// `since` requests.
func (m *mirrorFixture) appliedWrites(since int) map[string]int {
	counts := map[string]int{}
	for _, s := range m.odl.Requests()[since:] {
		if s.Applied {
			counts[s.Method]++
		}
	}
	return counts
}

func (m *mirrorFixture) journalEntry(seq int64) journal.Entry {
	m.Helper()
	e, _, _, err := m.store.Journal.JournalEntry(m.Context(), seq)
	if err != nil {
		m.Fatal(err)
	}
	return e
}

// failEntries makes the controller answer all requests for a type with the given status until their entries
// are failed.
func (m *mirrorFixture) failEntries(typ string, status int) {
	m.Helper()
	m.odl.InjectFaults(odltest.Fault{Type: typ, Status: status, Times: 1000})
	for range 6 {
		m.endRetryDelays()
		m.drainJournal()
	}
	m.odl.ClearFaults()
}

func (m *mirrorFixture) stepRun(kind string) (contract.RunProgress, error) {
	return m.acts.StepRun(m.Context(), kind)
}

// onePort returns drafts with one port on the network.
func onePort(n network.Network, project string) []network.PortChange {
	return []network.PortChange{{Network: &n.ID, Project: &project}}
}
