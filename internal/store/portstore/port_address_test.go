package portstore_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/storetest"
)

func TestAddress_LastFreeAddressIsAllocatedOnce(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/28") // 13 addresses
	const contenders = 20
	var mutex sync.Mutex
	won, lost := map[string]bool{}, 0

	runConcurrently(contenders, func(int) {
		ports, err := fx.Network.CreatePorts(t.Context(), []network.PortChange{fx.portDraft("")})
		mutex.Lock()
		defer mutex.Unlock()
		switch {
		case err == nil:
			won[ports[0].Addresses[0].IP.String()] = true
		case faultKind(err) == network.IPAddressGenerationFailure:
			lost++
		default:
			t.Error(err)
		}
	})

	if len(won) != 13 || lost != contenders-13 {
		t.Errorf(
			"20 requests for 13 free addresses: got %d addresses allocated and %d requests refused, want 13 and 7",
			len(won),
			lost,
		)
	}
}

func TestAddress_SameAddressOrMACIsAllocatedOnce(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	for what, more := range map[network.Kind]func(*network.PortChange){
		network.AddressInUse: withFixedIP("10.0.0.77"),
		network.MACInUse:     func(c *network.PortChange) { c.MAC = ptr("fa:16:3e:00:00:01") },
	} {
		results := make([]error, 8)
		runConcurrently(len(results), func(i int) {
			_, results[i] = fx.Network.CreatePorts(t.Context(), []network.PortChange{fx.portDraft("", more)})
		})
		winners := 0
		for _, err := range results {
			if err == nil {
				winners++
			} else if faultKind(err) != what {
				t.Errorf("concurrent requests for one address or MAC: want no error or %s, got %v", what, err)
			}
		}
		if winners != 1 {
			t.Errorf("concurrent requests that may fail with %s: %d of them succeeded, want 1", what, winners)
		}
	}
}

func TestAddress_ConcurrentBulksFillSubnet(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	const clients, each = 12, 21 // of the 253 addresses of the subnet, one is left
	results := make([]error, clients)
	drafts := slices.Repeat([]network.PortChange{fx.portDraft("")}, each)

	runConcurrently(clients, func(i int) { _, results[i] = fx.Network.CreatePorts(t.Context(), drafts) })

	if err := errors.Join(results...); err != nil {
		t.Error(err)
	}
	taken, err := fx.Network.AddressesTaken(t.Context(), []uuid.UUID{fx.network.ID})
	if diff := cmp.Diff(map[uuid.UUID]int64{fx.subnet.ID: clients * each}, taken); diff != "" || err != nil {
		t.Error("allocated addresses of the subnet differ (-want +got):", diff, err)
	}
	if _, err := fx.Network.CreatePorts(t.Context(), drafts[:1]); err != nil {
		t.Error("create a port with the last free address: got an error, want none:", err)
	}
	_, err = fx.Network.CreatePorts(t.Context(), drafts[:1])
	if faultKind(err) != network.IPAddressGenerationFailure {
		t.Error("create a port without a free address: want IPAddressGenerationFailure, got", err)
	}
}

// All transactions share the lock table of PostgreSQL. The last port of the request names an address for
// which the request waits, so that the test can count the locks of the request.
func TestAddress_TransactionHoldsFewAdvisoryLocks(t *testing.T) {
	t.Parallel()
	fx, url := newLockFixture(t)
	holder, rival := fx.createPort("", withFixedIP("10.0.0.9")), storetest.NewRival(t, url)
	var drafts []network.PortChange
	for range 4 { // 256 addresses
		on := fx.withNetwork("10.0.0.0/24")
		free := network.FixedIP{Subnet: on.subnet.ID}
		port := on.portDraft("", withFixedIPs(free, free, free, free))
		drafts = append(drafts, slices.Repeat([]network.PortChange{port}, 16)...)
	}
	create := func(last network.PortChange) error {
		_, err := fx.Network.CreatePorts(t.Context(), append(slices.Clone(drafts), last))
		return err
	}

	err := rival.RunAgainst(func() error { return create(fx.portDraft("", withFixedIP("10.0.0.77"))) },
		fmt.Sprintf(`
			insert into port_address (subnet_id, address, port_id, position)
			values ('%s', '10.0.0.77', '%s', 1)`, fx.subnet.ID, holder.ID),
		`create temporary table held as
			select count(*)
			from pg_locks
			where locktype = 'advisory' and objsubid = 2 -- a lock with two keys
				and database = (select oid from pg_database where datname = current_database())`,
		`delete from port_address where address = '10.0.0.77'`)
	var locks int
	if err := rival.DB.QueryRow(t.Context(), `select count from held`).Scan(&locks); err != nil {
		t.Fatal(err)
	}
	if err != nil || locks < 200 || locks > 256 {
		t.Errorf("a request for 256 addresses: got %d locks of addresses and the error %v, want 200 to 256 and none",
			locks, err)
	}
	if err := create(fx.portDraft("")); faultKind(err) != network.InvalidInput {
		t.Errorf("a request for 257 addresses: got the error %v, want InvalidInput", err)
	}
}

func TestAddress_BulkOf100PortsFitsIntoASmallSubnet(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/25") // 125 addresses
	drafts := slices.Repeat([]network.PortChange{fx.portDraft("")}, 100)
	if _, err := fx.Network.CreatePorts(t.Context(), drafts); err != nil {
		t.Errorf("a request for 100 of 125 addresses: got the error %v, want none", err)
	}
}

func TestAddress_UpdateFixedIPs(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	p := fx.createPort(cmp1, withFixedIP("10.0.0.9"))
	fx.updateStatus(p.ID, l2OnCmp1, dhcpReady)
	subnet := func(c *network.PortChange) { c.FixedIPs = &[]network.FixedIP{{Subnet: fx.subnet.ID}} }
	var keep network.PortChange
	subnet(&keep)

	if kept := fx.updatePort(p.ID, keep); kept.Addresses[0].IP.String() != "10.0.0.9" ||
		kept.Status != network.Active ||
		kept.Revision != 2 {
		t.Errorf(
			"request any address of the port's subnet: got %+v, want the old address and status, and revision 2",
			kept,
		)
	}
	var move network.PortChange
	withFixedIP("10.0.0.10")(&move)
	moved := fx.updatePort(p.ID, move)
	if d := cmp.Diff([]string{"DHCP@"}, blockNames(moved.Blocks)); d != "" || moved.Status != network.Down {
		t.Errorf("change the address of a port: got status %s, want DOWN; blocks (-want +got): %s",
			moved.Status, d)
	}
	fx.createPort("", withFixedIP("10.0.0.9"))
	if err := fx.Network.DeleteSubnet(t.Context(), fx.subnet.ID, nil); faultKind(err) != network.SubnetInUse {
		t.Errorf("delete a subnet in use: got error %v, want SubnetInUse", err)
	}
}

// A port that may get any address must not get by chance the address that another port of the request, or
// another entry of its own fixed IPs, names. The pool of the subnet has five addresses, and the request needs
// all of them.
func TestAddress_NamedAddressesAreNotAllocatedByChance(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.0.0.0/24")
	named := func(ip string) network.FixedIP { return network.FixedIP{IP: netip.MustParseAddr(ip)} }
	for name, create := range map[string]func(fixture, network.FixedIP) error{
		"named by the last port of a bulk": func(fx fixture, free network.FixedIP) error {
			drafts := []network.PortChange{fx.portDraft(""), fx.portDraft(""), fx.portDraft(""), fx.portDraft("", withFixedIPs(free)), fx.portDraft("", withFixedIPs(named("10.9.0.5")))}
			_, err := fx.Network.CreatePorts(t.Context(), drafts)
			return err
		},
		"named after other fixed IPs of a port": func(fx fixture, free network.FixedIP) error {
			_, err := fx.Network.CreatePorts(t.Context(), []network.PortChange{fx.portDraft("", withFixedIPs(free, free, free, named("10.9.0.6"), named("10.9.0.5")))})
			return err
		},
		"named in an update": func(fx fixture, free network.FixedIP) error {
			_, err := fx.Network.UpdatePort(t.Context(), fx.createPort("").ID, network.PortChange{FixedIPs: &[]network.FixedIP{free, free, free, named("10.9.0.6"), named("10.9.0.5")}}, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 15 { // with addresses at random, one of the fifteen requests fails almost surely
				fx := fx.withNetwork("10.9.0.0/29")
				if err := create(fx, network.FixedIP{Subnet: fx.subnet.ID}); err != nil {
					t.Fatalf("request for all five addresses of a subnet: got %v, want no error", err)
				}
			}
		})
	}
}

// An address that a port of another network names is free.
func TestAddress_NamedAddressesCountOnTheirNetworkOnly(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, "10.9.0.0/30") // the only address for ports is 10.9.0.2
	other := fx.withNetwork("10.9.0.0/24")
	ports, err := fx.Network.CreatePorts(t.Context(),
		[]network.PortChange{fx.portDraft(""), other.portDraft("", withFixedIP("10.9.0.2"))})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range ports {
		if got := p.Addresses[0].IP.String(); got != "10.9.0.2" {
			t.Errorf("address of port %d: got %s, want 10.9.0.2", i, got)
		}
	}
}
