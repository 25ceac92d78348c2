package leasestore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/lease"
	"berth/internal/store/storetest"
)

// combinationsOf returns leases with the given status: one lease for each combination of the statuses of up
// to two reservations, of the event start_lease and of the event end_lease.
func combinationsOf(status lease.Status) []lease.Lease {
	events := []lease.EventStatus{
		lease.EventUndone,
		lease.EventInProgress,
		lease.EventDone,
		lease.EventFailed,
	}
	reservations := []lease.ReservationStatus{
		lease.ReservationPending,
		lease.ReservationActive,
		lease.ReservationDeleted,
		lease.ReservationError,
	}
	sets := [][]lease.Reservation{nil}
	for i, first := range reservations {
		sets = append(sets, []lease.Reservation{{Status: first}})
		for _, second := range reservations[i+1:] {
			sets = append(sets, []lease.Reservation{{Status: first}, {Status: second}})
		}
	}
	var all []lease.Lease
	for _, set := range sets {
		for _, start := range events {
			for _, end := range events {
				l := lease.Lease{
					ID:     uuid.New(),
					Status: status,
					Events: []lease.Event{
						{Type: lease.StartLease, Status: start},
						{Type: lease.EndLease, Status: end},
					},
				}
				for _, r := range set {
					l.Reservations = append(l.Reservations,
						lease.Reservation{ID: uuid.New(), Status: r.Status})
				}
				all = append(all, l)
			}
		}
	}
	return all
}

// writeRaw returns the SQL statements that write a lease without the checks of package lease.
func writeRaw(l lease.Lease) *pgx.Batch {
	b := &pgx.Batch{}
	b.Queue(`
		insert into lease (id, name, user_id, project_id, status, start_at, end_at, delete_requested_at)
		values ($1, 'l', 'u', 'p', $2, now(), now(), now())`, l.ID, l.Status)
	for i, r := range l.Reservations {
		b.Queue(`
			insert into reservation (id, lease_id, position, resource_type, status, min_hosts, max_hosts, hypervisor_properties,
				resource_properties, before_end)
			values ($1, $2, $3, 'physical:host', $4, 1, 1, '', '', '')`, r.ID, l.ID, i, r.Status)
	}
	for _, e := range l.Events {
		b.Queue(
			`insert into event (id, lease_id, event_type, at, status) values (gen_random_uuid(), $1, $2, now(), $3)`,
			l.ID, e.Type, e.Status,
		)
	}
	b.Queue(`set constraints all immediate`)
	return b
}

// violatesStatusTable reports whether the error says that the database rejected a lease because of
// inconsistent statuses. If the database rejected the lease for another reason, violatesStatusTable fails the
// test.
func violatesStatusTable(t *testing.T, err error) bool {
	t.Helper()
	var refusal *pgconn.PgError
	if err != nil && (!errors.As(err, &refusal) || refusal.ConstraintName != "lease_agrees") {
		t.Fatal(err)
	}
	return err != nil
}

func TestLeaseStatusTable_DatabaseAcceptsTheSameStatusesAsTheRules(t *testing.T) {
	t.Parallel()
	db := storetest.Connect(t, storetest.URL(t))
	for _, status := range []lease.Status{lease.Creating, lease.Pending, lease.Starting, lease.Active, lease.Terminating,
		lease.Terminated, lease.Updating, lease.Deleting, lease.Error} {
		for _, l := range combinationsOf(status) {
			tx, err := db.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			refused := violatesStatusTable(t, tx.SendBatch(t.Context(), writeRaw(l)).Close())
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if rule := lease.CheckStatus(l); refused != (rule != nil) {
				t.Errorf(
					"database rejects a lease: got %t, want the same as lease.CheckStatus, which returned error %v; lease: %+v",
					refused, rule, l,
				)
			}
		}
	}
}

func TestLeaseStatusTable_DatabaseRejectsWritesOfInconsistentStatuses(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createActive(hostsDraft(1, 2, 1, 1))
	db := storetest.Connect(t, e.url)
	for _, c := range []struct {
		write   string
		refused bool
	}{
		{`update lease set status = 'PENDING' where id = $1`, true},
		{`update reservation set status = 'error' where lease_id = $1`, true},
		{`update event set status = 'ERROR' where lease_id = $1 and event_type = 'start_lease'`, true},
		{`update event set status = 'IN_PROGRESS' where lease_id = $1 and event_type = 'end_lease'`, true},
		{`update event set event_type = 'before_end_lease' where lease_id = $1 and event_type = 'nothing'`, false},
		{`delete from event where lease_id = $1 and event_type = 'end_lease'`, true},
		{`delete from event where lease_id = $1 and event_type = 'before_end_lease'`, false},
		{`update event set status = 'DONE' where lease_id = $1 and event_type = 'before_end_lease'`, false},
		{`update lease set name = 'new', status = status where id = $1`, false},
		{`insert into reservation (id, lease_id, position, resource_type, status, min_hosts, max_hosts, hypervisor_properties,
			resource_properties, before_end)
			values (gen_random_uuid(), $1, 1, 'physical:host', 'pending', 1, 1, '', '', '')`, true},
		{`with l as (update lease set status = 'TERMINATING' where id = $1)
			update event set status = 'IN_PROGRESS' where lease_id = $1 and event_type = 'end_lease'`, false},
		{`delete from lease where id = $1`, false},
	} {
		tx, err := db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.Exec(t.Context(), c.write, l.ID)
		if err != nil {
			t.Fatal(fmt.Errorf(
				"execute %s before the constraints are checked: want no error, got %w", c.write, err,
			))
		}
		_, err = tx.Exec(t.Context(), `set constraints all immediate`)
		if refused := violatesStatusTable(t, err); refused != c.refused {
			t.Errorf("database rejects inconsistent statuses: got %t, want %t; write: %s",
				refused, c.refused, c.write)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := db.Exec(t.Context(), `update lease set status = 'PENDING' where id = $1`, l.ID)
	if !violatesStatusTable(t, err) {
		t.Error("commit a lease with inconsistent statuses: got no error, want the database to reject it")
	}
}

func TestLeaseStatusTable_DatabaseRejectsConcurrentInconsistentWrites(t *testing.T) {
	t.Parallel()
	e := newFixture(t, 1)
	l := e.createLease(hostsDraft(1, 2, 1, 1))
	e.makeDue(l)
	e.beginStep(l.ID, lease.StepStart)
	storetest.Exec(t, e.url, `update reservation set status = 'active' where lease_id = $1`, l.ID)
	one, other := storetest.Connect(t, e.url), storetest.Connect(t, e.url)
	first, err := one.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Exec(t.Context(), `update event set status = 'DONE' where lease_id = $1 and event_type = 'start_lease'`, l.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Exec(t.Context(), `update lease set status = 'ACTIVE' where id = $1`, l.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Exec(t.Context(), `update reservation set status = 'error' where lease_id = $1`, l.ID); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- second.Commit(t.Context()) }()
	if err := first.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if !violatesStatusTable(t, <-done) {
		t.Error(
			"commit the second of two transactions that together make the statuses inconsistent: got no error, want the database to reject it",
		)
	}
	e.readLease(l.ID)
}
