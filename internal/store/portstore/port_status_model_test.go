package portstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

// portModel changes one port in the store with random steps, and predicts the port's state from the rules for
// provisioning blocks.
type portModel struct {
	fixture
	port          network.Port
	rand          *rand.Rand
	history       []string // the steps so far
	novaEvents    []string // the plug and unplug events that Nova must still get
	firstRevision int64    // revision of the first binding

	host            string
	adminUp         bool
	bindingRevision int64  // revision of the current binding
	lastL2Event     string // last L2 event accepted from the agent of the host
	agentIsWiring   bool
	subnetDHCP      bool // DHCP is enabled on the subnet
	waitsForDHCP    bool
	ignored         int64
	status          string
}

// decideStatus sets the expected status and appends the expected Nova event.
func (m *portModel) decideStatus() {
	was := m.status
	switch {
	case m.host == "" || !m.adminUp:
		m.status = network.Down
	case m.lastL2Event == network.ReportComplete && !m.waitsForDHCP:
		m.status = network.Active
	case m.agentIsWiring:
		m.status = network.Build
	default:
		m.status = network.Down
	}
	m.agentIsWiring = m.agentIsWiring && m.status == network.Build
	switch {
	case was != network.Active && m.status == network.Active:
		m.addNovaEvent(network.NovaVIFPlugged)
	case was == network.Active && m.status == network.Down:
		m.addNovaEvent(network.NovaVIFUnplugged)
	}
}

// addNovaEvent adds an expected event, in place of an equal one that Nova has not got.
func (m *portModel) addNovaEvent(name string) {
	others := slices.DeleteFunc(m.novaEvents, func(other string) bool { return other == name })
	m.novaEvents = append(others, name)
}

// sendReport sends a report through UpdatePortStatus or ReportPort, and applies the same report to the model.
func (m *portModel) sendReport(r network.Report) {
	m.t.Helper()
	p := m.readPort(m.port.ID)
	switch m.rand.IntN(3) {
	case 0:
		r.Revision = p.Revision
	case 1:
		r.Revision = m.firstRevision
	}
	m.history = append(m.history, fmt.Sprintf("%s@%s %s of %d", r.Entity, r.Host, r.Event, r.Revision))
	if !m.applyReport(r) {
		m.ignored++
	}
	var err error
	if m.rand.IntN(2) == 0 {
		_, err = m.Network.UpdatePortStatus(m.t.Context(), m.port.ID, []network.Report{r})
	} else {
		_, err = m.Network.ReportPort(m.t.Context(), m.port.ID, []network.Report{r})
	}
	if err != nil {
		m.t.Fatal("send a report after these steps: want no error; steps and error:", m.history, err)
	}
}

// applyReport applies a report to the model and returns whether the store must accept it.
func (m *portModel) applyReport(r network.Report) bool {
	switch {
	case r.Entity == network.DHCP:
		counts := m.waitsForDHCP && (r.Revision == 0 || r.Revision >= m.dhcpMinRevision())
		m.waitsForDHCP = m.waitsForDHCP && !counts
		return counts
	case r.Host != m.host || m.host == "" || r.Revision != 0 && r.Revision < m.bindingRevision:
		return false
	case r.Event == network.ReportBegun && !m.adminUp,
		r.Event == m.lastL2Event && (r.Event != network.ReportBegun || m.agentIsWiring):
		return false
	}
	m.lastL2Event = r.Event
	m.agentIsWiring = r.Event == network.ReportBegun || r.Event == network.ReportComplete && m.agentIsWiring
	return true
}

// dhcpMinRevision is the oldest revision for which a DHCP report counts. The model does not predict this
// revision, but reads it from the port's DHCP block in the store.
func (m *portModel) dhcpMinRevision() int64 {
	for _, b := range m.readPort(m.port.ID).Blocks {
		if b.Entity == network.DHCP {
			return b.MinRevision
		}
	}
	return 0
}

func (m *portModel) changePort(what string, c network.PortChange) network.Port {
	m.history = append(m.history, what)
	return m.updatePort(m.port.ID, c)
}

func (m *portModel) randomStep() {
	hosts, events := []string{
		cmp1,
		cmp2,
	}, []string{
		network.ReportComplete,
		network.ReportComplete,
		network.ReportBegun,
		network.ReportLost,
	}
	switch m.rand.IntN(10) {
	case 0, 1, 2, 3:
		m.sendReport(
			network.Report{Entity: network.L2, Host: hosts[m.rand.IntN(2)], Event: events[m.rand.IntN(4)]},
		)
	case 4, 5:
		m.sendReport(network.Report{Entity: network.DHCP, Host: net1})
	case 6:
		host := append(hosts, "")[m.rand.IntN(3)]
		p := m.changePort("bind "+host, network.PortChange{Host: &host})
		if host != m.host {
			m.host, m.lastL2Event, m.agentIsWiring, m.bindingRevision = host, "", false, p.Revision
		}
	case 7:
		m.adminUp = m.rand.IntN(2) == 0
		m.changePort(fmt.Sprint("admin ", m.adminUp), network.PortChange{AdminUp: &m.adminUp})
	case 8:
		var c network.PortChange
		withFixedIP(fmt.Sprintf("10.0.%d.%d", len(m.history), 10+m.rand.IntN(200)))(&c)
		m.changePort("change addresses", c)
		m.waitsForDHCP = m.subnetDHCP
	case 9:
		m.subnetDHCP = !m.subnetDHCP
		m.history = append(m.history, fmt.Sprint("DHCP ", m.subnetDHCP))
		if _, err := m.Network.UpdateSubnet(m.t.Context(), m.subnet.ID, network.SubnetChange{DHCP: &m.subnetDHCP}, nil); err != nil {
			m.t.Fatal(err)
		}
		m.waitsForDHCP = m.waitsForDHCP && m.subnetDHCP
	}
	m.decideStatus()
}

// checkRow compares the row with the model.
func (m *portModel) checkRow() {
	m.t.Helper()
	p := m.readPort(m.port.ID)
	remaining := []string{}
	if m.waitsForDHCP {
		remaining = append(remaining, network.DHCP)
	}
	if m.host != "" && m.lastL2Event != network.ReportComplete {
		remaining = append(remaining, network.L2)
	}
	pending, err := m.Notifications.NovaEvents(m.t.Context(), p.ID, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	novaEvents := []string{}
	for _, e := range pending {
		if e.Name != network.NovaNetworkChanged {
			novaEvents = append(novaEvents, e.Name)
		}
	}
	type state struct {
		Status    string
		Remaining []string
		Ignored   int64
		Nova      []string
	}
	if d := cmp.Diff(state{m.status, remaining, m.ignored, append([]string{}, m.novaEvents...)}, state{p.Status, p.StatusView().Remaining(), p.IgnoredReports, novaEvents}); d != "" {
		m.t.Fatalf("port after the steps %s (-model +store): %s", strings.Join(m.history, ", "), d)
	}
	inactive, _, err := m.Network.InactivePorts(m.t.Context(), p.Project, uuid.Nil, 50)
	if err != nil || slices.Contains(inactive, p.ID) != (m.status != network.Active) {
		m.t.Fatalf("ports that are not ACTIVE after the steps %s: got %v, error %v; the port %s is %s",
			strings.Join(m.history, ", "), inactive, err, p.ID, m.status)
	}
}

func TestPort_MatchesModelUntilDeleted(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			fx := newFixture(t, "10.0.0.0/16")
			m := &portModel{
				fixture:         fx,
				rand:            rand.New(rand.NewPCG(seed, 0)),
				port:            fx.createPort(cmp1),
				history:         []string{fmt.Sprint("seed ", seed)},
				firstRevision:   1,
				host:            cmp1,
				adminUp:         true,
				bindingRevision: 1,
				subnetDHCP:      true,
				waitsForDHCP:    true,
				status:          network.Down,
			}
			for range 40 {
				m.checkRow()
				m.randomStep()
			}
			m.checkRow()

			if err := fx.Network.DeletePort(t.Context(), m.port.ID, nil); err != nil {
				t.Fatal(err)
			}
			for _, r := range []network.Report{l2OnCmp1, l2OnCmp2, dhcpReady} {
				if s := fx.updateStatus(m.port.ID, r); !s.Deleted {
					t.Errorf("UpdatePortStatus for a deleted port: got %+v, want it deleted", s)
				}
				_, err := fx.Network.ReportPort(t.Context(), m.port.ID, []network.Report{r})
				if !errors.Is(err, db.ErrNotFound) {
					t.Errorf("ReportPort for a deleted port: got error %v, want ErrNotFound", err)
				}
			}
			if blocked, err := fx.Network.Blocked(t.Context(), portstore.Object{Type: "port", ID: m.port.ID}); blocked ||
				err != nil {
				t.Errorf("blocks of a deleted port: got some or error %v, want none", err)
			}
		})
	}
}
