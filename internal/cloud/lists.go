package cloud

import (
	"context"
	"sync"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"
)

// lists asks Nova for its aggregates, of which there is one for each reservation. When many reservations are brought there at
// the same time, those who come while somebody is being answered are answered together: by a list that is asked for after
// all of them have come, so that each sees what he has done before.
type lists struct {
	mu   sync.Mutex
	next *answer    // not asked for yet
	turn sync.Mutex // one at a time
}

type answer struct {
	done chan struct{}
	all  map[string]aggregates.Aggregate
	err  error
}

func (l *lists) ask(ctx context.Context, list func(context.Context) (map[string]aggregates.Aggregate, error)) (map[string]aggregates.Aggregate, error) {
	l.mu.Lock()
	a := l.next
	if a == nil {
		a = &answer{done: make(chan struct{})}
		l.next = a
		go l.answer(context.WithoutCancel(ctx), a, list) // the others do not go with the first
	}
	l.mu.Unlock()
	select {
	case <-a.done:
		return a.all, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *lists) answer(ctx context.Context, a *answer, list func(context.Context) (map[string]aggregates.Aggregate, error)) {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	l.next = nil
	l.mu.Unlock()
	a.all, a.err = list(ctx)
	close(a.done)
}
