package networkstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
)

// life is one port in the store, and beside it what a careful reader of the contract would make of it.
type life struct {
	ground
	id    network.Port
	rand  *rand.Rand
	path  []string
	said  []string // what Nova was told of its plug
	first int64    // revision of the first binding

	host     string
	admin    bool
	epoch    int64  // revision of the present binding
	wiring   string // the last that the agent of its host said
	building bool
	served   bool // the subnet has DHCP
	waiting  bool // for DHCP
	ignored  int64
	status   string
}

func (l *life) judge() {
	was := l.status
	switch {
	case l.host == "" || !l.admin:
		l.status = network.Down
	case l.wiring == network.ReportComplete && !l.waiting:
		l.status = network.Active
	case l.building:
		l.status = network.Build
	default:
		l.status = network.Down
	}
	l.building = l.building && l.status == network.Build
	switch {
	case was != network.Active && l.status == network.Active:
		l.said = append(l.said, network.NovaVIFPlugged)
	case was == network.Active && l.status == network.Down:
		l.said = append(l.said, network.NovaVIFUnplugged)
	}
}

// report sends a report through one of the doors, and the model makes of it what it should.
func (l *life) report(r network.Report) {
	l.t.Helper()
	p := l.look(l.id.ID)
	switch l.rand.IntN(3) {
	case 0:
		r.Revision = p.Revision
	case 1:
		r.Revision = l.first
	}
	l.path = append(l.path, fmt.Sprintf("%s@%s %s of %d", r.Entity, r.Host, r.Event, r.Revision))
	if !l.hears(r) {
		l.ignored++
	}
	var err error
	if l.rand.IntN(2) == 0 {
		_, err = l.Network.UpdatePortStatus(l.t.Context(), l.id.ID, []network.Report{r})
	} else {
		_, err = l.Network.ReportPort(l.t.Context(), l.id.ID, []network.Report{r})
	}
	if err != nil {
		l.t.Fatal(l.path, err)
	}
}

// hears is what the model makes of a report; false if it counts for nothing.
func (l *life) hears(r network.Report) bool {
	switch {
	case r.Entity == network.DHCP:
		counts := l.waiting && (r.Revision == 0 || r.Revision >= l.addressed())
		l.waiting = l.waiting && !counts
		return counts
	case r.Host != l.host || l.host == "" || r.Revision != 0 && r.Revision < l.epoch:
		return false
	case r.Event == network.ReportBegun && !l.admin, r.Event == l.wiring && (r.Event != network.ReportBegun || l.building):
		return false
	}
	l.wiring = r.Event
	l.building = r.Event == network.ReportBegun || r.Event == network.ReportComplete && l.building
	return true
}

// addressed is the revision from which on DHCP's work counts, which the model takes from the row.
func (l *life) addressed() int64 {
	for _, b := range l.look(l.id.ID).Blocks {
		if b.Entity == network.DHCP {
			return b.MinRevision
		}
	}
	return 0
}

func (l *life) change(what string, c network.PortChange) network.Port {
	l.path = append(l.path, what)
	return l.update(l.id.ID, c)
}

func (l *life) step() {
	hosts, events := []string{cmp1, cmp2}, []string{network.ReportComplete, network.ReportComplete, network.ReportBegun, network.ReportLost}
	switch l.rand.IntN(10) {
	case 0, 1, 2, 3:
		l.report(network.Report{Entity: network.L2, Host: hosts[l.rand.IntN(2)], Event: events[l.rand.IntN(4)]})
	case 4, 5:
		l.report(network.Report{Entity: network.DHCP, Host: net1})
	case 6:
		host := append(hosts, "")[l.rand.IntN(3)]
		p := l.change("bind "+host, network.PortChange{Host: &host})
		if host != l.host {
			l.host, l.wiring, l.building, l.epoch = host, "", false, p.Revision
		}
	case 7:
		l.admin = l.rand.IntN(2) == 0
		l.change(fmt.Sprint("admin ", l.admin), network.PortChange{AdminUp: &l.admin})
	case 8:
		var c network.PortChange
		at(fmt.Sprintf("10.0.%d.%d", len(l.path), 10+l.rand.IntN(200)))(&c)
		l.change("readdress", c)
		l.waiting = l.served
	case 9:
		l.served = !l.served
		l.path = append(l.path, fmt.Sprint("DHCP ", l.served))
		if _, err := l.Network.UpdateSubnet(l.t.Context(), l.subnet.ID, network.SubnetChange{DHCP: &l.served}, nil); err != nil {
			l.t.Fatal(err)
		}
		l.waiting = l.waiting && l.served
	}
	l.judge()
}

// agree compares the row with the model.
func (l *life) agree() {
	l.t.Helper()
	p := l.look(l.id.ID)
	waits := []string{}
	if l.waiting {
		waits = append(waits, network.DHCP)
	}
	if l.host != "" && l.wiring != network.ReportComplete {
		waits = append(waits, network.L2)
	}
	told, err := l.Network.NovaEvents(l.t.Context(), p.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	said := []string{}
	for _, e := range told {
		if e.Name != network.NovaNetworkChanged {
			said = append(said, e.Name)
		}
	}
	type state struct {
		Status  string
		Waits   []string
		Ignored int64
		Nova    []string
	}
	if d := cmp.Diff(state{l.status, waits, l.ignored, append([]string{}, l.said...)}, state{p.Status, p.StatusView().Remaining(), p.IgnoredReports, said}); d != "" {
		l.t.Fatalf("after %s: %s", strings.Join(l.path, ", "), d)
	}
}

func TestPort_MatchesModelUntilDeleted(t *testing.T) {
	t.Parallel()
	for round := range 8 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			g := ready(t, "10.0.0.0/16")
			l := &life{ground: g, rand: rand.New(rand.NewPCG(seed, 0)), id: g.port(cmp1), path: []string{fmt.Sprint("seed ", seed)},
				first: 1, host: cmp1, admin: true, epoch: 1, served: true, waiting: true, status: network.Down}
			for range 40 {
				l.agree()
				l.step()
			}
			l.agree()

			if err := g.Network.DeletePort(t.Context(), l.id.ID, nil); err != nil {
				t.Fatal(err)
			}
			for _, r := range []network.Report{l2on1, l2on2, dhcpOK} {
				if s := g.settle(l.id.ID, r); !s.Deleted {
					t.Errorf("a deleted port is %+v", s)
				}
				if _, err := g.Network.ReportPort(t.Context(), l.id.ID, []network.Report{r}); !errors.Is(err, db.ErrNotFound) {
					t.Errorf("a deleted port took a report: %v", err)
				}
			}
			if blocked, err := g.Network.Blocked(t.Context(), networkstore.Object{Type: "port", ID: l.id.ID}); blocked || err != nil {
				t.Errorf("a block is left of it: %v", err)
			}
		})
	}
}
