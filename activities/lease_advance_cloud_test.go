package activities_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/activities"
	"berth/internal/inventory"
	"berth/internal/lease"
	"berth/internal/store"
	"berth/internal/store/storetest"
)

// recordingCloud is a stub of Nova and Neutron. The method recordingCloud.Deprovision records the project
// of the reservation, and recordingCloud.BeforeEnd the due time of the event; the method
// recordingCloud.Provision calls onProvision.
type recordingCloud struct {
	activities.Cloud
	onProvision   func(lease.CloudReservation) error
	mu            sync.Mutex
	deprovisioned []string
	beforeEnd     []time.Time
}

func (c *recordingCloud) ResourceTypes() []string { return []string{lease.PhysicalHost} }

func (c *recordingCloud) Provision(_ context.Context, r lease.CloudReservation) (lease.CloudIDs, error) {
	return lease.CloudIDs{AggregateID: new(int64(7))}, c.onProvision(r)
}

func (c *recordingCloud) BeforeEnd(_ context.Context, r lease.CloudReservation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beforeEnd = append(c.beforeEnd, r.BeforeEndAt)
	return nil
}

func (c *recordingCloud) Deprovision(_ context.Context, r lease.CloudReservation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deprovisioned = append(c.deprovisioned, r.Project)
	return nil
}

// createLeases creates one lease of one host for each project, and makes their starts due.
func createLeases(t *testing.T, s *store.Store, url string, projects ...string) map[string]lease.Lease {
	t.Helper()
	all := map[string]lease.Lease{}
	for i, project := range projects {
		host := fmt.Sprintf("cmp-%d", i+1)
		if _, err := s.Inventory.CreateProvider(t.Context(), inventory.ProviderDraft{UUID: uuid.NewString(), Name: host}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Lease.RegisterHost(t.Context(), lease.Hypervisor{Hostname: host}, nil); err != nil {
			t.Fatal(err)
		}
		start := time.Now().Add(time.Hour)
		l := createOneHourLease(t, s, project, project, start, lease.ReservationDraft{Type: lease.PhysicalHost, Min: 1, Max: 1})
		all[project] = l
	}
	storetest.Exec(t, url, `update event set at = now() where event_type = 'start_lease'`)
	return all
}

// A round of AdvanceLeases begins the starts of leases in one transaction, then provisions their reservations
// in Nova and Neutron, and then finishes the starts in another transaction. If a call to Nova or Neutron
// fails, the round leaves the start to the lease's own workflow. If a lease is deleted during the round, the
// round deprovisions the reservations of the deleted lease.
func TestAdvanceLeases_ProvisionsBetweenBeginAndFinish(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	leases := createLeases(t, s, url, "good", "rejected", "deleted")
	status := func(project string) lease.Lease {
		l, err := s.Lease.Lease(t.Context(), leases[project].ID)
		if err != nil {
			t.Error(err)
		}
		return l
	}
	cloud := &recordingCloud{onProvision: func(r lease.CloudReservation) error {
		if l := status(r.Project); l.Status != lease.Starting || len(r.ComputeHosts) != 1 {
			t.Errorf(
				"Provision was called for %d hosts of a lease in status %s, want 1 host and STARTING",
				len(r.ComputeHosts),
				l.Status,
			)
		}
		switch r.Project {
		case "rejected":
			return errors.New("the stub of Nova rejects the reservation")
		case "deleted":
			_, err := s.Lease.DeleteLease(t.Context(), leases["deleted"].ID)
			return err
		}
		return nil
	}}
	acts := newActivities(activities.Options{Store: s, Cloud: cloud})

	n, err := acts.AdvanceLeases(t.Context(), time.Now())

	if n != 1 || err != nil {
		t.Errorf(
			"advance two leases, one of which fails: got %d advanced, error %v; want 1 and no error",
			n,
			err,
		)
	}
	good := status("good")
	if r := good.Reservations[0]; good.Status != lease.Active || r.AggregateID == nil || *r.AggregateID != 7 {
		t.Errorf("lease that succeeded: got %s with the aggregate %v, want ACTIVE with 7",
			good.Status, r.AggregateID)
	}
	if got := status("rejected").Status; got != lease.Starting {
		t.Errorf("lease whose call failed: got %s, want STARTING", got)
	}
	if got := status("deleted"); got.Status != lease.Starting || !got.DeleteRequested {
		t.Errorf(
			"lease that was deleted during the round: got status %s; want STARTING with DeleteRequested set",
			got.Status,
		)
	}
	if len(cloud.deprovisioned) != 1 || cloud.deprovisioned[0] != "deleted" {
		t.Errorf("deprovisioned the leases of the projects %v, want only \"deleted\"", cloud.deprovisioned)
	}
}

// If a round takes longer than the wait of AdvanceLeases, the call returns before the round is finished, and
// the round continues.
func TestAdvanceLeases_ReturnsBeforeALongRound(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url)
	l := createLeases(t, s, url, "slow")["slow"]
	release := make(chan struct{})
	cloud := &recordingCloud{onProvision: func(lease.CloudReservation) error { <-release; return nil }}
	acts := newActivities(activities.Options{Store: s, Cloud: cloud})
	acts.Timeouts.Advance = time.Millisecond

	n, err := acts.AdvanceLeases(t.Context(), time.Now())

	if n != 0 || err != nil {
		t.Errorf("advance a lease whose call hangs: got %d advanced, error %v; want 0 and no error", n, err)
	}
	close(release)
	acts.Timeouts.Advance = time.Hour
	// waits until the running round has ended
	if _, err := acts.AdvanceLeases(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if l, err = s.Lease.Lease(t.Context(), l.ID); err != nil || l.Status != lease.Active {
		t.Errorf("lease after the round: got %+v, error %v; want ACTIVE", l, err)
	}
}
