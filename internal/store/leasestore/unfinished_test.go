package leasestore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/leasestore"
	"berth/internal/store/storetest"
)

func TestUnfinished_CountsWhatIsHeldUp(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 3)
	unfinished := func() leasestore.Unfinished {
		t.Helper()
		u, err := e.Lease.Unfinished(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	storetest.Exec(t, e.url, `delete from host_pooling`)
	if d := cmp.Diff(leasestore.Unfinished{}, unfinished()); d != "" {
		t.Errorf("unfinished work without leases (-want +got): %s", d)
	}

	failed := e.failEnd(e.createInStatus(lease.Active)) // keeps its host
	storetest.Exec(t, e.url, `
		insert into reservation_failure (reservation_id, party, call, error, since, last_at, attempts)
		values ($1, 'nova', 'PUT', 'status 500', now(), now(), 1)`, failed.Reservations[0].ID)
	storetest.Exec(t, e.url, `insert into host_pooling (service_name) values ('cmp-1')`)
	storetest.Exec(t, e.url, `
		update host
		set failed = id = 1, -- the last reading of host 3 is old
			silent_at = now() - case when id = 3 then interval '20 minutes' else interval '1 minute' end`)
	storetest.Exec(t, e.url, `
		insert into reservation_leftover (reservation_id, resource_type, project_id, services, due_at)
		values (gen_random_uuid(), 'physical:host', 'p', '{cmp-1}', now() - interval '10 minutes'),
			(gen_random_uuid(), 'physical:host', 'p', '{cmp-1}', now()), -- the next sweep removes it
			(gen_random_uuid(), 'physical:host', 'p', '{cmp-1}', now() + interval '1 hour') -- a planned removal, which is not counted`)
	failedLeftover := leasestore.Leftover{DueAt: time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)}
	failedLeftover.ID = uuid.New()
	storetest.Exec(t, e.url, `
		insert into reservation_leftover (reservation_id, resource_type, project_id, services, due_at)
		values ($1, 'physical:host', 'p', '{cmp-1}', $2)`, failedLeftover.ID, failedLeftover.DueAt)
	if err := e.Lease.FinishLeftover(t.Context(), failedLeftover, errors.New("Nova answered 500")); err != nil {
		t.Fatal(err)
	}
	e.startDue(e.createLease(hostsDraft(1, 2, 1, 1)))
	if started, _, err := e.Lease.BeginDueLeases(t.Context(), true); len(started) != 1 || err != nil {
		t.Fatalf("begin the due steps: got %d, error %v; want 1", len(started), err)
	}
	e.batchTimesOver()

	if d := cmp.Diff(leasestore.Unfinished{
		Quarantined:  1,
		PoolChanges:  1,
		Leftovers:    2,
		Interrupted:  1,
		FailingCalls: 1,

		SuspendedHosts: 1,
	}, unfinished()); d != "" {
		t.Errorf("unfinished work (-want +got): %s", d)
	}
}
