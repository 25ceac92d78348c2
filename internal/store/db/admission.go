package db

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// admission decides which caller gets the next connection of a pool. Every caller belongs to a class, for
// example to the writes of one API resource. A class gets another connection only while it holds fewer than
// twice the number of free connections. Therefore, even if one class has many callers that all wait for a
// lock, about a third of the connections remains for the other classes.
type admission struct {
	mu      sync.Mutex
	free    int
	held    map[string]int
	waiting []*waiter // in the order of arrival

	waits    int64         // callers that had to wait
	waitTime time.Duration // how long they have waited
}

// waiter is a caller that waits for a connection.
type waiter struct {
	class    string
	admitted chan struct{}
}

func newAdmission(connections int32) *admission {
	return &admission{free: int(connections), held: map[string]int{}}
}

// acquire waits until a caller of the class may use a connection. The caller must call `release` when it no
// longer uses the connection.
func (a *admission) acquire(ctx context.Context, class string) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, classify(err, false)
	}
	release = func() { a.release(class) }
	a.mu.Lock()
	if a.allows(class) && !a.hasWaiter(class) {
		a.admit(class)
		a.mu.Unlock()
		return release, nil
	}
	w := &waiter{class, make(chan struct{})}
	a.waiting = append(a.waiting, w)
	a.mu.Unlock()
	defer a.recordWait(time.Now())
	select {
	case <-w.admitted:
		return release, nil
	case <-ctx.Done():
	}
	if a.leave(w) {
		a.release(class) // release admitted the caller before leave could remove it
	}
	return nil, noConnection(ctx)
}

// recordWait records that a caller has waited for a connection since the time `begin`.
func (a *admission) recordWait(begin time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits++
	a.waitTime += time.Since(begin)
}

// noConnection returns the error of a caller whose context ended while it waited for a connection.
func noConnection(ctx context.Context) error {
	if ctx.Err() == context.DeadlineExceeded {
		return &UnavailableError{Reason: NoConnection, err: ctx.Err()}
	}
	return ctx.Err()
}

func (a *admission) allows(class string) bool { return a.free > 0 && a.held[class] < 2*a.free }

func (a *admission) hasWaiter(class string) bool {
	for _, w := range a.waiting {
		if w.class == class {
			return true
		}
	}
	return false
}

func (a *admission) admit(class string) {
	a.free--
	a.held[class]++
}

// leave removes a caller that gives up from the waiting callers, and reports whether the caller has already
// been admitted.
func (a *admission) leave(w *waiter) (admitted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, other := range a.waiting {
		if other == w {
			a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
			return false
		}
	}
	return true
}

// release returns a connection and admits the callers that may now use one, in the order of their arrival.
func (a *admission) release(class string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free++
	if a.held[class]--; a.held[class] == 0 {
		delete(a.held, class)
	}
	later := a.waiting[:0]
	for _, w := range a.waiting {
		if a.allows(w.class) {
			a.admit(w.class)
			close(w.admitted)
		} else {
			later = append(later, w)
		}
	}
	clear(a.waiting[len(later):])
	a.waiting = later
}

type contextKey int

const (
	classKey contextKey = iota
	reservedKey
)

// WithClass returns a context whose transactions and statements belong to a class of callers. If all
// transactions of one class wait for a lock, other classes still get connections. Callers without a class
// form a class of their own.
func WithClass(ctx context.Context, class string) context.Context {
	return context.WithValue(ctx, classKey, class)
}

// WithReserve returns a context whose statements and transactions use the reserved connections. The reserved
// connections are for readiness checks, metrics and the APIs of operators, which must answer even while
// requests use all other connections.
func WithReserve(ctx context.Context) context.Context {
	return context.WithValue(ctx, reservedKey, true)
}

// poolFor returns the pool for statements that need no generic plan.
func (d *DB) poolFor(ctx context.Context) *pgxpool.Pool {
	if reserved, _ := ctx.Value(reservedKey).(bool); reserved {
		return d.reserve
	}
	return d.pool
}

// admit waits until the caller may use a connection of the pool.
func (d *DB) admit(ctx context.Context, pool *pgxpool.Pool) (release func(), err error) {
	class, _ := ctx.Value(classKey).(string)
	return d.admissions[pool].acquire(ctx, class)
}
