package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store"
)

// looks are made one after another. Each is at all leases that somebody wanted to look at before it began.
type looks struct {
	mu   sync.Mutex
	next *look      // not begun yet
	turn sync.Mutex // one at a time
}

type look struct {
	at   map[uuid.UUID]bool
	done chan struct{}
	seen map[uuid.UUID]lease.Lease
	err  error
}

// lookFor is how long a look may take, well within workflows.QuickAttempt.
const lookFor = 4 * time.Second

// at looks at a lease. What is wrong with another one does not concern it.
func (s *looks) at(ctx context.Context, id uuid.UUID, read func(context.Context, []uuid.UUID) (map[uuid.UUID]lease.Lease, error)) (lease.Lease, error) {
	one := s.join(ctx, id, read)
	select {
	case <-one.done:
	case <-ctx.Done():
		return lease.Lease{}, ctx.Err()
	}
	seen, err := one.seen, one.err
	if err != nil && len(one.at) > 1 && !errors.Is(err, context.DeadlineExceeded) { // a busy database has no time for each alone
		seen, err = read(ctx, []uuid.UUID{id})
	}
	l, is := seen[id]
	if err == nil && !is {
		err = fmt.Errorf("%w: lease %s", store.ErrNotFound, id)
	}
	return l, err
}

// join has the next look be at that lease too.
func (s *looks) join(ctx context.Context, id uuid.UUID, read func(context.Context, []uuid.UUID) (map[uuid.UUID]lease.Lease, error)) *look {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &look{at: map[uuid.UUID]bool{}, done: make(chan struct{})}
		go s.make(context.WithoutCancel(ctx), s.next, read) // the others do not go with the first
	}
	s.next.at[id] = true
	return s.next
}

func (s *looks) make(ctx context.Context, one *look, read func(context.Context, []uuid.UUID) (map[uuid.UUID]lease.Lease, error)) {
	s.turn.Lock()
	defer s.turn.Unlock()
	defer close(one.done)
	s.mu.Lock()
	s.next = nil
	ids := make([]uuid.UUID, 0, len(one.at))
	for id := range one.at {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	one.seen, one.err = read(ctx, ids)
}
