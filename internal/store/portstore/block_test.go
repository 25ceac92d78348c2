package portstore_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/portstore"
)

// completionCount counts the notes about the object's completion. Each nudge that is merged into an existing
// note increments the version of this note.
func completionCount(t *testing.T, fx fixture, o portstore.Object) (n int64) {
	t.Helper()
	notes, err := fx.Outbox.Claim(t.Context(), "test", 1000, time.Nanosecond)
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

// This test changes the global registry of blockable types, so it does not run in parallel with other tests.
func TestBlock_AnyRegisteredObjectType(t *testing.T) {
	fx := newFixture(t, "10.0.0.0/24")
	ctx := t.Context()
	o := portstore.Object{Type: "network", ID: fx.network.ID}
	add := func(entities ...string) {
		t.Helper()
		for _, e := range entities {
			if _, err := fx.Network.AddBlock(ctx, o, network.Report{Entity: e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	complete := func(entity string) string {
		t.Helper()
		completed, blocked, err := fx.Network.CompleteBlock(ctx, o, network.Report{Entity: entity, Host: "h"})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("completed %v, blocked %v, notes %d",
			completed, blocked, completionCount(t, fx, o))
	}
	remove := func(entity string) bool {
		t.Helper()
		removed, err := fx.Network.RemoveBlock(ctx, o, entity)
		if err != nil {
			t.Fatal(err)
		}
		return removed
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("CompleteBlock for %s: got %q, want %q", what, got, want)
		}
	}

	if _, err := fx.Network.AddBlock(ctx, o, network.Report{Entity: "audit"}); err == nil {
		t.Error("AddBlock for an object type that is not registered: got no error, want one")
	}
	portstore.BlockNetworks()
	t.Cleanup(portstore.ForgetNetworks)

	want("an object without blocks", complete("audit"), "completed false, blocked false, notes 0")
	add("audit", "audit", "audit", "storage")
	if blocked, err := fx.Network.Blocked(ctx, o); err != nil || !blocked {
		t.Errorf("Blocked for an object with two blocks: got %v, error %v; want true", blocked, err)
	}
	want("an unknown entity", complete("moon"), "completed false, blocked true, notes 0")
	want("the first block", complete("audit"), "completed true, blocked true, notes 0")
	want("the last block", complete("storage"), "completed true, blocked false, notes 1")
	want("a duplicate", complete("storage"), "completed false, blocked false, notes 1")
	add("audit", "storage")
	if !remove("audit") || remove("audit") {
		t.Error("call RemoveBlock twice for one block: want true from the first call only")
	}
	want("the last block after the removal of another",
		complete("storage"), "completed true, blocked false, notes 2")
	add("audit")
	if !remove("audit") {
		t.Error("RemoveBlock for the last block: got false, want true")
	}
	if n := completionCount(t, fx, o); n != 2 {
		t.Errorf(
			"notes after the removal of the last block: got %d, want the 2 of the completions, because a removal is not a completion",
			n,
		)
	}

	missing := portstore.Object{Type: "network", ID: uuid.New()}
	if added, err := fx.Network.AddBlock(ctx, missing, network.Report{Entity: "audit"}); added || err != nil {
		t.Errorf("AddBlock for a missing object: got %v, error %v; want false and no error", added, err)
	}
	if completed, blocked, err := fx.Network.CompleteBlock(ctx, missing, network.Report{Entity: "audit"}); completed ||
		blocked ||
		err != nil {
		t.Error("CompleteBlock for a missing object: want false, false and no error; got",
			completed, blocked, err)
	}
	if blocked, err := fx.Network.Blocked(ctx, missing); blocked || err != nil {
		t.Error("Blocked for a missing object: want false and no error; got", blocked, err)
	}
}

func TestBlock_PortWaitsForAnyEntity(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p, other := fx.createPort(cmp1), fx.createPort(cmp1)
	o := portstore.Object{Type: "port", ID: p.ID}
	fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
	fx.updateStatus(other.ID, l2OnCmp1)

	if _, err := fx.Network.AddBlock(t.Context(), o, network.Report{Entity: "firewall"}); err != nil {
		t.Fatal(err)
	}
	if s := fx.updateStatus(p.ID); s.Status != network.Down ||
		!strings.Contains(s.Sentence(), "it waits for firewall since") {
		t.Errorf(
			"status of a port that waits for the entity firewall: got %+v, want DOWN and a sentence that names the entity",
			s,
		)
	}
	if completed, blocked, err := fx.Network.CompleteBlock(t.Context(), o, network.Report{Entity: "firewall"}); !completed ||
		blocked ||
		err != nil {
		t.Error("CompleteBlock for the only block of a port: want true, false and no error; got",
			completed, blocked, err)
	}
	if a, b := fx.readPort(p.ID), fx.readPort(other.ID); a.Status != network.Active ||
		b.Status != network.Down {
		t.Errorf(
			"complete the only block of one port: got status %s, want ACTIVE; the other port has status %s, want DOWN",
			a.Status,
			b.Status,
		)
	}
	// RemoveBlock updates the status of a port when it removes the port's last block. Neutron's
	// remove_provisioning_component does not update the status.
	if removed, err := fx.Network.RemoveBlock(t.Context(), portstore.Object{Type: "port", ID: other.ID}, network.DHCP); !removed ||
		err != nil {
		t.Error("RemoveBlock for the only block of a port: want true and no error; got", removed, err)
	}
	if b := fx.readPort(other.ID); b.Status != network.Active {
		t.Errorf("remove the only block of a port: got status %s, want ACTIVE", b.Status)
	}
	if _, err := fx.Network.AddBlock(t.Context(), o, network.Report{Entity: "firewall"}); err != nil {
		t.Fatal(err)
	}
	if err := fx.Network.DeletePort(t.Context(), p.ID, nil); err != nil {
		t.Fatal(err)
	}
	if blocked, err := fx.Network.Blocked(t.Context(), o); blocked || err != nil {
		t.Error("Blocked for a deleted port: got true or an error, want false; error", err)
	}
}

func TestBlock_ConcurrentLastCompletionsActivateOnce(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/16")
	entities := []string{"a", "b", "c"}
	for round := range 40 {
		p := fx.createPort(cmp1, withDeviceOwner("network:dhcp"))
		o := portstore.Object{Type: "port", ID: p.ID}
		for _, e := range entities {
			if _, err := fx.Network.AddBlock(t.Context(), o, network.Report{Entity: e}); err != nil {
				t.Fatal(err)
			}
		}
		var last atomic.Int32
		runConcurrently(2*len(entities), func(i int) {
			completed, blocked, err := fx.Network.CompleteBlock(t.Context(), o,
				network.Report{Entity: entities[i%len(entities)]})
			if err != nil {
				t.Error(err)
			}
			if completed && !blocked {
				last.Add(1)
			}
		})
		if after := fx.readPort(p.ID); last.Load() != 1 || after.Status != network.Active {
			t.Fatalf(
				"round %d: complete all blocks at the same time: %d calls reported the last completion, want 1; got status %s, want ACTIVE",
				round, last.Load(), after.Status,
			)
		}
	}
}

// CompleteBlock removes the block and writes the resulting status of the port in one transaction.
func TestBlock_CompletionAndStatusAreOneTransaction(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/16")
	for round := range 20 {
		p := fx.createPort(cmp1)
		runConcurrently(4, func(i int) {
			switch i {
			case 0:
				fx.updateStatus(p.ID, l2OnCmp1)
			case 1:
				fx.updateStatus(p.ID, dhcpReady)
			case 2:
				fx.updatePort(p.ID, network.PortChange{Host: ptr(cmp2)})
			case 3:
				fx.updateStatus(p.ID, l2OnCmp2, l2LostOn(cmp1))
			}
		})
		after := fx.readPort(p.ID)
		if (after.Status == network.Active) != (len(after.Blocks) == 0) {
			t.Fatalf(
				"round %d: after concurrent changes got status %s with blocks %v, want ACTIVE if and only if there is no block",
				round, after.Status, after.Blocks,
			)
		}
		if d := cmp.Diff(after.Status == network.Active, fx.updateStatus(p.ID).Status == network.Active); d != "" {
			t.Fatalf(
				"round %d: recheck the port: the recheck changed whether the port is ACTIVE (-before +after): %s",
				round,
				d,
			)
		}
	}
}
