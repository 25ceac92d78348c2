package portstore_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
)

func TestPort_DeleteKeepsOnlyNovaEvents(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)

	if err := fx.Network.DeletePort(t.Context(), p.ID, nil); err != nil {
		t.Fatal(err)
	}

	s := fx.updateStatus(p.ID, l2OnCmp1)
	if d := cmp.Diff([]string{"network-vif-deleted"}, eventNames(s)); d != "" || !s.Deleted {
		t.Errorf("report to a deleted port: got %+v, want it deleted; Nova events (-want +got): %s", s, d)
	}
	_, err := fx.Network.ReportPort(t.Context(), p.ID, []network.Report{l2OnCmp1})
	if !errors.Is(err, db.ErrNotFound) {
		t.Errorf("ReportPort for a deleted port: got error %v, want ErrNotFound", err)
	}
	if err := fx.Network.DeletePort(t.Context(), p.ID, nil); faultKind(err) != network.PortNotFound {
		t.Errorf("delete a deleted port: got error %v, want PortNotFound", err)
	}
	if again := fx.createPort(cmp1, withFixedIP(p.Addresses[0].IP.String())); len(again.Addresses) != 1 {
		t.Errorf("create a port with the address of a deleted port: got the addresses %v, want one",
			again.Addresses)
	}
}

func TestNovaEvents_NetworkChangedIsMerged(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	for _, name := range []string{"a", "b", "b"} {
		fx.updatePort(p.ID, network.PortChange{Name: &name})
	}
	first := fx.updateStatus(p.ID).Events
	if len(first) != 1 || first[0].Name != "network-changed" || first[0].Status != "" {
		t.Fatalf("Nova events after two changes of the name: got %+v, want one network-changed event", first)
	}
	fx.updatePort(p.ID, network.PortChange{Name: ptr("c")}) // while the first event is being delivered
	if err := fx.Notifications.DeleteNovaEvents(t.Context(), []int64{first[0].ID}); err != nil {
		t.Fatal(err)
	}
	if left := fx.updateStatus(p.ID).Events; len(left) != 1 || left[0].ID <= first[0].ID {
		t.Errorf(
			"change the port while its event is being delivered: got the pending events %+v, want one with a new ID",
			left,
		)
	}
	other := fx.createPort("", withDeviceOwner("network:dhcp"))
	fx.updatePort(other.ID, network.PortChange{Name: ptr("x")})
	if s := fx.updateStatus(other.ID); len(s.Events) != 0 {
		t.Errorf("Nova events of a changed port without a server: got %+v, want none", s.Events)
	}
}

// The query of portstore.Workflows lists a deleted port until the port's Nova events are delivered.
func TestWorkflows_DeletedPortUntilNovaEventsAreDelivered(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1)
	if err := fx.Network.DeletePort(t.Context(), p.ID, nil); err != nil {
		t.Fatal(err)
	}
	id := contract.PortID(p.ID.String())
	left, err := fx.Notifications.NovaEvents(t.Context(), p.ID)
	if err != nil || len(left) != 1 {
		t.Fatalf("Nova events of a deleted port: got %+v, error %v; want one", left, err)
	}

	for _, want := range []int64{1, 0} {
		if n, err := fx.Outbox.RestartWorkflows(t.Context(), []string{id}); n != want || err != nil {
			t.Errorf("restart the workflow of a deleted port: got %d restarts, want %d; error %v",
				n, want, err)
		}
		if err := fx.Notifications.DeleteNovaEvents(t.Context(), []int64{left[0].ID}); err != nil {
			t.Fatal(err)
		}
	}
}
