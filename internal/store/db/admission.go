package db

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// caller names a caller for the admission: its class, for example the writes of one API resource, and its
// client, for example a project. An empty client has no limit of its own.
type caller struct{ class, client string }

// The clients that have no limit of their own: all administrators together, and all services together.
const (
	Administrators = "administrators"
	Services       = "services"
)

// hasShare reports whether the connections of the caller's client are limited to a share.
func (c caller) hasShare() bool {
	return c.client != "" && c.client != Administrators && c.client != Services
}

// admission decides which caller gets the next connection of a pool. A class gets another connection only
// while it holds fewer than twice the number of free connections, and a client only while it holds fewer than
// the number of free connections. Therefore, even if one class has many callers that all wait for a lock,
// about a third of the connections remains for the other classes; and even if one client has many such
// callers, about half of the connections remains for the other clients. A client that holds no connection
// gets a free one whatever its class holds, because two clients could otherwise take everything that is left
// for their class.
type admission struct {
	mu      sync.Mutex
	free    int
	classes map[string]int // connections that each class holds
	clients map[string]int // connections that each client holds
	queues  []*queue       // of the callers that wait; the first one comes next
	waiting int            // callers in all queues

	waits    int64         // callers that had to wait
	waitTime time.Duration // how long they have waited
}

// queue has the callers of one class and client that wait for a connection, in the order of their arrival.
type queue struct {
	caller
	waiters []*waiter
}

// waiter is a caller that waits for a connection.
type waiter struct {
	caller
	admitted chan struct{}
}

func newAdmission(connections int32) *admission {
	return &admission{free: int(connections), classes: map[string]int{}, clients: map[string]int{}}
}

// acquire waits until the caller may use a connection. The caller must call `release` when it no longer uses
// the connection.
func (a *admission) acquire(ctx context.Context, c caller) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, classify(err, false)
	}
	release = func() { a.release(c) }
	a.mu.Lock()
	if a.allows(c) { // then no other caller of this class and client waits
		a.admit(c)
		a.mu.Unlock()
		return release, nil
	}
	w := &waiter{c, make(chan struct{})}
	a.enqueue(w)
	a.mu.Unlock()
	defer a.recordWait(time.Now())
	select {
	case <-w.admitted:
		return release, nil
	case <-ctx.Done():
	}
	if a.leave(w) {
		a.release(c) // release admitted the caller before leave could remove it
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

func (a *admission) allows(c caller) bool {
	if a.free > 0 && c.client != "" && a.clients[c.client] == 0 {
		return true
	}
	return a.free > 0 && a.classes[c.class] < 2*a.free && (!c.hasShare() || a.clients[c.client] < a.free)
}

func (a *admission) admit(c caller) {
	a.free--
	a.classes[c.class]++
	a.clients[c.client]++
}

func (a *admission) enqueue(w *waiter) {
	a.waiting++
	for _, q := range a.queues {
		if q.caller == w.caller {
			q.waiters = append(q.waiters, w)
			return
		}
	}
	a.queues = append(a.queues, &queue{w.caller, []*waiter{w}})
}

// leave removes a caller that gives up from the waiting callers, and reports whether the caller has already
// been admitted.
func (a *admission) leave(w *waiter) (admitted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, q := range a.queues {
		at := slices.Index(q.waiters, w)
		if at < 0 {
			continue
		}
		a.waiting--
		if q.waiters = slices.Delete(q.waiters, at, at+1); len(q.waiters) == 0 {
			a.queues = slices.Delete(a.queues, i, i+1)
		}
		return false
	}
	return true
}

// release returns a connection and admits the callers that may now use one.
func (a *admission) release(c caller) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free++
	decrement(a.classes, c.class)
	decrement(a.clients, c.client)
	for {
		next := slices.IndexFunc(a.queues, func(q *queue) bool { return a.allows(q.caller) })
		if next < 0 {
			return
		}
		a.admitFirst(a.queues[next])
	}
}

// admitFirst admits the first waiter of a queue. Clients take turns, however many classes they wait in, and
// the classes of a client take turns: all queues of the client move behind the others, and the queue itself
// moves behind them. Each queue of a client without a share takes turns of its own.
func (a *admission) admitFirst(q *queue) {
	a.admit(q.caller)
	close(q.waiters[0].admitted)
	a.waiting--
	q.waiters = slices.Delete(q.waiters, 0, 1)
	var others, own []*queue
	for _, o := range a.queues {
		switch {
		case o == q:
		case q.hasShare() && o.client == q.client:
			own = append(own, o)
		default:
			others = append(others, o)
		}
	}
	if len(q.waiters) > 0 {
		own = append(own, q)
	}
	a.queues = append(others, own...)
}

// decrement reduces a counter, and deletes it at zero.
func decrement(counters map[string]int, name string) {
	if counters[name]--; counters[name] == 0 {
		delete(counters, name)
	}
}

type contextKey int

const (
	classKey contextKey = iota
	clientKey
	reservedKey
)

// WithClass returns a context whose transactions and statements belong to a class of callers. If all
// transactions of one class wait for a lock, other classes still get connections. Callers without a class
// form a class of their own.
func WithClass(ctx context.Context, class string) context.Context {
	return context.WithValue(ctx, classKey, class)
}

// WithClient returns a context whose transactions and statements belong to a client, for example a project.
// If all transactions of one client wait for a lock, other clients still get connections. The empty client,
// Administrators and Services have no limit.
func WithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey, client)
}

// WithProject returns a context whose transactions and statements belong to a project, as those of its API
// requests do. If the context already has a client, or if the project is empty, WithProject returns the
// context unchanged.
func WithProject(ctx context.Context, project string) context.Context {
	if _, client := CallerOf(ctx); client != "" || project == "" {
		return ctx
	}
	return WithClient(ctx, ClientOfProject(project))
}

// CallerOf returns the class and the client to which the transactions and statements of a context belong.
func CallerOf(ctx context.Context) (class, client string) {
	class, _ = ctx.Value(classKey).(string)
	client, _ = ctx.Value(clientKey).(string)
	return class, client
}

// ClientOfProject returns the name of the client that a project is.
func ClientOfProject(project string) string { return "project " + project }

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
	class, client := CallerOf(ctx)
	return d.admissions[pool].acquire(ctx, caller{class, client})
}
