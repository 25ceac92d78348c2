package networkstore_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/networkstore"
)

// announced counts how often the object's completion was announced: a note that is joined grows by a version.
func announced(t *testing.T, g ground, o networkstore.Object) (n int64) {
	t.Helper()
	notes, err := g.Outbox.Claim(t.Context(), "test", 1000, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, note := range notes {
		if strings.HasPrefix(note.ID, o.Type+"/"+o.ID.String()) {
			n += note.Version
		}
	}
	return n
}

// The registry is the process's, so this story runs alone.
func TestBlock_AnyRegisteredObjectType(t *testing.T) {
	g := ready(t, "10.0.0.0/24")
	ctx := t.Context()
	o := networkstore.Object{Type: "network", ID: g.network.ID}
	add := func(entities ...string) {
		t.Helper()
		for _, e := range entities {
			if err := g.Network.AddBlock(ctx, o, e); err != nil {
				t.Fatal(err)
			}
		}
	}
	complete := func(entity string) string {
		t.Helper()
		completed, blocked, err := g.Network.CompleteBlock(ctx, o, network.Report{Entity: entity, Host: "h"})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("completed %v, blocked %v, announced %d", completed, blocked, announced(t, g, o))
	}
	remove := func(entity string) bool {
		t.Helper()
		removed, err := g.Network.RemoveBlock(ctx, o, entity)
		if err != nil {
			t.Fatal(err)
		}
		return removed
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}

	if err := g.Network.AddBlock(ctx, o, "audit"); err == nil {
		t.Error("an object of a type that is not registered was blocked")
	}
	networkstore.BlockNetworks()
	t.Cleanup(networkstore.ForgetNetworks)

	want("not blocked", complete("audit"), "completed false, blocked false, announced 0")
	add("audit", "audit", "audit", "storage")
	if blocked, err := g.Network.Blocked(ctx, o); err != nil || !blocked {
		t.Errorf("blocked %v, %v", blocked, err)
	}
	want("of a stranger", complete("moon"), "completed false, blocked true, announced 0")
	want("the first", complete("audit"), "completed true, blocked true, announced 0")
	want("the last", complete("storage"), "completed true, blocked false, announced 1")
	want("again", complete("storage"), "completed false, blocked false, announced 1")
	add("audit", "storage")
	if !remove("audit") || remove("audit") {
		t.Error("a block is not removed once")
	}
	want("the last after a removal", complete("storage"), "completed true, blocked false, announced 2")
	add("audit")
	if !remove("audit") {
		t.Error("the block is not there")
	}
	if n := announced(t, g, o); n != 2 {
		t.Errorf("a removal was announced as a completion: %d", n)
	}

	nobody := networkstore.Object{Type: "network", ID: uuid.New()}
	if err := g.Network.AddBlock(ctx, nobody, "audit"); err != nil {
		t.Error(err)
	}
	if completed, blocked, err := g.Network.CompleteBlock(ctx, nobody, network.Report{Entity: "audit"}); completed || blocked || err != nil {
		t.Error(completed, blocked, err)
	}
	if blocked, err := g.Network.Blocked(ctx, nobody); blocked || err != nil {
		t.Error(blocked, err)
	}
}

func TestBlock_PortWaitsForAnyEntity(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/24")
	p, other := g.port(cmp1), g.port(cmp1)
	o := networkstore.Object{Type: "port", ID: p.ID}
	g.settle(p.ID, l2on1, dhcpOK)
	g.settle(other.ID, l2on1)

	if err := g.Network.AddBlock(t.Context(), o, "firewall"); err != nil {
		t.Fatal(err)
	}
	if s := g.settle(p.ID); s.Status != network.Down || !strings.Contains(s.Sentence(), "it waits for firewall since") {
		t.Errorf("blocked by another entity: %+v", s)
	}
	if completed, blocked, err := g.Network.CompleteBlock(t.Context(), o, network.Report{Entity: "firewall"}); !completed || blocked || err != nil {
		t.Error(completed, blocked, err)
	}
	if a, b := g.look(p.ID), g.look(other.ID); a.Status != network.Active || b.Status != network.Down {
		t.Errorf("%s, and the other one %s", a.Status, b.Status)
	}
	// Removing what the other port waits for decides it anew, which the original leaves to chance.
	if removed, err := g.Network.RemoveBlock(t.Context(), networkstore.Object{Type: "port", ID: other.ID}, network.DHCP); !removed || err != nil {
		t.Error(removed, err)
	}
	if b := g.look(other.ID); b.Status != network.Active {
		t.Errorf("nobody blocks it, and it is %s", b.Status)
	}
	if err := g.Network.AddBlock(t.Context(), o, "firewall"); err != nil {
		t.Fatal(err)
	}
	if err := g.Network.DeletePort(t.Context(), p.ID, nil); err != nil {
		t.Fatal(err)
	}
	if blocked, err := g.Network.Blocked(t.Context(), o); blocked || err != nil {
		t.Error("a deleted port is blocked", err)
	}
}

func TestBlock_ConcurrentLastCompletionsActivateOnce(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/16")
	entities := []string{"a", "b", "c"}
	for round := range 40 {
		p := g.port(cmp1, owner("network:dhcp"))
		o := networkstore.Object{Type: "port", ID: p.ID}
		for _, e := range entities {
			if err := g.Network.AddBlock(t.Context(), o, e); err != nil {
				t.Fatal(err)
			}
		}
		var last atomic.Int32
		together(2*len(entities), func(i int) {
			completed, blocked, err := g.Network.CompleteBlock(t.Context(), o, network.Report{Entity: entities[i%len(entities)]})
			if err != nil {
				t.Error(err)
			}
			if completed && !blocked {
				last.Add(1)
			}
		})
		if after := g.look(p.ID); last.Load() != 1 || after.Status != network.Active {
			t.Fatalf("round %d: %d were the last, the port is %s", round, last.Load(), after.Status)
		}
	}
}

// A completion and what it means are one transaction: of neither is there ever half.
func TestBlock_CompletionAndStatusAreOneTransaction(t *testing.T) {
	t.Parallel()
	g := ready(t, "10.0.0.0/16")
	for round := range 20 {
		p := g.port(cmp1)
		together(4, func(i int) {
			switch i {
			case 0:
				g.settle(p.ID, l2on1)
			case 1:
				g.settle(p.ID, dhcpOK)
			case 2:
				g.update(p.ID, network.PortChange{Host: ptr(cmp2)})
			case 3:
				g.settle(p.ID, l2on2, at1(network.L2, network.ReportLost, 0))
			}
		})
		after := g.look(p.ID)
		if (after.Status == network.Active) != (len(after.Blocks) == 0) {
			t.Fatalf("round %d: %s, blocked by %v", round, after.Status, after.Blocks)
		}
		if d := cmp.Diff(after.Status == network.Active, g.settle(p.ID).Status == network.Active); d != "" {
			t.Fatalf("round %d: another look changes it: %s", round, d)
		}
	}
}
