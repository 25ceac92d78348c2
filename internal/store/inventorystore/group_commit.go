package inventorystore

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/store/db"
)

// lines are where writers of one provider queue up. A provider's lock is held until its holder is on the disk, so
// that writers of one provider would wait for the disk one after another; those that come while a transaction is
// on its way share the next one instead. Which of the writers of several processes comes first, the database's
// locks decide as ever.
type lines struct {
	mu       sync.Mutex
	provider map[string]*line // by UUID; those that are served
}

// line is who waits for a provider.
type line struct {
	waiting []*waiter
	awaited int           // so many shall wait
	enough  chan struct{} // closed when they do
}

// errPanic is what is left to say when the log has the truth.
var errPanic = errors.New("replace allocations: the server has a defect")

// waiter is a writer in the line of a provider.
type waiter struct {
	ctx         context.Context
	replacement *AllocationWrite
	err         error         // once it is served: what went wrong
	served      chan struct{} // closed then
}

const (
	// maxTogether is how many writers share a transaction at most: enough for the disk to be no limit, few enough
	// that nobody waits for long work of others.
	maxTogether = 32
	// lineTimeout is how long a transaction that several writers share may take.
	lineTimeout = 2 * db.StatementTimeout
	// maxLinger is how long a line waits at most for those who have just been served, see serve.
	maxLinger = 2 * time.Millisecond
)

// queue does a replacement that locks one provider: at once if nobody writes that, else together with the others
// who wait for it. One that waits when ctx ends may still be done, as with any answer that gets lost.
func (s *Store) queue(ctx context.Context, r *AllocationWrite) error {
	provider := r.asked()[0]
	w := &waiter{ctx: ctx, replacement: r, served: make(chan struct{})}
	if s.lines.join(provider, w) {
		defer func() {
			if s.lines.leave(provider) {
				go s.serve(context.WithoutCancel(ctx), provider)
			}
		}()
		if done, err := s.allocateAtOnce(ctx, r); done || err != nil {
			return err
		}
		return s.settle(ctx, r)
	}
	select {
	case <-w.served:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve settles what waits in a provider's line until nothing does. It belongs to none of the writers: one that
// goes away takes nobody along. Several who have been served together are likely to come back together, so it
// gives them a moment, short beside what their transaction took: else half of them would always wait for the
// other half.
func (s *Store) serve(ctx context.Context, provider string) {
	for {
		together := s.lines.next(provider)
		if len(together) == 0 {
			return
		}
		begin := time.Now()
		s.settleTogether(ctx, together)
		took := time.Since(begin)
		for _, w := range together {
			close(w.served)
		}
		if len(together) > 1 {
			s.lines.linger(provider, len(together), min(took/4, maxLinger))
		}
	}
}

// settleTogether settles several writers at once, and each alone if the database refuses to: what is wrong with
// one is not the fault of the others.
func (s *Store) settleTogether(ctx context.Context, together []*waiter) {
	defer func() {
		if p := recover(); p != nil { // which costs these writers their answer, not the process
			slog.ErrorContext(ctx, "panic while replacing allocations", "panic", p, "stack", string(debug.Stack()))
			for _, w := range together {
				w.err = errPanic
			}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, lineTimeout)
	defer cancel()
	all := make([]*AllocationWrite, len(together))
	for i, w := range together {
		all[i] = w.replacement
	}
	err := s.settle(ctx, all...)
	var refused *pgconn.PgError
	for _, w := range together {
		w.err = err
		if len(together) > 1 && (errors.As(err, &refused) || db.WasOvertaken(err)) {
			w.err = s.settle(ctx, w.replacement)
		}
	}
}

// join puts a writer at the end of a provider's line; if there is none, it is first instead and makes one.
func (l *lines) join(provider string, w *waiter) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, served := l.provider[provider]
	if !served {
		l.provider[provider] = &line{}
		return true
	}
	at.waiting = append(at.waiting, w)
	if len(at.waiting) == at.awaited {
		close(at.enough)
	}
	return false
}

// leave is for who came first. It tells whether there is a line behind, which needs somebody to serve it.
func (l *lines) leave(provider string) (others bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.provider[provider].waiting) > 0 {
		return true
	}
	delete(l.provider, provider)
	return false
}

// linger waits until n writers are in a provider's line, for a limited time.
func (l *lines) linger(provider string, n int, limit time.Duration) {
	l.mu.Lock()
	at := l.provider[provider]
	wait := len(at.waiting) < n
	at.awaited, at.enough = n, make(chan struct{})
	l.mu.Unlock()
	if !wait {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-at.enough:
	case <-timer.C:
	}
}

// next takes the writers who are to be served together out of a line. Those who have gone away are dropped, and
// of several who write the same consumer the later ones wait for another turn. It is empty when nobody waits any
// more, and then the line is gone.
func (l *lines) next(provider string) []*waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.provider[provider]
	at.awaited = 0
	var together, later []*waiter
	named := map[string]bool{}
	for _, w := range at.waiting {
		if w.ctx.Err() != nil {
			continue
		}
		if len(together) == maxTogether || w.replacement.namesAny(named) {
			later = append(later, w)
		} else {
			together = append(together, w)
		}
		for _, write := range w.replacement.Writes {
			named[write.Consumer] = true
		}
	}
	at.waiting = later
	if len(together) == 0 {
		delete(l.provider, provider)
	}
	return together
}
