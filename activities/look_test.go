package activities

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store"
)

// TestLeasesThatAreLookedAtTogetherAreNoneOfEachOthersConcern: many wake in the same second, and one of them cannot be read.
func TestLeasesThatAreLookedAtTogetherAreNoneOfEachOthersConcern(t *testing.T) {
	t.Parallel()
	first, well, gone, broken := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	unreadable := errors.New("unreadable")
	s, looking, release := &looks{}, make(chan []uuid.UUID, 8), make(chan struct{})
	read := func(_ context.Context, ids []uuid.UUID) (map[uuid.UUID]lease.Lease, error) {
		looking <- ids
		<-release
		seen := map[uuid.UUID]lease.Lease{}
		for _, id := range ids {
			if id == broken {
				return nil, unreadable
			}
			if id != gone {
				seen[id] = lease.Lease{ID: id}
			}
		}
		return seen, nil
	}
	look := func(id uuid.UUID) <-chan error {
		c := make(chan error, 1)
		go func() {
			l, err := s.at(t.Context(), id, read)
			if err == nil && l.ID != id {
				err = errors.New("another lease")
			}
			c <- err
		}()
		return c
	}

	alone := look(first)
	if ids := <-looking; len(ids) != 1 {
		t.Errorf("the first look is at %v", ids)
	}
	together := s.join(t.Context(), well, read)
	answers := map[uuid.UUID]<-chan error{well: look(well), gone: look(gone), broken: look(broken)}
	for n := 0; n < 3; {
		s.mu.Lock()
		n = len(together.at) // all of the others come while somebody looks
		s.mu.Unlock()
	}
	close(release)

	if err := <-alone; err != nil {
		t.Errorf("the first: %v", err)
	}
	if ids := <-looking; len(ids) != 3 {
		t.Errorf("the second look is at %v", ids)
	}
	for id, want := range map[uuid.UUID]error{well: nil, gone: store.ErrNotFound, broken: unreadable} {
		if err := <-answers[id]; !errors.Is(err, want) {
			t.Errorf("%v instead of %v", err, want)
		}
	}
}

// TestLookThatTookTooLongIsMadeTogetherAgain: all at once, each alone, would take longer still.
func TestLookThatTookTooLongIsMadeTogetherAgain(t *testing.T) {
	t.Parallel()
	s, looks := &looks{}, 0
	read := func(context.Context, []uuid.UUID) (map[uuid.UUID]lease.Lease, error) {
		looks++
		return nil, fmt.Errorf("read leases: %w", context.DeadlineExceeded)
	}
	s.turn.Lock()
	s.join(t.Context(), uuid.New(), read)
	answer := make(chan error, 1)
	go func() {
		_, err := s.at(t.Context(), uuid.New(), read)
		answer <- err
	}()
	for n := 0; n < 2; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		n = len(s.next.at)
		s.mu.Unlock()
	}
	s.turn.Unlock()

	if err := <-answer; !errors.Is(err, context.DeadlineExceeded) || looks != 1 {
		t.Errorf("looked %d times: %v", looks, err)
	}
}

func TestWhoHasSeenTheSameLeaseSeesNothingOfWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	seen := lease.Lease{Reservations: []lease.Reservation{{ReservationDraft: lease.ReservationDraft{Type: lease.PhysicalHost, Min: 1}}}}

	got := New(Options{Snapshot: true}).governed(seen)

	if seen.Reservations[0].Min != 1 || got.Reservations[0].Min != 0 {
		t.Errorf("%+v of %+v", got, seen)
	}
}
