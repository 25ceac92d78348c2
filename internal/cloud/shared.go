package cloud

import (
	"context"
	"sync"
	"time"
)

// shared asks Nova for what many want to know when many reservations are brought there at the same time: those who come
// within a moment, and those who come while somebody is being answered, are answered together. The question is put
// after all of them have come, so that each sees what he has done before.
type shared[T any] struct {
	mu   sync.Mutex
	next *answer[T] // not asked for yet
	turn sync.Mutex // one at a time
}

type answer[T any] struct {
	done chan struct{}
	is   T
	err  error
}

// moment is how long the first waits for others who want to know the same.
const moment = time.Millisecond

func (s *shared[T]) ask(ctx context.Context, question func(context.Context) (T, error)) (T, error) {
	s.mu.Lock()
	a := s.next
	if a == nil {
		a = &answer[T]{done: make(chan struct{})}
		s.next = a
		go s.answer(context.WithoutCancel(ctx), a, question) // the others do not go with the first
	}
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.is, a.err
	case <-ctx.Done():
		var nothing T
		return nothing, ctx.Err()
	}
}

func (s *shared[T]) answer(ctx context.Context, a *answer[T], question func(context.Context) (T, error)) {
	s.turn.Lock()
	defer s.turn.Unlock()
	time.Sleep(moment)
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	a.is, a.err = question(ctx)
	close(a.done)
}
