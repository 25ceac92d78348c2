package leasestore_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

// registerAddresses creates a network and registers n consecutive floating IPs, beginning with 172.24.4.10.
func (t *fixture) registerAddresses(n int) uuid.UUID {
	t.Helper()
	nets, err := t.Network.CreateNetworks(t.Context(),
		[]network.NetworkChange{{Project: new("p"), Name: new("out")}})
	if err != nil {
		t.Fatal(err)
	}
	net := nets[0]
	if _, err := t.Network.CreateSubnets(t.Context(), []network.SubnetChange{{
		Network: &net.ID,
		Project: new("p"),
		CIDR:    new(netip.MustParsePrefix("172.24.4.0/24")),
		Pools:   &[]network.Pool{{Start: netip.MustParseAddr("172.24.4.100"), End: netip.MustParseAddr("172.24.4.200")}},
	}}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := t.Lease.RegisterFloatingIP(t.Context(), net.ID, testAddress(i)); err != nil {
			t.Fatal(err)
		}
	}
	return net.ID
}

func testAddress(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("172.24.4.%d", 10+i)) }

func addressesDraft(network uuid.UUID, from, to, amount int, required ...netip.Addr) lease.Draft {
	d := hostsDraft(from, to, 1, 1)
	d.Reservations = []lease.ReservationDraft{
		{
			Type:     lease.FloatingIP,
			Network:  network,
			Amount:   amount,
			Required: required,
		},
	}
	return d
}

func TestFloatingIP_RegisteredOutsideOfAllocationPools(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	net := e.registerAddresses(1)
	for ip, want := range map[string]lease.Kind{
		"172.24.4.1":   lease.InvalidInput,
		"172.24.4.150": lease.InvalidInput,
		"10.0.0.1":     lease.UnknownNetwork,
		"172.24.4.10":  lease.AddressInUse,
	} {
		t.Run(ip, func(t *testing.T) {
			_, err := e.Lease.RegisterFloatingIP(t.Context(), net, netip.MustParseAddr(ip))
			if faultKind(err) != want {
				t.Errorf("register a floating IP: want a fault of kind %q, got %v", want, err)
			}
		})
	}
	_, err := e.Lease.RegisterFloatingIP(t.Context(), uuid.New(), testAddress(3))
	if faultKind(err) != lease.UnknownNetwork {
		t.Errorf(
			"register a floating IP of an unknown network: got %v, want a fault of kind UnknownNetwork",
			err,
		)
	}
	all, err := e.Lease.FloatingIPs(t.Context(), lease.ReservableFloatingIP{}, 2)
	if err != nil || len(all) != 1 || all[0].IP != testAddress(0) {
		t.Fatalf("list floating IPs: got %+v, error %v; want the one that was registered", all, err)
	}
	l := e.createLease(addressesDraft(net, 1, 2, 1))
	if err := e.Lease.DeleteFloatingIP(t.Context(), all[0].ID); faultKind(err) != lease.AddressInUse {
		t.Errorf("delete a reserved floating IP: got %v, want a fault of kind AddressInUse", err)
	}
	e.deleteLease(l.ID)
	if err := e.Lease.DeleteFloatingIP(t.Context(), all[0].ID); err != nil {
		t.Error(err)
	}
	if err := e.Lease.DeleteFloatingIP(t.Context(), all[0].ID); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("delete a floating IP twice: got error %v, want ErrNotFound", err)
	}
}

func TestFloatingIP_AllocatedToOneReservationAtATime(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	net := e.registerAddresses(3)
	a := e.createLease(addressesDraft(net, 1, 2, 2, testAddress(1)))
	if d := cmp.Diff([]netip.Addr{testAddress(0), testAddress(1)}, a.Reservations[0].Addresses, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error(d)
	}
	e.expectCreateFault(addressesDraft(net, 1, 2, 1, testAddress(1)), lease.NotEnoughAddresses)
	e.expectCreateFault(addressesDraft(net, 1, 2, 2), lease.NotEnoughAddresses)
	b := e.createLease(addressesDraft(net, 1, 2, 1))
	e.createLease(addressesDraft(net, 2, 3, 3))
	e.expectUpdateFault(a.ID, endChange(3), lease.NotEnoughAddresses)
	e.expectUpdateFault(a.ID, amountChange(a, 3), lease.NotEnoughAddresses)
	a = e.updateLease(a.ID, lease.Change{
		Reservations: []lease.ReservationChange{
			{ID: a.Reservations[0].ID.String(), Amount: new(1), Required: &[]netip.Addr{}},
		},
	})
	if len(a.Reservations[0].Addresses) != 1 || len(a.Reservations[0].Required) != 0 {
		t.Errorf(
			"reservation whose amount was reduced to 1: got %+v, want one address and none required",
			a.Reservations[0],
		)
	}
	_, err := storetest.Connect(t, e.url).Exec(t.Context(), `
		update floatingip_allocation set floatingip_id = (select floatingip_id from floatingip_allocation where reservation_id = $1)
		where reservation_id = $2`, a.Reservations[0].ID, b.Reservations[0].ID)
	if err == nil {
		t.Error(
			"allocate one floating IP to two reservations at the same time by SQL: got no error, want the table to reject it",
		)
	}
}

func TestFloatingIP_FreeAfterTheEnd(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	net := e.registerAddresses(1)
	l := e.createActive(addressesDraft(net, 1, 2, 1))
	e.beginStep(l.ID, lease.StepEnd)
	e.release(l)
	if l = e.finishStep(l.ID, lease.StepEnd, nil); len(l.Reservations[0].Addresses) != 0 {
		t.Errorf("reservation after its end: got %+v, want no addresses", l.Reservations[0])
	}
	e.createLease(addressesDraft(net, 1, 2, 1))
}

// Package cloud knows a floating IP by its address alone. If the reservation has given up the address, the
// reservation that has begun to create a floating IP there last has it.
func TestFloatingIP_LastReservationToCreateItHasIt(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	net := e.registerAddresses(2)
	l := e.createActive(addressesDraft(net, 1, 2, 2))
	next := e.createActive(addressesDraft(net, 3, 4, 2))
	first, second := l.Reservations[0].ID, next.Reservations[0].ID
	read := func(id uuid.UUID) lease.CloudReservation {
		t.Helper()
		c, err := e.Lease.CloudReservation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	begin := func(id uuid.UUID, all ...lease.ReservableFloatingIP) error {
		return e.Lease.BeginFloatingIPs(t.Context(), id, all)
	}
	both := read(first).FloatingIPs
	if got := read(first); len(got.Created) != 0 || len(got.NotCreated()) != 2 || begin(first, both...) != nil {
		t.Errorf("reservation before its floating IPs are created: got %+v, want two that are not created", got)
	}
	if got := read(first); len(got.Created) != 2 || len(got.NotCreated()) != 0 {
		t.Errorf("reservation after berth has begun: got %+v, want two floating IPs", got)
	}
	if err := begin(second, both[0]); err != nil {
		t.Error(err)
	}
	if one, other := read(first).Created, read(second).Created; len(one) != 1 || len(other) != 1 ||
		one[0].IP != both[1].IP || other[0].IP != both[0].IP {
		t.Errorf("after the next reservation has begun with the first address: got %+v and %+v, want one each", one, other)
	}
	if err := begin(second, lease.ReservableFloatingIP{ID: uuid.New()}); err == nil || errors.Is(err, db.ErrConflict) {
		t.Errorf("begin with an address that the reservation does not have: got %v, want another error than ErrConflict", err)
	}
	e.makeDue(l)
	e.beginStep(l.ID, lease.StepBeforeEnd)
	e.finishStep(l.ID, lease.StepBeforeEnd, nil)
	e.beginStep(l.ID, lease.StepEnd)
	if err := begin(first, both...); !errors.Is(err, db.ErrConflict) {
		t.Errorf("begin for a lease that ends: got %v, want ErrConflict", err)
	}
}

// The next reservation of an address can end before a late attempt of the former one creates its floating IP
// there. Only the repeated removal of the former one deletes this floating IP then.
func TestFloatingIP_OfALateAttemptIsNotThatOfAnEndedReservation(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	net := e.registerAddresses(1)
	create := func() (lease.Lease, lease.CloudReservation) {
		t.Helper()
		l := e.createActive(addressesDraft(net, 1, 2, 1))
		c, err := e.Lease.CloudReservation(t.Context(), l.Reservations[0].ID)
		if err == nil {
			err = e.Lease.BeginFloatingIPs(t.Context(), c.ID, c.FloatingIPs)
		}
		if err != nil {
			t.Fatal(err)
		}
		return l, c
	}
	end := func(l lease.Lease) {
		t.Helper()
		e.beginStep(l.ID, lease.StepEnd)
		e.release(l)
		e.finishStep(l.ID, lease.StepEnd, nil)
	}
	former, late := create()
	end(former)
	next, _ := create()
	for _, want := range []int{1, 0} { // while the next reservation is active, and after its end
		now, err := e.Lease.RereadCloudReservation(t.Context(), late)
		if err != nil || len(now.Created) != 0 || len(now.CreatedByOthers) != want {
			t.Errorf("former reservation of the address: got %+v, error %v; want %d floating IPs of others", now, err, want)
		}
		if want == 1 {
			end(next)
		}
	}
}

// A start fails if the project has a floating IP with a reserved address. The end of such a lease must keep
// this floating IP.
func TestFloatingIP_ReservationWhoseStartFailedHasCreatedNone(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	l := e.createLease(addressesDraft(e.registerAddresses(1), 1, 2, 1))
	r := l.Reservations[0].ID
	e.makeDue(l)
	e.beginStep(l.ID, lease.StepStart)
	e.finishStep(l.ID, lease.StepStart, map[uuid.UUID]string{r: "in use by another owner"})
	c, err := e.Lease.EndingCloudReservation(t.Context(), r)
	if err != nil || len(c.Created) != 0 || len(c.FloatingIPs) != 1 {
		t.Errorf("reservation whose start failed: got %+v, error %v; want one floating IP that is not created", c, err)
	}
}

// A process can create a floating IP while another one deletes the lease. The repeated removal of the lease's
// reservations gets the ID of the floating IP in any order.
func TestFloatingIP_IDsOfADeletedReservationAreKeptForItsRemoval(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	l := e.createActive(addressesDraft(e.registerAddresses(1), 1, 2, 1))
	r := l.Reservations[0].ID
	claim := lease.CloudReservation{Reservation: l.Reservations[0], Lease: l.ID, Project: l.Project}
	save := func(created, deleted []string) {
		t.Helper()
		ids := leasestore.NeutronIDs{CreatedFloatingIPs: created, DeletedFloatingIPs: deleted}
		if err := e.Lease.SaveNeutronIDs(t.Context(), claim, ids); err != nil {
			t.Fatal(err)
		}
	}
	save([]string{"a", "b"}, nil)
	save([]string{"b", "c"}, []string{"a"})
	if _, err := e.Lease.DeleteLease(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	e.beginStep(l.ID, lease.StepDelete)
	save([]string{"d"}, nil)
	c, err := e.Lease.EndingCloudReservation(t.Context(), r)
	slices.Sort(c.FloatingIPIDs)
	if err != nil || !slices.Equal(c.FloatingIPIDs, []string{"b", "c", "d"}) {
		t.Errorf("reservation of a lease that is being deleted: got %+v, error %v; want the floating IPs b, c and d", c, err)
	}
	e.release(l)
	if _, err := e.Lease.FinishLease(t.Context(), l.ID, lease.StepDelete, nil); err != nil {
		t.Fatal(err)
	}
	save([]string{"e"}, nil)
	c.FloatingIPIDs = []string{"b", "f"}
	if err := e.Lease.KeepLeftover(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, e.url, `update reservation_leftover set due_at = now()`)
	all, err := e.Lease.DueLeftovers(t.Context(), 10)
	if err != nil || len(all) != 1 {
		t.Fatalf("leftovers: got %+v, error %v; want one", all, err)
	}
	got := all[0].FloatingIPIDs
	slices.Sort(got)
	if !slices.Equal(got, []string{"b", "c", "d", "e", "f"}) {
		t.Errorf("leftover of the deleted lease: got the floating IPs %v, want b, c, d, e and f", got)
	}
}

// Neutron gives no port the network address or the IPv4 broadcast address of a subnet, so a lease of such a
// floating IP could not start.
func TestFloatingIP_IsAHostAddressOfItsSubnet(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	for cidr, addresses := range map[string]map[string]lease.Kind{
		"203.0.113.0/24": {
			"203.0.113.0":   lease.InvalidInput,
			"203.0.113.255": lease.InvalidInput,
			"203.0.113.2":   "",
			"203.0.113.254": "",
		},
		"203.0.113.64/29": {"203.0.113.64": lease.InvalidInput, "203.0.113.71": lease.InvalidInput, "203.0.113.70": ""},
		"203.0.113.64/30": {"203.0.113.64": lease.InvalidInput, "203.0.113.67": lease.InvalidInput, "203.0.113.66": ""},
		"203.0.113.64/31": {"203.0.113.64": "", "203.0.113.65": ""},
		"2001:db8::/64":   {"2001:db8::": lease.InvalidInput, "2001:db8::ffff:ffff:ffff:ffff": "", "2001:db8::1": ""},
		"2001:db8::/127":  {"2001:db8::": "", "2001:db8::1": ""},
	} {
		nets, err := e.Network.CreateNetworks(t.Context(), []network.NetworkChange{{Project: new("p")}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Network.CreateSubnets(t.Context(), []network.SubnetChange{{
			Network: &nets[0].ID,
			Project: new("p"),
			CIDR:    new(netip.MustParsePrefix(cidr)),
			Gateway: new(netip.Addr{}),
			DHCP:    new(false),
			Pools:   &[]network.Pool{},
		}}); err != nil {
			t.Fatal(err)
		}
		for ip, want := range addresses {
			t.Run(cidr+" "+ip, func(t *testing.T) {
				_, err := e.Lease.RegisterFloatingIP(t.Context(), nets[0].ID, netip.MustParseAddr(ip))
				if faultKind(err) != want || want == "" && err != nil {
					t.Errorf("register %s of the subnet %s: want a fault of kind %q, got %v",
						ip, cidr, want, err)
				}
			})
		}
	}
}

// The addresses are free in the order of their numbers, so a reservation of any address would get the
// required one.
func TestFloatingIP_RequiredOnesAreAllocatedFirst(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	net := e.registerAddresses(3)
	d := addressesDraft(net, 1, 2, 2)
	d.Reservations = append(d.Reservations, lease.ReservationDraft{
		Type:     lease.FloatingIP,
		Network:  net,
		Amount:   1,
		Required: []netip.Addr{testAddress(0)},
	})
	if _, err := e.Lease.CreateLease(t.Context(), d); err != nil {
		t.Errorf("create a lease of two floating IPs and of one that is required: got %v, want no error", err)
	}
}
