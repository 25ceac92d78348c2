package activities_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/activities"
	"berth/internal/cloud"
	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/notify/notifytest"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// createInstanceLeases creates leases of four instances each, which is the capacity of the only host. Each
// lease starts when the one before it ends.
func createInstanceLeases(t *testing.T, s *store.Store, projects ...string) (all []lease.Lease) {
	t.Helper()
	storetest.AddHost(t, s, "cmp-1", map[string]inventory.Inventory{
		"VCPU":      inventory.NewInventory(8),
		"MEMORY_MB": inventory.NewInventory(1024),
		"DISK_GB":   inventory.NewInventory(20),
	})
	if _, err := s.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: "cmp-1"}, nil); err != nil {
		t.Fatal(err)
	}
	for i, project := range projects {
		start := time.Now().UTC().Truncate(time.Hour).Add(time.Duration(i+1) * time.Hour)
		l := createOneHourLease(t, s, project, project, start, lease.ReservationDraft{
			Type:     lease.VirtualInstance,
			Amount:   4,
			VCPUs:    2,
			MemoryMB: 256,
			DiskGB:   1,
		})
		all = append(all, l)
	}
	return all
}

// boot adds a server with the flavor of a reservation to the stub of Nova, and does in Placement what Nova
// does for the server: it allocates a slot of the reservation, which the stub then moves and deletes.
func boot(t *testing.T, s *store.Store, url string, stub *notifytest.Nova, reservation uuid.UUID) notifytest.Server {
	t.Helper()
	var nested string
	if err := storetest.Connect(t, url).QueryRow(t.Context(), `select uuid from provider where name = 'blazar_cmp-1'`).Scan(&nested); err != nil {
		t.Fatal(err)
	}
	server := stub.AddServer(notifytest.Server{ID: uuid.NewString(), Host: "cmp-1", Flavor: reservation.String()})
	storetest.Allocate(t, s, inventory.ConsumerWrite{
		Consumer:    server.ID,
		Project:     "p",
		User:        "u",
		Allocations: inventory.Allocations{nested: {lease.ReservationResourceClass(reservation): 1}},
	})
	stub.MoveAllocations(func(from, to string) {
		old, err := s.Inventory.Allocations(t.Context(), from)
		if err == nil && to != "" {
			err = s.Inventory.PutAllocations(t.Context(), inventory.ConsumerWrite{
				Consumer:    to,
				Project:     "p",
				User:        "u",
				Allocations: old.Allocations,
			})
		}
		if err == nil {
			err = s.Inventory.PutAllocations(t.Context(), storetest.NoAllocations(from, inventory.Expectation{}))
		}
		if err != nil {
			t.Errorf("move the allocations of %s to %q: %v", from, to, err)
		}
	})
	return server
}

// After a resize that nobody confirms, a server has its new flavor, and its slot belongs to the migration.
func TestAdvanceLeases_ServerWithAnUnconfirmedResizeDoesNotBlockTheNextLease(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	stub := &notifytest.Nova{}
	nova, err := cloud.New(cloud.Config{Nova: startServer(t, stub), Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	nova.ReadConsumers(s.Lease.ReservationConsumers)
	stub.AddFlavor(notifytest.Flavor{ID: "small", VCPUs: 1, RAM: 64})
	stub.SetHypervisor("cmp-1", "up")
	acts := newActivities(activities.Options{Store: s, Cloud: nova})
	leases := createInstanceLeases(t, s, "red", "blue")
	advance := func(l lease.Lease, event string, want lease.Status) {
		t.Helper()
		storetest.Exec(t, url, `update event set at = now() where lease_id = $1 and event_type = $2`, l.ID, event)
		if _, err := acts.AdvanceLeases(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if l, err := s.Lease.Lease(t.Context(), l.ID); err != nil || l.Status != want {
			t.Fatalf("lease %s after its %s: got %s, failed calls %+v, error %v; want %s",
				l.Name, event, l.Status, l.FailedCalls(), err, want)
		}
	}
	advance(leases[0], "start_lease", lease.Active)
	server := boot(t, s, url, stub, leases[0].Reservations[0].ID)
	resize := httptest.NewRequest("POST", "/servers/"+server.ID+"/action", strings.NewReader(`{"resize":{"flavorRef":"small"}}`))
	answer := httptest.NewRecorder()
	if stub.ServeHTTP(answer, resize); answer.Code != http.StatusAccepted {
		t.Fatalf("resize the server: got %d, want 202", answer.Code)
	}

	storetest.Exec(t, url, `update event set status = 'DONE' where lease_id = $1 and event_type = 'before_end_lease'`, leases[0].ID)
	advance(leases[0], "end_lease", lease.Terminated)

	if left := stub.ComputeState().Servers; len(left) > 0 {
		t.Errorf("servers after the end of the lease: got %+v, want none", left)
	}
	advance(leases[1], "start_lease", lease.Active)
}
