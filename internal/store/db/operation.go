package db

import (
	"container/list"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// maxDuration is the maximum duration of a transaction or statement whose context has no deadline.
// maxDuration ends a statement whose connection is stalled, for example by a proxy: PostgreSQL's own time
// limits do not end the wait of the client.
const maxDuration = 2 * time.Minute

// withDeadline returns a context that ends after maxDuration, unless ctx has a deadline already.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, limited := ctx.Deadline(); limited {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, maxDuration)
}

// operation is a transaction, a batch or a statement that uses one connection. When the context of the
// operation ends, every call on the connection fails.
type operation struct {
	ctx     context.Context
	conn    *pgxpool.Conn
	answers *answerWatch
	release []func() // from first to last
	ended   bool

	interrupt   context.CancelCauseFunc // its argument is an *interruption
	restLimited bool                    // limitRest was called

	begun time.Time
	place *list.Element // in answerWatch.running
}

// interruption is why package db ends an operation before its caller does.
type interruption struct {
	reason Reason
	text   string
}

func (i *interruption) Error() string { return i.text }

// errRestOver ends an operation whose rest takes longer than limitRest allows.
var errRestOver = &interruption{Locked, "the rest of the transaction took too long"}

// withConn calls f with an operation that has a connection of the pool. The result `committing` of f says
// whether f has sent a commit.
func (d *DB) withConn(
	ctx context.Context,
	pool *pgxpool.Pool,
	f func(*operation) (committing bool, err error),
) error {
	o, err := d.begin(ctx, pool)
	if err != nil {
		return err
	}
	defer o.end(nil) // if f panics
	committing, err := f(o)
	err = o.classify(err, committing)
	o.end(err)
	return err
}

// begin limits the duration of an operation and acquires a connection of the pool for it. The caller must
// call `end`.
func (d *DB) begin(ctx context.Context, pool *pgxpool.Pool) (*operation, error) {
	ctx, cancel := withDeadline(ctx)
	ctx, interrupt := context.WithCancelCause(ctx)
	o := &operation{
		ctx:       ctx,
		answers:   d.answers,
		release:   []func(){cancel, func() { interrupt(nil) }},
		interrupt: interrupt,
	}
	if err := d.answers.add(o); err != nil {
		return nil, o.fail(err)
	}
	admitted, err := d.admit(o.ctx, pool)
	if err != nil {
		return nil, o.fail(err)
	}
	o.release = append(o.release, admitted)
	conn, err := pool.Acquire(o.ctx)
	if err != nil {
		return nil, o.fail(err)
	}
	o.conn = conn
	o.release = append(o.release, failWhenDone(o.ctx, conn))
	return o, nil
}

// fail ends an operation that got no connection, and returns its error.
func (o *operation) fail(err error) error {
	err = o.classify(err, false)
	o.end(err)
	return err
}

// limitRest ends the operation after the given time, unless the operation has ended before. Only the first
// call has an effect.
func (o *operation) limitRest(limit time.Duration) {
	if o.restLimited {
		return
	}
	o.restLimited = true
	timer := time.AfterFunc(limit, func() { o.interrupt(errRestOver) })
	o.release = append(o.release, func() { timer.Stop() })
}

// end releases the connection. The error err is the result of the operation. A second call has no effect.
func (o *operation) end(err error) {
	if o.ended {
		return
	}
	o.ended = true
	for i := len(o.release) - 1; i >= 0; i-- {
		o.release[i]()
	}
	o.answers.remove(o, err)
}

// classify does the same as the function classify, but also recognizes the errors of calls that failed
// because the context of the operation ended: its deadline has passed, its caller has cancelled it, or
// package db has interrupted it. classify must be called before `end`.
func (o *operation) classify(err error, committing bool) error {
	var interrupted *interruption
	if err != nil && o.ctx.Err() != nil && reasonOf(err) == Unreachable {
		err = o.ctx.Err()
	}
	if errors.Is(err, context.Canceled) && errors.As(context.Cause(o.ctx), &interrupted) {
		return &UnavailableError{
			Reason:  interrupted.reason,
			Unknown: committing && !isRolledBack(err),
			err:     interrupted,
		}
	}
	return classify(err, committing)
}

// failWhenDone ensures that, when ctx ends, every call that waits on the connection fails; the returned
// function `release` ends this effect. With failWhenDone, pgx needs no goroutine that watches the context of
// each statement.
func failWhenDone(ctx context.Context, conn *pgxpool.Conn) (release func()) {
	// read here, because the function below may run after the release of conn
	socket := conn.Conn().PgConn().Conn()
	stop := context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })
	return func() {
		if !stop() { // ctx has ended, so the connection cannot be used again
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
		conn.Release() // Release closes a connection that is still in a transaction
	}
}
