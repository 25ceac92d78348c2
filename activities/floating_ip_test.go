package activities_test

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/activities"
	"berth/internal/cloud"
	"berth/internal/lease"
	"berth/internal/network"
	"berth/internal/notify/notifytest"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// neutronTest is a lease of a floating IP or a network segment, with a stub of Neutron.
type neutronTest struct {
	*testing.T
	url     string
	store   *store.Store
	neutron *notifytest.Neutron
	cloud   *cloud.Cloud // has no interruptions
	acts    *activities.Activities
	lease   lease.Lease
	// beforeProvision is called before each call of Provision, after berth has read the reservation
	beforeProvision func()
	// afterProvision is called after each call of Provision, before berth stores the result
	afterProvision func()
	// beforeDeprovision is called before each call of Deprovision, after berth has read the reservation
	beforeDeprovision func()
}

// interruptedCloud calls functions before and after each call of Provision, and before each of Deprovision.
type interruptedCloud struct {
	activities.Cloud
	test *neutronTest
}

func (c interruptedCloud) Provision(ctx context.Context, r lease.CloudReservation) (lease.CloudIDs, error) {
	c.test.beforeProvision()
	ids, err := c.Cloud.Provision(ctx, r)
	c.test.afterProvision()
	return ids, err
}

func (c interruptedCloud) Deprovision(ctx context.Context, r lease.CloudReservation) error {
	c.test.beforeDeprovision()
	return c.Cloud.Deprovision(ctx, r)
}

func newFloatingIPTest(t *testing.T) *neutronTest {
	t.Helper()
	return newNeutronTest(t, func(e *neutronTest) lease.ReservationDraft {
		return lease.ReservationDraft{Type: lease.FloatingIP, Network: e.registerFloatingIPs(), Amount: 1}
	})
}

// newNeutronTest creates a lease with the reservation that the function `draft` returns.
func newNeutronTest(t *testing.T, draft func(*neutronTest) lease.ReservationDraft) *neutronTest {
	t.Helper()
	e := &neutronTest{
		T:                 t,
		url:               storetest.URL(t),
		neutron:           &notifytest.Neutron{},
		beforeProvision:   func() {},
		afterProvision:    func() {},
		beforeDeprovision: func() {},
	}
	e.store = storetest.Open(t, e.url)
	server := httptest.NewServer(e.neutron)
	t.Cleanup(server.Close)
	var err error
	if e.cloud, err = cloud.New(cloud.Config{Neutron: server.URL, Timeout: time.Hour}); err != nil {
		t.Fatal(err)
	}
	e.cloud.Reread(e.store.Lease.RereadCloudReservation)
	e.acts = newActivities(activities.Options{Store: e.store, Cloud: interruptedCloud{e.cloud, e}})
	start := time.Now().Add(time.Hour)
	e.lease = createOneHourLease(t, e.store, "l", "p", start, draft(e))
	return e
}

// registerFloatingIPs registers two floating IPs, and returns the ID of their network.
func (e *neutronTest) registerFloatingIPs() uuid.UUID {
	e.Helper()
	nets, err := e.store.Network.CreateNetworks(e.Context(),
		[]network.NetworkChange{{Project: new("p"), Name: new("out")}})
	if err != nil {
		e.Fatal(err)
	}
	net := nets[0].ID
	if _, err := e.store.Network.CreateSubnets(e.Context(), []network.SubnetChange{{
		Network: &net,
		Project: new("p"),
		CIDR:    new(netip.MustParsePrefix("172.24.4.0/24")),
		Pools:   &[]network.Pool{{Start: netip.MustParseAddr("172.24.4.100"), End: netip.MustParseAddr("172.24.4.200")}},
	}}); err != nil {
		e.Fatal(err)
	}
	for _, ip := range []string{"172.24.4.10", "172.24.4.11"} {
		if _, err := e.store.Lease.RegisterFloatingIP(e.Context(), net, netip.MustParseAddr(ip)); err != nil {
			e.Fatal(err)
		}
	}
	return net
}

// advance makes an event of the lease due, and runs a sweep of the due steps.
func (e *neutronTest) advance(event lease.EventType) {
	e.Helper()
	storetest.Exec(e.T, e.url, `update event set at = now() where event_type = '`+string(event)+`'`)
	if _, err := e.acts.AdvanceLeases(e.Context(), time.Now()); err != nil {
		e.Fatal(err)
	}
}

func (e *neutronTest) extend() {
	e.Helper()
	end := lease.RequestedDate{At: e.lease.EndAt.Add(time.Hour)}
	if _, err := e.store.Lease.UpdateLease(e.Context(), e.lease.ID, lease.Change{End: &end}); err != nil {
		e.Fatal(err)
	}
}

// setAmount changes the number of the reservation's floating IPs.
func (e *neutronTest) setAmount(n int) {
	e.Helper()
	if _, err := e.store.Lease.UpdateLease(e.Context(), e.lease.ID, lease.Change{
		Reservations: []lease.ReservationChange{{ID: e.lease.Reservations[0].ID.String(), Amount: &n}},
	}); err != nil {
		e.Fatal(err)
	}
}

// resync runs the activity with which the workflow of an active lease updates Neutron.
func (e *neutronTest) resync() error {
	return e.acts.ProvisionReservation(e.Context(), e.lease.Reservations[0].ID)
}

func (e *neutronTest) end() {
	e.Helper()
	storetest.Exec(e.T, e.url, `update event set status = 'DONE' where event_type = 'before_end_lease'`)
	e.advance(lease.EndLease)
	if l, err := e.store.Lease.Lease(e.Context(), e.lease.ID); err != nil || l.Status != lease.Terminated {
		e.Errorf("lease after its end: got status %s, error %v; want TERMINATED", l.Status, err)
	}
}

// delete deletes the lease, as its workflow does.
func (e *neutronTest) delete() {
	e.Helper()
	deleteStarted(e.T, e.acts, e.lease)
}

// deleteStarted deletes a lease that has started and has one reservation, as its workflow does.
func deleteStarted(t *testing.T, acts *activities.Activities, l lease.Lease) {
	t.Helper()
	_, err := acts.Store.Lease.DeleteLease(t.Context(), l.ID)
	if err == nil {
		_, err = acts.Store.Lease.BeginLease(t.Context(), l.ID, lease.StepDelete)
	}
	if err == nil {
		err = acts.ReleaseReservation(t.Context(), l.Reservations[0].ID)
	}
	if err == nil {
		_, err = acts.Store.Lease.FinishLease(t.Context(), l.ID, lease.StepDelete, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (e *neutronTest) want(when string, n int) {
	e.Helper()
	if all := e.neutron.FloatingIPs(); len(all) != n {
		e.Errorf("floating IPs %s: got %+v, want %d", when, all, n)
	}
}

// A project can change the description and the tags of its reserved floating IPs, and can change its lease.
// The project must not keep the floating IPs after the end of the lease.
func TestReservedFloatingIP_OfAChangedLeaseIsDeletedWithAnyName(t *testing.T) {
	t.Parallel()
	mustResync := func(e *neutronTest) {
		e.Helper()
		if err := e.resync(); err != nil {
			e.Error(err)
		}
	}
	for name, story := range map[string]func(e *neutronTest){
		"renamed, then extended, then ended": func(e *neutronTest) {
			e.extend()
			mustResync(e)
			e.end()
		},
		"renamed, extended and deleted before the resync": func(e *neutronTest) {
			e.extend()
			e.delete()
		},
		"renamed, extended and ended before the resync": func(e *neutronTest) {
			e.extend()
			e.end()
		},
		"amount raised": func(e *neutronTest) {
			e.setAmount(2)
			mustResync(e)
			e.want("after the amount was raised", 2)
			e.neutron.RenameFloatingIPs("mine again")
			e.end()
		},
		"amount raised, but not all created": func(e *neutronTest) {
			e.extend()
			mustResync(e) // sets the tags of the first floating IP again
			e.setAmount(2)
			e.neutron.InjectFaults(notifytest.Fault{Request: "PUT /", Status: 500})
			if err := e.resync(); err == nil {
				e.Error("resync while Neutron refuses tags: got no error")
			}
			e.want("of which one has no tags", 2)
			e.neutron.RenameFloatingIPs("mine again")
			e.delete()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFloatingIPTest(t)
			e.advance(lease.StartLease)
			e.want("of the active lease", 1)
			e.neutron.RenameFloatingIPs("mine")
			story(e)
			e.want("after the end of the lease", 0)
		})
	}
}

// A lease can be deleted while berth creates its floating IPs, and the project can rename them before berth
// deletes them.
func TestReservedFloatingIP_OfALeaseDeletedMeanwhileIsDeletedWithAnyName(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(e *neutronTest, renameAndDelete func()){
		"while it started": func(e *neutronTest, renameAndDelete func()) {
			e.afterProvision = renameAndDelete
			e.advance(lease.StartLease)
		},
		"while a further one was created": func(e *neutronTest, renameAndDelete func()) {
			e.advance(lease.StartLease)
			e.setAmount(2)
			e.afterProvision = renameAndDelete
			if err := e.resync(); err == nil {
				e.Error("resync of a lease that was deleted meanwhile: got no error")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFloatingIPTest(t)
			run(e, func() {
				e.neutron.RenameFloatingIPs("mine")
				if _, err := e.store.Lease.DeleteLease(t.Context(), e.lease.ID); err != nil {
					t.Error(err)
				}
			})
			e.want("after the deletion of the lease", 0)
		})
	}
}

// The workflow of a lease can update Neutron while another workflow ends the lease at its end date. What the
// update creates afterwards, and whatever its project makes of it, must not stay with the project.
func TestReservedFloatingIP_CreatedAfterTheEndOfItsLeaseIsDeleted(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]notifytest.Fault{
		"and the update failed":                {Request: "PUT /", Status: 500},
		"and the answer to the update is lost": {Request: "POST /floatingips", Status: 500, Applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFloatingIPTest(t)
			e.advance(lease.StartLease)
			e.setAmount(2)
			e.beforeProvision = func() {
				e.end()
				e.want("after the end of the lease", 0)
				e.neutron.InjectFaults(fault)
			}
			if err := e.resync(); err == nil {
				t.Error("update of a lease that has ended meanwhile: got no error")
			}
			e.neutron.RenameFloatingIPs("mine")
			e.want("that the update created after the end", 1)
			e.clearLeftovers()
			e.want("after the repeated removal", 0)
		})
	}
}

// The answer of Neutron that names a new floating IP can be lost, and its project can change the description
// at once. Then berth knows the floating IP by its address alone.
func TestReservedFloatingIP_WithALostAnswerIsDeletedWithAnyName(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(e *neutronTest){
		"ended after a retry": func(e *neutronTest) {
			if err := e.resync(); err != nil {
				e.Errorf("retry after a lost answer: got %v, want no error", err)
			}
			e.want("after the retry", 2)
			e.neutron.RenameFloatingIPs("mine again")
			e.end()
		},
		"ended":   (*neutronTest).end,
		"deleted": (*neutronTest).delete,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFloatingIPTest(t)
			e.advance(lease.StartLease)
			e.setAmount(2)
			e.neutron.InjectFaults(notifytest.Fault{Request: "POST /floatingips", Status: 500, Applied: true})
			if err := e.resync(); err == nil {
				t.Error("creation with a lost answer: got no error")
			}
			e.neutron.RenameFloatingIPs("mine")
			e.want("of which one has no known ID", 2)
			end(e)
			e.want("after the end of the lease", 0)
		})
	}
}

// Administrators can have given a project a floating IP with an address before they made the address
// reservable. It is not the reservation's, also not after the end of the lease.
func TestReservedFloatingIP_OneThatItsProjectHadBeforeStays(t *testing.T) {
	t.Parallel()
	e := newFloatingIPTest(t)
	f := e.lease.Reservations[0]
	e.neutron.PutFloatingIP(notifytest.FloatingIP{
		Network:     f.Network.String(),
		IP:          f.Addresses[0].String(),
		Project:     e.lease.Project,
		Description: "mine",
	})
	e.advance(lease.StartLease)
	if l, err := e.store.Lease.Lease(t.Context(), e.lease.ID); err != nil || l.Status != lease.Starting {
		t.Errorf("lease whose address is in use: got status %s, error %v; want STARTING", l.Status, err)
	}
	e.delete()
	e.clearLeftovers()
	e.want("after the end of a lease that could not start", 1)
}

// startNext starts another lease of the project with the addresses of the lease, in another process.
func (e *neutronTest) startNext() (next lease.Lease) {
	e.Helper()
	r := e.lease.Reservations[0]
	next = createOneHourLease(e.T, e.store, "next", e.lease.Project, time.Now().Add(time.Hour), lease.ReservationDraft{
		Type:     lease.FloatingIP,
		Network:  r.Network,
		Amount:   1,
		Required: r.Addresses,
	})
	storetest.Exec(e.T, e.url, `update event set at = now() where lease_id = $1 and event_type = 'start_lease'`, next.ID)
	other := newActivities(activities.Options{Store: e.store, Cloud: e.cloud})
	if _, err := other.AdvanceLeases(e.Context(), time.Now()); err != nil {
		e.Error(err)
	}
	if l, err := e.store.Lease.Lease(e.Context(), next.ID); err != nil || l.Status != lease.Active {
		e.Errorf("next lease of the address after its start: got status %s, error %v; want ACTIVE", l.Status, err)
	}
	return next
}

// A process updates or removes a reservation as it has read it. Meanwhile the lease can be deleted, and the
// next lease of the project can create its floating IP at the same address.
func TestReservedFloatingIP_OfTheNextLeaseSurvivesEveryLateAttempt(t *testing.T) {
	t.Parallel()
	mustFail := func(e *neutronTest) {
		e.Helper()
		if err := e.resync(); err == nil {
			e.Error("update of a lease that was deleted meanwhile: got no error")
		}
	}
	for name, story := range map[string]func(e *neutronTest, deleteAndStartNext func()){
		"before an update": func(e *neutronTest, deleteAndStartNext func()) {
			e.advance(lease.StartLease)
			e.beforeProvision = deleteAndStartNext
			mustFail(e)
		},
		"after an update": func(e *neutronTest, deleteAndStartNext func()) {
			e.advance(lease.StartLease)
			e.afterProvision = deleteAndStartNext
			mustFail(e)
		},
		"before an abandoned start is undone": func(e *neutronTest, deleteAndStartNext func()) {
			e.afterProvision = deleteAndStartNext
			e.advance(lease.StartLease)
		},
		"before its own removal": func(e *neutronTest, deleteAndStartNext func()) {
			e.advance(lease.StartLease)
			_, err := e.store.Lease.DeleteLease(e.Context(), e.lease.ID)
			if err == nil {
				_, err = e.store.Lease.BeginLease(e.Context(), e.lease.ID, lease.StepDelete)
			}
			if err != nil {
				e.Error(err)
			}
			e.beforeDeprovision = deleteAndStartNext
			_ = e.acts.ReleaseReservation(e.Context(), e.lease.Reservations[0].ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newFloatingIPTest(t)
			var next lease.Lease
			story(e, func() {
				e.beforeProvision, e.afterProvision, e.beforeDeprovision = func() {}, func() {}, func() {}
				e.delete()
				next = e.startNext()
			})
			e.wantOnly(next)
			e.clearLeftovers()
			e.wantOnly(next)
		})
	}
}

// A sweep reads many leftovers before it removes the first one.
func TestReservedFloatingIP_OfTheNextLeaseSurvivesASweepThatHasReadTheFormerOne(t *testing.T) {
	t.Parallel()
	e := newFloatingIPTest(t)
	e.advance(lease.StartLease)
	e.delete()
	var next lease.Lease
	e.beforeDeprovision = func() {
		e.beforeDeprovision = func() {}
		next = e.startNext()
	}
	e.clearLeftovers()
	e.wantOnly(next)
}

// wantOnly checks that Neutron has the floating IP of a lease, and no other one.
func (e *neutronTest) wantOnly(l lease.Lease) {
	e.Helper()
	if len(l.Reservations) != 1 {
		e.Fatal("the next lease was not created")
	}
	tag := "reservation:" + l.Reservations[0].ID.String()
	if all := e.neutron.FloatingIPs(); len(all) != 1 || !slices.Contains(all[0].Tags, tag) {
		e.Errorf("floating IPs: got %+v, want only the one with the tag %s", all, tag)
	}
}
