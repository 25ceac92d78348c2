package leasestore_test

import (
	"errors"
	"testing"

	"berth/internal/lease"
	"berth/internal/store/db"
	"berth/internal/store/leasestore"
)

func (t *fixture) pendingPoolUpdate(service string) (reservable bool, version int64) {
	t.Helper()
	reservable, version, err := t.Lease.PendingPoolUpdate(t.Context(), service)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		t.Fatal(err)
	}
	return reservable, version
}

func TestHostPooling_EveryRegistrationAndDeletionIsStored(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 0)
	e.Lease = leasestore.New(
		e.DB,
		leasestore.Config{Limits: lease.Limits{BeforeEndLead: lease.DefaultBeforeEndLead}, PoolHosts: true},
	)
	h := e.register("cmp-1", nil)
	reservable, first := e.pendingPoolUpdate("cmp-1")
	if !reservable || first == 0 {
		t.Errorf(
			"pending pool update after a registration: got reservable %t and version %d, want true and a version above 0",
			reservable,
			first,
		)
	}
	if err := e.Lease.DeleteHost(t.Context(), h.ID); err != nil {
		t.Fatal(err)
	}
	// a late worker confirms the registration
	if err := e.Lease.DeletePoolUpdate(t.Context(), "cmp-1", first); err != nil {
		t.Fatal(err)
	}
	reservable, second := e.pendingPoolUpdate("cmp-1")
	if reservable || second == 0 {
		t.Errorf(
			"pending pool update after a deletion: got reservable %t and version %d, want false and a version above 0",
			reservable,
			second,
		)
	}
	if n, err := e.Outbox.RestartWorkflows(t.Context(), []string{"pool/cmp-1", "pool/cmp-2"}); n != 1 ||
		err != nil {
		t.Errorf(
			"restart the workflows of a host with and a host without a pool update: got %d restarts, error %v; want 1",
			n,
			err,
		)
	}
	for range 2 {
		if err := e.Lease.DeletePoolUpdate(t.Context(), "cmp-1", second); err != nil {
			t.Fatal(err)
		}
	}
	if _, version := e.pendingPoolUpdate("cmp-1"); version != 0 {
		t.Errorf("pending pool update after it was deleted: got version %d, want none", version)
	}
}
