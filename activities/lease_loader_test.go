package activities

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store/db"
)

// If several leases are requested while a query runs, the lease loader reads all of them together in the next
// query. An unreadable or deleted lease fails only the call that requests this lease, not the calls for the
// other leases of the query.
func TestLeaseLoader_UnreadableLeaseFailsOnlyItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, readable, deleted, broken := uuid.New(), uuid.New(), uuid.New(), uuid.New()
		errUnreadable := errors.New("the lease is unreadable")
		reads, release := make(chan []uuid.UUID, 8), make(chan struct{})
		loader := newLeaseLoader(func(_ context.Context, ids []uuid.UUID) (map[uuid.UUID]lease.Lease, error) {
			reads <- ids
			<-release
			found := map[uuid.UUID]lease.Lease{}
			for _, id := range ids {
				if id == broken {
					return nil, errUnreadable
				}
				if id != deleted {
					found[id] = lease.Lease{ID: id}
				}
			}
			return found, nil
		}, nil, time.Hour)
		load := func(id uuid.UUID) <-chan error {
			result := make(chan error, 1)
			go func() {
				l, err := loader.load(t.Context(), id)
				if err == nil && l.ID != id {
					err = errors.New(
						"load a lease: want the lease with the requested ID, got a lease with another ID",
					)
				}
				result <- err
			}()
			synctest.Wait()
			return result
		}

		alone := load(first)
		results := map[uuid.UUID]<-chan error{
			readable: load(readable),
			deleted:  load(deleted),
			broken:   load(broken),
		}
		close(release)

		if err := <-alone; err != nil {
			t.Errorf("load the first lease: got error %v, want none", err)
		}
		for n, want := range []int{1, 3} {
			if ids := <-reads; len(ids) != want {
				t.Errorf("read %d was for the leases %v, want %d leases", n+1, ids, want)
			}
		}
		for id, want := range map[uuid.UUID]error{readable: nil, deleted: db.ErrNotFound, broken: errUnreadable} {
			if err := <-results[id]; !errors.Is(err, want) {
				t.Errorf("load a lease: got error %v, want %v", err, want)
			}
		}
	})
}

// After a query has timed out, the lease loader does not query each lease of a project alone, because a busy
// database would need even longer for many queries.
func TestLeaseLoader_TimeoutIsNotRepeatedForEachLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads, release := 0, make(chan struct{})
		loader := newLeaseLoader(func(context.Context, []uuid.UUID) (map[uuid.UUID]lease.Lease, error) {
			reads++
			<-release
			return nil, fmt.Errorf("read leases: %w", context.DeadlineExceeded)
		}, func(context.Context, []uuid.UUID) (map[uuid.UUID]string, error) { return nil, nil }, time.Hour)
		results := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := loader.load(t.Context(), uuid.New())
				results <- err
			}()
			synctest.Wait()
		}
		close(release)
		for range 3 {
			if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if reads != 2 {
			t.Errorf(
				"the loader ran %d reads, want 2: one for the first lease, and one for all other leases together",
				reads,
			)
		}
	})
}

// A lease whose query is slow fails only the calls for leases of its project. The leases of the other
// projects that were requested at the same time are read before their callers give up.
func TestLeaseLoader_SlowLeaseFailsOnlyItsProject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 4 * time.Second
		projects := map[uuid.UUID]string{}
		slow := map[uuid.UUID]bool{}
		loader := newLeaseLoader(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]lease.Lease, error) {
			time.Sleep(10 * time.Millisecond)
			found := map[uuid.UUID]lease.Lease{}
			for _, id := range ids {
				if slow[id] {
					<-ctx.Done()
					return nil, fmt.Errorf("read leases: %w", ctx.Err())
				}
				found[id] = lease.Lease{ID: id}
			}
			return found, nil
		}, func(context.Context, []uuid.UUID) (map[uuid.UUID]string, error) { return projects, nil }, timeout)
		results := map[uuid.UUID]chan error{}
		for n := range 20 {
			id := uuid.New()
			projects[id], results[id], slow[id] = fmt.Sprint(n/2), make(chan error, 1), n == 4 || n == 8
		}
		begin := time.Now()
		load := func(id uuid.UUID) error {
			_, err := loader.load(t.Context(), id)
			return err
		}
		go func() { _ = load(uuid.New()) }() // the first lease is read alone, and the others together
		synctest.Wait()
		for id, result := range results {
			go func() { result <- load(id) }()
		}
		slowProjects := map[string]bool{"2": true, "4": true}
		for id, result := range results {
			err := <-result
			if failed := errors.Is(err, context.DeadlineExceeded); failed != slowProjects[projects[id]] || !failed && err != nil {
				t.Errorf("load a lease of project %s: got error %v, want a timeout only in the projects 2 and 4", projects[id], err)
			}
		}
		if took := time.Since(begin); took > timeout+10*time.Millisecond {
			t.Errorf("all leases took %s, want at most %s after the read of the first lease", took, timeout)
		}
	})
}

func TestWithOperatorSettings_LeavesTheSharedLeaseUnchanged(t *testing.T) {
	t.Parallel()
	shared := lease.Lease{
		Reservations: []lease.Reservation{
			{ReservationDraft: lease.ReservationDraft{Type: lease.PhysicalHost, Min: 1}},
		},
	}

	got := New(Options{SnapshotByDefault: true}).withOperatorSettings(shared)

	if shared.Reservations[0].Min != 1 || got.Reservations[0].Min != 0 {
		t.Errorf(
			"apply the operator's settings: got Min in the shared lease %+v and in the returned copy %+v; want 1 in the shared lease and 0 in the copy",
			shared,
			got,
		)
	}
}
