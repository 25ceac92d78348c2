package activities_test

import (
	"testing"

	"go.temporal.io/sdk/testsuite"

	"berth/activities"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
	"berth/internal/store/storetest"
)

func newNetworkSegmentTest(t *testing.T) *neutronTest {
	t.Helper()
	return newNeutronTest(t, func(e *neutronTest) lease.ReservationDraft {
		segment := map[string]string{"network_type": "vlan", "physical_network": "physnet1", "segment_id": "100"}
		if _, err := e.store.Lease.RegisterResource(t.Context(), lease.NetworkSegment, segment); err != nil {
			t.Fatal(err)
		}
		return lease.ReservationDraft{Type: lease.NetworkSegment, NetworkName: "lab"}
	})
}

// rename gives the network a name and tags that do not name the reservation, as its project can.
func (e *neutronTest) rename() {
	e.Helper()
	for _, n := range e.neutron.Networks() {
		e.neutron.SetNetwork(n.ID, "mine", nil)
	}
}

func (e *neutronTest) wantNoNetwork(when string) {
	e.Helper()
	if all := e.neutron.Networks(); len(all) != 0 {
		e.Errorf("networks %s: got %+v, want none", when, all)
	}
}

// clearLeftovers repeats the removal of the reservations of deleted leases.
func (e *neutronTest) clearLeftovers() {
	e.Helper()
	storetest.Exec(e.T, e.url, `update reservation_leftover set due_at = now()`)
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	activities.Register(env, e.acts.Functions())
	if _, err := env.ExecuteActivity(e.acts.HealReservations); err != nil {
		e.Fatal(err)
	}
}

// A lease can be deleted while berth creates its network, and the project can change the name and the tags of
// the network before berth deletes it. The project must not keep the network, and with it the segment.
func TestReservedNetwork_OfALeaseDeletedMeanwhileIsDeletedWithAnyName(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(e *neutronTest, renameAndDelete func()){
		"while a sweep started it": func(e *neutronTest, renameAndDelete func()) {
			e.afterProvision = renameAndDelete
			e.advance(lease.StartLease)
		},
		"while its workflow started it": func(e *neutronTest, renameAndDelete func()) {
			storetest.Exec(e.T, e.url, `update event set at = now() where event_type = 'start_lease'`)
			if _, err := e.store.Lease.BeginLease(e.Context(), e.lease.ID, lease.StepStart); err != nil {
				e.Fatal(err)
			}
			e.afterProvision = renameAndDelete
			if err := e.resync(); err == nil {
				e.Error("start of a lease that was deleted meanwhile: got no error")
			}
		},
		"and Neutron failed to delete it at first": func(e *neutronTest, renameAndDelete func()) {
			e.afterProvision = renameAndDelete
			e.neutron.InjectFaults(notifytest.Fault{Request: "DELETE /networks/", Status: 500})
			e.advance(lease.StartLease)
			e.clearLeftovers()
		},
		"by its workflow, before the start ended": func(e *neutronTest, renameAndDelete func()) {
			e.afterProvision = func() {
				renameAndDelete()
				e.delete()
			}
			e.advance(lease.StartLease)
			e.clearLeftovers()
		},
		"and Neutron refused the tags": func(e *neutronTest, renameAndDelete func()) {
			e.afterProvision = renameAndDelete
			e.neutron.InjectFaults(notifytest.Fault{Request: "PUT /networks/", Status: 500})
			e.advance(lease.StartLease)
			e.delete()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newNetworkSegmentTest(t)
			run(e, func() {
				e.rename()
				if _, err := e.store.Lease.DeleteLease(t.Context(), e.lease.ID); err != nil {
					t.Error(err)
				}
			})
			e.wantNoNetwork("after the deletion of the lease")
		})
	}
}

// The answer of Neutron that names a new network can be lost, and its project can change the name and the
// tags at once. Then berth knows the network by its segment alone. The project must not keep the segment.
func TestReservedNetwork_WithALostAnswerIsFoundWithAnyName(t *testing.T) {
	t.Parallel()
	lostAnswer := notifytest.Fault{Request: "POST /networks", Status: 500, Applied: true}
	for name, end := range map[string]func(e *neutronTest){
		"started by a retry, then ended": func(e *neutronTest) {
			if err := e.resync(); err != nil {
				e.Errorf("retry after a lost answer: got %v, want no error", err)
			}
			if _, err := e.store.Lease.FinishLease(e.Context(), e.lease.ID, lease.StepStart, nil); err != nil {
				e.Fatal(err)
			}
			if all := e.neutron.Networks(); len(all) != 1 {
				e.Errorf("networks after the retry: got %+v, want the one that the first attempt created", all)
			}
			e.rename()
			e.end()
		},
		"deleted": (*neutronTest).delete,
		"deleted while a retry creates another one, whose answer is lost, too": func(e *neutronTest) {
			e.beforeProvision = func() {
				e.delete()
				e.wantNoNetwork("after the deletion of the lease")
				e.neutron.InjectFaults(lostAnswer)
			}
			e.afterProvision = e.rename
			if err := e.resync(); err == nil {
				e.Error("retry of the start of a lease that was deleted meanwhile: got no error")
			}
			e.clearLeftovers()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newNetworkSegmentTest(t)
			e.neutron.InjectFaults(lostAnswer)
			e.afterProvision = e.rename
			e.advance(lease.StartLease)
			e.afterProvision = func() {}
			if all := e.neutron.Networks(); len(all) != 1 || all[0].Name != "mine" {
				t.Fatalf("networks after a lost answer: got %+v, want one with another name", all)
			}
			end(e)
			e.wantNoNetwork("after the end of the lease")
		})
	}
}

// Administrators can have created a network on the segment before they made the segment reservable. It is not
// the reservation's, also not after the end of the lease.
func TestReservedNetwork_OneThatWasOnItsSegmentBeforeStays(t *testing.T) {
	t.Parallel()
	for _, project := range []string{"p", "q"} {
		t.Run("of project "+project, func(t *testing.T) {
			t.Parallel()
			e := newNetworkSegmentTest(t)
			e.neutron.AddNetwork(notifytest.Network{
				Name:            "mine",
				Project:         project,
				Type:            "vlan",
				PhysicalNetwork: "physnet1",
				Segment:         100,
			})
			e.advance(lease.StartLease)
			if l, err := e.store.Lease.Lease(t.Context(), e.lease.ID); err != nil || l.Status != lease.Starting {
				t.Errorf("lease whose segment is in use: got status %s, error %v; want STARTING", l.Status, err)
			}
			e.delete()
			e.clearLeftovers()
			if all := e.neutron.Networks(); len(all) != 1 {
				t.Errorf("networks after the end of a lease that could not start: got %+v, want the one of the project", all)
			}
		})
	}
}
