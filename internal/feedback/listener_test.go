package feedback_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/feedback"
	"berth/internal/journal"
	"berth/internal/network"
	"berth/internal/odl"
	"berth/internal/odl/odltest"
	"berth/internal/store"
	"berth/internal/store/db"
	"berth/internal/store/journalstore"
	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// hostConfig is the OpenDaylight host configuration of a host with Open vSwitch.
const hostConfig = `{"allowed_network_types":["local","vxlan"],"bridge_mappings":{},"supported_vnic_types":[
	{"vnic_type":"normal","vif_type":"ovs","vif_details":{"port_filter":true}},
	{"vnic_type":"direct","vif_type":"vhostuser","vif_details":{"port_prefix":"vhu","vhostuser_socket":"/run/vhu$PORT_ID"}}]}`

// fixture is a store, a controller that binds ports on cmp-1, and a listener.
type fixture struct {
	*testing.T
	url      string
	store    *store.Store
	odl      *odltest.Controller
	client   *odl.Client
	net      uuid.UUID
	listener *feedback.Listener
}

// features are the features of a controller that reports the status of ports.
var features = map[string]string{odl.FeaturePortStatus: ""}

func newFixture(t *testing.T, every time.Duration, offered map[string]string) *fixture {
	t.Helper()
	w := &fixture{T: t, url: storetest.URL(t), odl: odltest.New()}
	var err error
	if w.store, err = store.Open(t.Context(), w.url, storetest.Config()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.store.Close)
	server := httptest.NewServer(w.odl)
	t.Cleanup(server.Close)
	if w.client, err = odl.New(odl.Config{URL: server.URL + odltest.BasePath, Timeout: time.Hour}); err != nil {
		t.Fatal(err)
	}
	w.odl.SetFeatures(offered)
	w.odl.SetHostConfigs(odltest.HostConfig{ID: "cmp-1", Type: network.ODLAgent, Config: hostConfig})
	made, err := w.store.Network.CreateNetworks(t.Context(),
		[]network.NetworkChange{{Name: new("net"), Project: new("demo")}})
	if err != nil {
		t.Fatal(err)
	}
	w.net = made[0].ID
	w.listener = w.startListener(every)
	return w
}

// startListener starts one more listener on the same database, as another process would.
func (w *fixture) startListener(every time.Duration) *feedback.Listener {
	l := feedback.New(feedback.Options{
		Lock:            w.store.DB,
		Store:           w.store.Network,
		ODL:             w.client,
		PollInterval:    every,
		HostConfigsPath: odl.HostConfigsPath,
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx)
	}()
	w.Cleanup(func() {
		cancel()
		<-ended
	})
	return l
}

func (w *fixture) awaitCondition(what string, f func() string) {
	w.Helper()
	missing := ""
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if missing = f(); missing == "" {
			return
		}
	}
	w.Fatalf("wait until %q: not so after 10 minutes; last state: %s", what, missing)
}

// awaitAgent waits until the host has a pseudo agent. If `there` is false, awaitAgent waits until the host
// has no pseudo agent.
func (w *fixture) awaitAgent(host string, there bool) {
	w.Helper()
	w.awaitCondition(fmt.Sprintf("host %s has a pseudo agent: %t", host, there), func() string {
		all, err := w.store.Network.Agents(w.Context(), db.Listing{})
		found := false
		for _, a := range all {
			found = found || a.Host == host && a.Binary == network.ODLAgentBinary
		}
		if err == nil && found == there {
			return ""
		}
		return fmt.Sprint(all, err)
	})
}

// createPort creates a port of a Nova instance on a host.
func (w *fixture) createPort(host string, more ...func(*network.PortChange)) network.Port {
	w.Helper()
	c := network.PortChange{
		Network:     &w.net,
		Project:     new("demo"),
		Host:        &host,
		DeviceOwner: new("compute:nova"),
		DeviceID:    new(uuid.NewString()),
	}
	for _, f := range more {
		f(&c)
	}
	made, err := w.store.Network.CreatePorts(w.Context(), []network.PortChange{c})
	if err != nil {
		w.Fatal(err)
	}
	return made[0]
}

// sendJournal sends the pending journal entries to the controller, as the JournalEntry workflows do.
func (w *fixture) sendJournal() {
	w.Helper()
	entries, err := w.store.Journal.JournalEntries(w.Context(),
		journalstore.EntryFilter{State: journal.Pending, Limit: 1000})
	if err != nil {
		w.Fatal(err)
	}
	slices.SortFunc(entries, func(a, b journal.Entry) int { return int(a.Seq - b.Seq) })
	for _, e := range entries {
		t, err := w.store.Journal.ClaimEntry(w.Context(), e.Seq)
		if err != nil || t.Entry.State != journal.Processing {
			w.Fatal(e.Seq, t.Entry.State, t.Blockers, err)
		}
		r, err := journal.WriteRequest(t.Entry)
		if err != nil {
			w.Fatal(err)
		}
		got, err := w.client.Send(w.Context(), odl.Request{Method: r.Method, Path: r.Path, Body: r.Body})
		o := journal.Evaluate(t.Entry,
			journal.Response{Status: got.Status, Body: got.Body}, journal.DefaultMaxFailures)
		if err != nil || o.Kind != journal.OutcomeDone {
			w.Fatal(got, o, err)
		}
		if _, err := w.store.Journal.SaveOutcome(w.Context(), e.Seq, t.Entry.Attempt, o); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *fixture) awaitPortStatus(id uuid.UUID, status string) network.Port {
	w.Helper()
	var p network.Port
	w.awaitCondition("port "+id.String()+" is "+status, func() (missing string) {
		var err error
		if p, err = w.store.Network.Port(w.Context(), id); err == nil && p.Status == status {
			return ""
		}
		return fmt.Sprint(p.Status, p.StatusView().Sentence(), err)
	})
	return p
}

func (w *fixture) awaitOpenStreams(streams int) {
	w.Helper()
	w.awaitCondition("the expected number of event streams is open", func() string {
		if n := w.odl.OpenStreams(); n != streams {
			return strconv.Itoa(n)
		}
		return ""
	})
}

// awaitIdle waits until no comparison of all ports is pending, that is, until three refreshes in a row have
// run without a comparison of all ports.
func (w *fixture) awaitIdle() {
	w.Helper()
	quiet := func() (rounds int) {
		for _, s := range w.odl.Requests() {
			switch s.Type {
			case "features":
				rounds++
			case "statuses":
				rounds = 0
			}
		}
		return rounds
	}
	w.awaitCondition("no comparison of all ports is pending", func() string {
		if n := quiet(); n < 3 {
			return strconv.Itoa(n)
		}
		return ""
	})
}

// long is a poll interval that is longer than every test.
const long = time.Hour

func TestPort_ActiveAfterControllerReportsIt(t *testing.T) {
	t.Parallel()
	w := newFixture(t, long, features)
	w.awaitAgent("cmp-1", true)
	w.awaitOpenStreams(2)

	p := w.createPort("cmp-1")
	if p.VIF != "ovs" || p.MechanismDriver() != "opendaylight" || p.Status != network.Down ||
		len(p.Blocks) != 1 {
		t.Fatalf(
			"create a port on the controller's host: got %+v, want the port DOWN with one block and bound by OpenDaylight",
			p,
		)
	}
	w.sendJournal()
	w.odl.SetPortStatus(p.ID.String(), "ACTIVE")
	w.awaitPortStatus(p.ID, network.Active)
	w.odl.SetPortStatus(p.ID.String(), "DOWN")
	w.awaitPortStatus(p.ID, network.Down)
	w.odl.SetPortStatus(p.ID.String(), "ACTIVE")
	w.awaitPortStatus(p.ID, network.Active)
}

// The controller may report the status of a port before the journal entry that created the port on the
// controller is done.
func TestPort_EventBeforeJournalEntryIsDoneCounts(t *testing.T) {
	t.Parallel()
	w := newFixture(t, long, features)
	w.awaitAgent("cmp-1", true)
	w.awaitOpenStreams(2)
	known := w.createPort("cmp-1")
	w.sendJournal()
	p := w.createPort("cmp-1")
	w.odl.SetPortStatus(p.ID.String(), "ACTIVE")
	w.odl.SetPortStatus(known.ID.String(), "ACTIVE")
	w.awaitPortStatus(known.ID, network.Active) // the listener has therefore handled both events
	if got, err := w.store.Network.Port(t.Context(), p.ID); err != nil || got.Status != network.Down {
		t.Fatalf(
			"port that was not yet sent to the controller, after an ACTIVE event for it: got status %s, error %v; want DOWN",
			got.Status,
			err,
		)
	}
	w.sendJournal()
	w.awaitPortStatus(p.ID, network.Active)
}

// A status that belongs to an earlier binding of a port does not change the current binding.
func TestPort_StatusOfEarlierBindingIsIgnored(t *testing.T) {
	t.Parallel()
	w := newFixture(t, long, features)
	w.odl.SetHostConfigs(
		odltest.HostConfig{ID: "cmp-1", Type: network.ODLAgent, Config: hostConfig},
		odltest.HostConfig{ID: "cmp-2", Type: network.ODLAgent, Config: hostConfig},
	)
	w.awaitAgent("cmp-2", true)
	w.awaitOpenStreams(2)
	p, other := w.createPort("cmp-1"), w.createPort("cmp-1")
	w.sendJournal()
	w.odl.SetPortStatus(p.ID.String(), "ACTIVE")
	w.awaitPortStatus(p.ID, network.Active)

	moved, err := w.store.Network.UpdatePort(t.Context(), p.ID, network.PortChange{Host: new("cmp-2")}, nil)
	if err != nil || moved.Status != network.Down {
		t.Fatal(moved, err)
	}
	w.odl.SendRaw([]byte(
		`{"notification":{"data-changed-notification":{"data-change-event":[{"operation":"updated","path":"/neutron:neutron/neutron:ports/neutron:port[neutron:uuid='` + p.ID.String() + `']"}]}}}`,
	))
	w.odl.SetPortStatus(other.ID.String(), "ACTIVE")
	w.awaitPortStatus(other.ID, network.Active) // the listener has therefore also handled the invalid message
	if got, err := w.store.Network.Port(t.Context(), p.ID); err != nil || got.Status != network.Down {
		t.Fatalf(
			"port that moved to cmp-2, before its new binding is sent to the controller: got status %s, error %v; want DOWN",
			got.Status,
			err,
		)
	}
	w.odl.SetPortStatus(p.ID.String(), "DOWN") // as the controller does when it unbinds the port
	w.sendJournal()
	w.odl.SetPortStatus(p.ID.String(), "ACTIVE")
	if got := w.awaitPortStatus(p.ID, network.Active); got.Host != "cmp-2" {
		t.Errorf(
			"port after the controller reported the new binding ACTIVE: got %+v, want the host cmp-2",
			got,
		)
	}
}

// If the event stream is interrupted, status changes made meanwhile are read after the reconnect.
func TestListener_ComparesAllPortsAfterReconnect(t *testing.T) {
	t.Parallel()
	w := newFixture(t, time.Second, features)
	w.awaitAgent("cmp-1", true)
	w.awaitOpenStreams(2)
	down := w.createPort("cmp-1") // a port that waits for nothing is read only by a comparison
	w.sendJournal()
	w.odl.SetPortStatus(down.ID.String(), "ACTIVE")
	w.awaitPortStatus(down.ID, network.Active)

	w.awaitIdle()
	w.odl.InjectFaults(odltest.Fault{Type: "subscription", Status: 503, Times: 3},
		odltest.Fault{Type: "stream", Break: odltest.BreakReset})
	w.odl.CloseStreams(true)
	w.odl.SetPortStatus(down.ID.String(), "DOWN")

	w.awaitPortStatus(down.ID, network.Down)
	w.awaitOpenStreams(2)
}

// If the controller offers no event streams, the listener must poll the controller.
func TestListener_PollsControllerWithoutStreams(t *testing.T) {
	t.Parallel()
	w := newFixture(t, 300*time.Millisecond, features)
	w.odl.InjectFaults(odltest.Fault{Type: "subscription", Status: 404, Times: 1_000_000})
	w.odl.CloseStreams(true)
	w.awaitAgent("cmp-1", true)
	p := w.createPort("cmp-1")
	w.sendJournal()
	w.odl.SetPortStatus(p.ID.String(), "ACTIVE")
	w.awaitPortStatus(p.ID, network.Active)
}

// A port does not wait for a controller that does not report the status of ports.
func TestPort_ActiveAtOnceIfControllerReportsNoStatus(t *testing.T) {
	t.Parallel()
	w := newFixture(t, 300*time.Millisecond, nil)
	w.awaitAgent("cmp-1", true)
	if p := w.createPort("cmp-1"); p.Status != network.Active || len(p.Blocks) != 0 {
		t.Fatalf(
			"create a port while the controller reports no port status: got %+v, want the port ACTIVE without blocks",
			p,
		)
	}
	w.odl.SetFeatures(features) // the controller gets the feature
	w.awaitOpenStreams(2)
	w.awaitCondition("new ports wait for the controller's status", func() string {
		if p := w.createPort("cmp-1"); p.Status == network.Down {
			return ""
		}
		return "the new port is not DOWN"
	})
	waits := w.createPort("cmp-1")
	w.odl.SetFeatures(map[string]string{"qos-rules": "x"}) // the controller loses the feature
	w.awaitPortStatus(waits.ID, network.Active)
}

func TestHostConfigs_CreateUpdateAndDeleteAgents(t *testing.T) {
	t.Parallel()
	w := newFixture(t, long, features)
	w.awaitAgent("cmp-1", true)
	w.awaitOpenStreams(2)
	waits := w.createPort("cmp-9")
	if waits.VIF != network.VIFFailed {
		t.Fatalf(
			"create a port on a host without a host configuration: got %+v, want VIF type binding_failed",
			waits,
		)
	}

	w.odl.SetHostConfigs(
		odltest.HostConfig{ID: "cmp-9", Type: network.ODLAgent, Config: hostConfig},
		odltest.HostConfig{ID: "cmp-9", Type: "ODL L3", Config: `{}`},
		odltest.HostConfig{
			ID:     "bad",
			Type:   network.ODLAgent,
			Config: `{"half`,
		},
		odltest.HostConfig{ID: "nul", Type: network.ODLAgent, Config: `{"a":"\u0000"}`},
		odltest.HostConfig{ID: "two\nlines", Type: network.ODLAgent, Config: hostConfig},
		odltest.HostConfig{ID: "type", Type: network.ODLAgent + "\u2028x", Config: hostConfig},
		odltest.HostConfig{
			ID:     "large",
			Type:   network.ODLAgent,
			Config: `{"a":"` + strings.Repeat("x", network.MaxConfigurations) + `"}`,
		},
		odltest.HostConfig{ID: "cmp-8", Type: network.OVSAgent, Config: `{}`},
	)
	w.awaitAgent("cmp-1", false)
	w.awaitAgent("cmp-9", true)

	w.awaitCondition("the port on cmp-9 is bound", func() string {
		p, err := w.store.Network.Port(t.Context(), waits.ID)
		if err == nil && p.VIF == "ovs" {
			return ""
		}
		return fmt.Sprint(p.VIF, err)
	})
	all, err := w.store.Network.Agents(t.Context(), db.Listing{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, a := range all {
		var c map[string]any
		if err := json.Unmarshal(a.Configurations, &c); err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprint(
			a.Type, " on ", a.Host, " ", a.Alive, " ", a.Topic, " ",
			c[network.ReportsPortStatusKey],
		))
	}
	slices.Sort(got)
	if d := cmp.Diff([]string{"ODL L2 on cmp-9 true N/A true", "ODL L3 on cmp-9 true N/A true"}, got); d != "" {
		t.Error(d)
	}
}

// logBuffer collects the log of a process whose goroutines log at the same time.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// The test is not parallel, because the log belongs to the process.
func TestHostConfigs_LogOfTheirErrorsIsShort(t *testing.T) {
	var log logBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	offered := map[string]string{odl.FeaturePortStatus: strings.Repeat("y", 100<<10)}
	w := newFixture(t, long, offered)
	w.awaitAgent("cmp-1", true)
	w.awaitOpenStreams(2)

	hosts := []odltest.HostConfig{{ID: "cmp-9", Type: network.ODLAgent, Config: hostConfig}}
	for i := range 1000 {
		hosts = append(hosts, odltest.HostConfig{
			ID:     fmt.Sprint("bad\n", i, strings.Repeat("x", 1000)),
			Type:   strings.Repeat("z", 1000),
			Config: "{",
		})
	}
	w.odl.SetHostConfigs(hosts...)
	w.awaitAgent("cmp-9", true)

	for line := range strings.Lines(log.String()) {
		if len(line) > 2000 {
			t.Errorf("got a log message of %d bytes: %.300s", len(line), line)
		}
	}
	// the controller's state is read a few times
	if size := len(log.String()); size > 20<<10 || !strings.Contains(log.String(), "count=1000") {
		t.Errorf("1000 invalid host configurations: got a log of %d bytes, want a short one with their count: %.500s",
			size, log.String())
	}
}

func TestHostConfigs_DecideVIFType(t *testing.T) {
	t.Parallel()
	w := newFixture(t, long, features)
	w.awaitAgent("cmp-1", true)
	direct := w.createPort("cmp-1", func(c *network.PortChange) { c.VNIC = new("direct") })
	var details map[string]any
	if err := json.Unmarshal(direct.ControllerVIFDetails, &details); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"port_prefix":      "vhu",
		"vhostuser_socket": "/run/vhu" + direct.ID.String()[:11],
		"bound_drivers":    map[string]any{"0": "opendaylight"},
	}
	if d := cmp.Diff(want, details); d != "" || direct.VIF != "vhostuser" {
		t.Errorf("port with a vhostuser socket: VIF type %s, want vhostuser; details (-want +got):\n%s",
			direct.VIF, d)
	}
	if p := w.createPort("cmp-1", func(c *network.PortChange) { c.VNIC = new("macvtap") }); p.VIF != network.VIFFailed ||
		len(p.ControllerVIFDetails) != 0 {
		t.Errorf(
			"create a port with an unsupported VNIC type: got %+v, want VIF type binding_failed and no VIF details",
			p,
		)
	}
	flat, err := w.store.Network.CreateNetworks(t.Context(),
		[]network.NetworkChange{{Project: new("demo"), Type: new("flat"), PhysicalNetwork: new("p")}})
	if err != nil {
		t.Fatal(err)
	}
	if p := w.createPort("cmp-1", func(c *network.PortChange) { c.Network = &flat[0].ID }); p.VIF != network.VIFFailed {
		t.Errorf(
			"create a port on a network of a type that the host does not allow: got %+v, want VIF type binding_failed",
			p,
		)
	}
	storetest.Exec(t, w.url, `update agent set heartbeat_at = heartbeat_at - interval '1 hour'`)
	if p := w.createPort("cmp-1"); p.VIF != "ovs" {
		t.Errorf("create a port while the controller is unavailable: got %+v, want VIF type ovs", p)
	}
	if _, err := w.store.Network.ReportState(t.Context(), network.AgentState{Type: network.OVSAgent, Host: "cmp-1", Configurations: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if p := w.createPort("cmp-1"); p.MechanismDriver() != "openvswitch" || len(p.ControllerVIFDetails) != 0 {
		t.Errorf(
			"create a port on a host with an Open vSwitch agent: got %+v, want the port bound by that agent",
			p,
		)
	}
	moved, err := w.store.Network.UpdatePort(t.Context(), direct.ID, network.PortChange{Host: new("")}, nil)
	if err != nil || moved.VIF != network.VIFUnbound || len(moved.ControllerVIFDetails) != 0 {
		t.Errorf(
			"port whose host was removed: got %+v, error %v; want the port unbound and without VIF details",
			moved,
			err,
		)
	}
}

// The controller's status of a port is ignored if an agent has bound the port.
func TestPort_ControllerStatusIgnoredForAgentBoundPort(t *testing.T) {
	t.Parallel()
	w := newFixture(t, 300*time.Millisecond, features)
	if _, err := w.store.Network.ReportState(t.Context(), network.AgentState{Type: network.OVSAgent, Host: "cmp-2", Configurations: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	w.awaitAgent("cmp-1", true)
	w.awaitOpenStreams(2)
	theirs, ours := w.createPort("cmp-2"), w.createPort("cmp-1")
	w.sendJournal()
	w.odl.SetPortStatus(theirs.ID.String(), "ACTIVE")
	w.odl.SetPortStatus(ours.ID.String(), "ACTIVE")
	w.awaitPortStatus(ours.ID, network.Active)
	if p, err := w.store.Network.Port(t.Context(), theirs.ID); err != nil || p.Status != network.Down {
		t.Errorf(
			"port that an agent has bound, after the controller reports it ACTIVE: got %+v, error %v; want DOWN",
			p,
			err,
		)
	}
}

// observedLock counts the attempts that found the lock taken by another process.
type observedLock struct {
	*db.DB
	refused atomic.Int64
}

func (l *observedLock) InOneProcess(ctx context.Context, name string, f func(context.Context)) (bool, error) {
	led, err := l.DB.InOneProcess(ctx, name, f)
	if !led && err == nil {
		l.refused.Add(1)
	}
	return led, err
}

// Only one process watches the controller; when this process loses the database lock, another process must
// take over.
func TestListener_OneProcessAtATime(t *testing.T) {
	t.Parallel()
	w := newFixture(t, 300*time.Millisecond, features)
	w.awaitOpenStreams(2)
	ctx, cancel := context.WithCancel(t.Context())
	lock := &observedLock{DB: w.store.DB}
	second := feedback.New(feedback.Options{
		Lock:            lock,
		Store:           w.store.Network,
		ODL:             w.client,
		PollInterval:    300 * time.Millisecond,
		HostConfigsPath: odl.HostConfigsPath,
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		second.Run(ctx)
	}()
	w.awaitCondition("the second listener finds the lock taken", func() string {
		if n := second.OpenStreams(); n != 0 {
			w.Fatalf("streams of the second listener while the first one runs: got %d, want 0", n)
		}
		if n := lock.refused.Load(); n < 2 {
			return fmt.Sprint(n, " attempts")
		}
		return ""
	})
	if n := w.odl.OpenStreams(); n != 2 || w.listener.OpenStreams() != 2 {
		t.Errorf(
			"streams while two listeners run: the controller has %d and the first listener %d, want 2",
			n,
			w.listener.OpenStreams(),
		)
	}
	storetest.Exec(t, w.url,
		`select pg_terminate_backend(l.pid) from pg_locks l where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`)
	w.awaitCondition("one of the listeners watches the controller again", func() string {
		if n := w.listener.OpenStreams() + second.OpenStreams(); n != 2 {
			return strconv.Itoa(n)
		}
		return ""
	})
	cancel()
	<-ended
	w.awaitOpenStreams(2)
}

// Invalid messages from the controller do not stop the listener.
func TestListener_SurvivesInvalidMessages(t *testing.T) {
	t.Parallel()
	w := newFixture(t, 300*time.Millisecond, features)
	w.awaitAgent("cmp-1", true)
	w.awaitOpenStreams(2)
	for _, raw := range []string{``, `<html>`, `null`, `7`, `{}`, `{"notification":null}`, `{"notification":{"data-changed-notification":{"data-change-event":7}}}`,
		`{"notification":{"data-changed-notification":{"data-change-event":[{"path":"[neutron:uuid='x']"}]}}}`} {
		w.odl.SendRaw([]byte(raw))
	}
	for _, typ := range []string{"features", "hostconfigs", "statuses", "status", "subscription", "stream"} {
		w.odl.InjectFaults(odltest.Fault{Type: typ, Status: 200, Body: "<html>"},
			odltest.Fault{Type: typ, Status: 500}, odltest.Fault{Type: typ, Status: 200, Body: "{}"})
	}
	w.odl.CloseStreams(true)
	p := w.createPort("cmp-1")
	w.sendJournal()
	w.odl.SetPortStatus(p.ID.String(), "ACTIVE")
	w.awaitPortStatus(p.ID, network.Active)
	w.awaitOpenStreams(2)
}
