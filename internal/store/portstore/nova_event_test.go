package portstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/notificationstore"
	"berth/internal/store/storetest"
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

// While Nova gets no events, a project can change its port, and the server of its port, any number of times.
func TestNovaEvents_OnlyTheNewestOfAPortAreKept(t *testing.T) {
	t.Parallel()
	changed := network.NovaEvent{Name: network.NovaNetworkChanged}
	plugged := network.NovaEvent{Name: network.NovaVIFPlugged, Status: "completed"}
	for _, c := range []struct{ repeated, other network.NovaEvent }{{changed, plugged}, {plugged, changed}} {
		t.Run(c.repeated.Name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t, "10.0.0.0/24")
			port := fx.createPort(cmp1).ID
			c.other.Server = "other"
			fx.recordEvents(port, c.other)
			all, want := make([]network.NovaEvent, 1000), []string{"other"}
			for i := range all {
				all[i] = c.repeated
				all[i].Server = fmt.Sprint(i)
			}
			fx.recordEvents(port, all...)

			for _, e := range all[len(all)-100:] {
				want = append(want, e.Server)
			}
			left, err := fx.Notifications.NovaEvents(t.Context(), port, 0)
			var servers []string
			for _, e := range left {
				servers = append(servers, e.Server)
			}
			if d := cmp.Diff(want, servers); d != "" || err != nil {
				t.Errorf("servers of the undelivered events after %d events %s (-want +got):\n%s\nerror %v, want none",
					len(all), c.repeated.Name, d, err)
			}
		})
	}
}

// The events of one port must arrive in order, so a merged event comes after the others.
func TestNovaEvents_EqualStatusEventsAreMerged(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	port := fx.createPort(cmp1).ID
	plugged := network.NovaEvent{Server: "s", Name: network.NovaVIFPlugged, Status: "completed"}
	failed, other, unplugged := plugged, plugged, plugged
	failed.Status, other.Server, unplugged.Name = "failed", "s2", network.NovaVIFUnplugged
	fx.recordEvents(port, failed, other)
	for range 50 {
		fx.recordEvents(port, plugged, unplugged)
	}
	claimed, err := fx.Notifications.ClaimNovaEvents(t.Context(), port, 0, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	fx.recordEvents(port, plugged) // while a process sends the claimed events

	left, err := fx.Notifications.NovaEvents(t.Context(), port, 0)
	if err != nil {
		t.Fatal(err)
	}
	ignored := cmpopts.IgnoreFields(network.NovaEvent{}, "ID", "Age", "Claimed")
	if d := cmp.Diff([]network.NovaEvent{failed, other, plugged, unplugged}, claimed, ignored); d != "" {
		t.Errorf("undelivered events of a port that was plugged and unplugged 50 times (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]network.NovaEvent{failed, other, plugged, unplugged, plugged}, left, ignored); d != "" {
		t.Errorf("undelivered events after another one while they are being sent (-want +got):\n%s", d)
	}
}

// recordEvents records Nova events of a port in one transaction.
func (fx fixture) recordEvents(port uuid.UUID, events ...network.NovaEvent) {
	fx.t.Helper()
	err := fx.DB.InBatch(fx.t.Context(), func(batch *pgx.Batch) {
		for _, e := range events {
			notificationstore.QueueNovaEvent(batch, port, e)
		}
	})
	if err != nil {
		fx.t.Fatal(err)
	}
}

// A request that merges an event keeps it locked until its transaction ends. Only this event is sent again if
// the transaction stays open.
func TestDeleteNovaEvents_LockedEventKeepsNoOther(t *testing.T) {
	t.Parallel()
	fx, url := newLockFixture(t)
	port := uuid.New()
	storetest.Exec(t, url, `
		insert into nova_event (port_id, server, name, status, tag)
		select $1::uuid, 'server', 'network-vif-plugged', 'completed', n::text
		from generate_series(1, 3) as n`, port)
	events, err := fx.Notifications.NovaEvents(t.Context(), port, 0)
	if err != nil || len(events) != 3 {
		t.Fatalf("events of a port: got %+v, error %v; want three", events, err)
	}
	ids := []int64{events[0].ID, events[1].ID, events[2].ID}

	err = storetest.NewRival(t, url).RunAgainst(
		func() error { return fx.Notifications.DeleteNovaEvents(t.Context(), ids) },
		fmt.Sprintf(`select from nova_event where id = %d for update`, ids[0]),
		`select 1 / (count(*) = 1)::int from nova_event`)

	left, err2 := fx.Notifications.NovaEvents(t.Context(), port, 0)
	if err != nil || err2 != nil || len(left) > 0 {
		t.Errorf("delete three events, of which one is locked: got error %v, left %+v, error %v; want none left",
			err, left, err2)
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
	left, err := fx.Notifications.NovaEvents(t.Context(), p.ID, 0)
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
