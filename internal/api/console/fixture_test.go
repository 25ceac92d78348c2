package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/api/blazar"
	"berth/internal/api/console"
	"berth/internal/api/neutron"
	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/network"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/outbox"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

func ptr[T any](v T) *T { return &v }

// hostileName is a name that would run a script if a page did not escape it.
const hostileName = `<img src=x onerror="document.title='hacked'">`

// estate is a database with objects of every kind, and the console that shows them.
type estate struct {
	*store.Store
	t        testing.TB
	url      string // of the database
	live     *console.Live
	projects *console.Live     // the live pages of projects
	rules    map[string]string // the text of an operator's policy file, by a rule that it changes
	network  uuid.UUID
	web      network.Port // waits for its agents
	provider string       // of the host node-1
	server   string       // provider of the host node-2, from which the device of `web` has allocations
	host     lease.Host   // node-1
	gold     lease.Lease  // active in the future
	trunk    network.Trunk
}

// newEstate creates agents, ports that wait, hosts with leases, and journal entries of each state.
func newEstate(t testing.TB) *estate {
	t.Helper()
	e := &estate{t: t, url: storetest.URL(t), live: console.NewLive(), projects: console.NewProjectLive()}
	for _, l := range []*console.Live{e.live, e.projects} {
		l.Timeout = time.Hour // the machine that runs the tests may be slow
		t.Cleanup(l.Stop)
	}
	e.Store = storetest.Open(t, e.url)
	for host, agent := range map[string]string{"cmp-1": network.OVSAgent, "cmp-2": network.OVSAgent, "net-1": network.DHCPAgent} {
		_, err := e.Network.ReportState(t.Context(),
			network.AgentState{Type: agent, Host: host, Configurations: json.RawMessage(`{}`)})
		e.check(err)
	}
	networks, err := e.Network.CreateNetworks(t.Context(),
		[]network.NetworkChange{{Project: ptr("demo"), Name: ptr("blue")}})
	e.check(err)
	e.network = networks[0].ID
	_, err = e.Network.CreateSubnets(t.Context(), []network.SubnetChange{
		{Network: &e.network, Project: ptr("demo"), CIDR: ptr(netip.MustParsePrefix("10.1.0.0/24"))},
	})
	e.check(err)
	e.web = e.createPort("web", "cmp-1")
	e.createPort("db", "cmp-2")
	e.createPort(hostileName, "cmp-2")
	e.createPort("lonely", "cmp-9")
	for i := range 4 {
		name := fmt.Sprintf("node-%d", i+1)
		p := storetest.AddHost(t, e.Store, name, map[string]inventory.Inventory{
			"VCPU":      inventory.NewInventory(16),
			"MEMORY_MB": inventory.NewInventory(65536),
			"DISK_GB":   inventory.NewInventory(500),
		})
		h, err := e.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: name}, nil)
		e.check(err)
		switch i {
		case 0:
			e.provider, e.host = p, h
		case 1:
			e.server = p
		}
	}
	for i, name := range []string{"gold", "silver", "night batch", "training"} {
		begin := time.Now().Add(time.Duration(2+11*i) * time.Hour)
		l := e.createLease(name, begin, begin.Add(time.Duration(6+5*i)*time.Hour), 1+i%2)
		if i == 0 {
			e.gold = l
		}
	}
	_, err = e.Network.UpdatePort(t.Context(), e.web.ID,
		network.PortChange{Description: ptr("web server")}, nil)
	e.check(err)
	if _, err := e.Inventory.SetAggregates(t.Context(), e.provider, nil, ptr(int64(99))); err == nil {
		t.Fatal("a write with another generation: got no conflict")
	}
	e.check(e.Inventory.FlushConflicts(t.Context()))
	storetest.Exec(t, e.url,
		`update journal_entry set state = 'completed', finished_at = created_at + seq * interval '40 milliseconds' where seq = 1`)
	storetest.Exec(t, e.url,
		`update journal_entry set state = 'failed', attempt = 3, failures = 3, taken_at = now(), last_error = 'the controller answered 400' where seq = 5`)
	storetest.Exec(t, e.url, `delete from journal_dep where waits_for = 1 or entry = 5`)
	e.check(e.Outbox.SaveComparison(t.Context(), outbox.Projection{Name: outbox.Executions, Compared: 19}))
	e.trunk = e.createTrunk("demo", e.network, "uplink")
	e.check(e.Inventory.PutAllocations(db.WithActor(t.Context(), "nova/service"), inventory.ConsumerWrite{
		Consumer:    e.web.DeviceID,
		Project:     "demo",
		User:        "ann",
		Type:        ptr("INSTANCE"),
		Expect:      inventory.ExpectAbsent(),
		Allocations: inventory.Allocations{e.server: {"VCPU": 4, "MEMORY_MB": 8192}},
	}))
	return e
}

// createTrunk creates a trunk with one subport, whose ports have no host.
func (e *estate) createTrunk(project string, on uuid.UUID, name string) network.Trunk {
	e.t.Helper()
	ports, err := e.Network.CreatePorts(e.t.Context(), []network.PortChange{
		{Project: &project, Network: &on, Name: ptr(name + "-parent")},
		{Project: &project, Network: &on, Name: ptr(name + "-subport")},
	})
	e.check(err)
	trunks, err := e.Network.CreateTrunks(e.t.Context(), []network.TrunkChange{{
		Project:  &project,
		Name:     &name,
		Port:     &ports[0].ID,
		Subports: &[]network.Subport{{Port: ports[1].ID, Type: network.VLAN, Segment: 77}},
	}})
	e.check(err)
	return trunks[0]
}

func (e *estate) check(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *estate) createPort(name, host string) network.Port {
	e.t.Helper()
	return e.createPortOf("demo", e.network, name, host)
}

func (e *estate) createPortOf(project string, on uuid.UUID, name, host string) network.Port {
	e.t.Helper()
	ports, err := e.Network.CreatePorts(e.t.Context(), []network.PortChange{{
		Project:     &project,
		Network:     &on,
		Name:        &name,
		Host:        &host,
		DeviceOwner: ptr("compute:nova"),
		DeviceID:    ptr(uuid.NewString()),
	}})
	e.check(err)
	return ports[0]
}

func (e *estate) createLease(name string, from, to time.Time, hosts int) lease.Lease {
	e.t.Helper()
	l, err := e.Lease.CreateLease(e.t.Context(), lease.Draft{
		Name:         name,
		User:         "ann",
		Project:      "demo",
		Start:        lease.RequestedDate{At: from.Truncate(time.Second)},
		End:          lease.RequestedDate{At: to.Truncate(time.Second)},
		Reservations: []lease.ReservationDraft{{Type: lease.PhysicalHost, Min: hosts, Max: hosts}},
	})
	e.check(err)
	return l
}

// policy returns the policy rules of an API: the defaults, and the estate's file for the API that has the
// given rule.
func (e *estate) policy(rule string, defaults ...policy.Default) *policy.Policy {
	e.t.Helper()
	o := policy.Options{}
	if text := e.rules[rule]; text != "" {
		o.File = filepath.Join(e.t.TempDir(), "policy.yaml")
		e.check(os.WriteFile(o.File, []byte(text), 0o600))
	}
	p, err := policy.Open(o, defaults...)
	e.check(err)
	return p
}

// console returns the console of the estate.
func (e *estate) console(id identity.Authenticator) *osapi.API {
	return console.New(console.Options{
		Network:     e.Network,
		Journal:     e.Journal,
		Lease:       e.Lease,
		Inventory:   e.Inventory,
		Outbox:      e.Outbox,
		Mirror:      e.Mirror,
		Report:      e.Report,
		Identity:    id,
		Ports:       neutron.NewPortReader(e.Network, e.policy("get_port", neutron.Policy...)),
		Trunks:      neutron.NewTrunkReader(e.Network, e.policy("get_trunk", neutron.Policy...)),
		Leases:      blazar.LeaseReader{Store: e.Lease, Policy: e.policy("blazar:leases:get", blazar.Policy...)},
		Live:        e.live,
		ProjectLive: e.projects,
		TemporalUI:  "http://temporal.example:8233",
		Namespace:   "default",
	})
}

// request is a request to the console.
type request struct {
	method, path, body string
	header             http.Header
}

// browser returns the headers with which a browser asks for a document. If a token is given, they contain its
// cookie.
func browser(token string) http.Header {
	h := http.Header{
		"Accept":         {"text/html,application/xhtml+xml,*/*;q=0.8"},
		"Sec-Fetch-Site": {"same-origin"},
	}
	if token != "" {
		h.Set("Cookie", "berth_console="+encode(token))
	}
	return h
}

// send sends a request to the console, and returns the answer with its body.
func (e *estate) send(h http.Handler, q request) (*http.Response, string) {
	e.t.Helper()
	r := httptest.NewRequestWithContext(e.t.Context(), q.method, q.path, strings.NewReader(q.body))
	for name, values := range q.header {
		r.Header[name] = values
	}
	if q.method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	e.check(err)
	return w.Result(), string(body)
}

// paths returns the path of every page of the console, with an object of the estate.
func (e *estate) paths() map[string]string {
	return map[string]string{
		"waiting":         "/console/",
		"calendar":        "/console/calendar",
		"overview":        "/console/calendar?hosts=100&zoom=90+days",
		"journal":         "/console/journal",
		"projections":     "/console/projections",
		"conflicts":       "/console/conflicts",
		"waiting objects": "/console/waiting/agent?host=cmp-2&name=L2",
		"named ports":     "/console/ports?name=db",
		"port":            "/console/ports/" + e.web.ID.String(),
		"trunk":           "/console/trunks/" + e.trunk.ID.String(),
		"lease":           "/console/leases/" + e.gold.ID.String(),
		"entry":           "/console/entries/5",
		"host":            fmt.Sprintf("/console/hosts/%d", e.host.ID),
		"provider":        "/console/providers/" + e.provider,
		"consumer":        "/console/consumers/" + e.web.DeviceID,
		"pause":           "/console/journal/pause",
	}
}
