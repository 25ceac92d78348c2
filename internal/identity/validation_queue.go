package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"berth/internal/panics"
)

const (
	// maxRunning is the maximum number of tokens that Keystone validates for this process at the same time.
	maxRunning = 32
	// maxQueued is the maximum number of tokens that wait until Keystone has validated others.
	maxQueued = 1000
	// maxRunningLogins is the maximum number of logins with a password on which Keystone works for this
	// process at the same time. Keystone needs much CPU time for each password.
	maxRunningLogins = 4
	// maxQueuedLogins is the maximum number of logins that wait. Keystone can hardly do more of them within
	// keystoneTimeout.
	maxQueuedLogins = 200
	// loginTimeout is how long Keystone may work on a login with a password. It is shorter than
	// keystoneTimeout, so that a login that has waited for others, whose LDAP server hangs, still has time.
	loginTimeout = keystoneTimeout / 2
)

// validationQueue limits the number of validations that Keystone works on, and validates each token once for
// all concurrent requests with this token. A validation whose requests have all left before its turn is not
// sent to Keystone. A validation that Keystone already works on continues when its requests have left:
// Keystone finishes its work in any case, a further request with the same token joins the validation, and the
// validation counts towards the limit until Keystone has answered.
//
// Logins with a password have a validationQueue of their own, so that they delay no validation.
type validationQueue struct {
	slots      chan struct{} // contains one element for each running validation
	limit      int           // maximum number of queued validations
	timeout    time.Duration // of a request
	runTimeout time.Duration // maximum duration of a validation from its turn on
	mu         sync.Mutex
	queued     int
	byKey      map[[sha256.Size]byte]*validation
}

// validationTask has the functions that a validationQueue calls for the validation of one token.
type validationTask struct {
	admit    func() error                              // may refuse the validation before it is queued
	turns    func() chan struct{}                      // of the client; nil or a nil channel: no own limit
	validate func(ctx context.Context) (Caller, error) // validates the token
	// is called once after each admitted validation, with its error; nil if it succeeded or was abandoned
	ended func(err error)
}

type validation struct {
	validationTask
	waiters   int           // number of requests that wait for the result
	running   bool          // Keystone works on the validation
	abandoned chan struct{} // closed if all requests have left before the validation runs
	done      chan struct{} // closed when caller and err are final
	caller    Caller
	err       error
}

func newValidationQueue(running, queued int) *validationQueue {
	return &validationQueue{
		slots:      make(chan struct{}, running),
		limit:      queued,
		timeout:    keystoneTimeout,
		runTimeout: keystoneTimeout,
		byKey:      map[[sha256.Size]byte]*validation{},
	}
}

// newLoginQueue returns a validationQueue for logins with a password.
func newLoginQueue() *validationQueue {
	q := newValidationQueue(maxRunningLogins, maxQueuedLogins)
	q.runTimeout = loginTimeout
	return q
}

// await returns the result of the validation of the token with the given key. If no validation of this token
// is queued or runs, await starts one.
func (q *validationQueue) await(
	ctx context.Context,
	key [sha256.Size]byte,
	task validationTask,
) (Caller, error) {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	v, err := q.join(ctx, key, task)
	if err != nil {
		return Caller{}, err
	}
	select {
	case <-v.done:
		return v.caller, v.err
	case <-ctx.Done():
		q.leave(key, v)
		return Caller{}, fmt.Errorf("%w: wait for the check of a token or a password: %w", ErrUnavailable, ctx.Err())
	}
}

// join returns the validation with the key. If there is none, join adds one to the queue.
func (q *validationQueue) join(
	ctx context.Context,
	key [sha256.Size]byte,
	task validationTask,
) (*validation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if v, ok := q.byKey[key]; ok {
		v.waiters++
		return v, nil
	}
	if q.queued >= q.limit {
		return nil, fmt.Errorf("%w: %d tokens or logins already wait for Keystone", ErrUnavailable, q.queued)
	}
	if err := task.admit(); err != nil {
		return nil, err
	}
	v := &validation{
		validationTask: task,
		waiters:        1,
		abandoned:      make(chan struct{}),
		done:           make(chan struct{}),
	}
	q.byKey[key] = v
	q.queued++
	go q.run(context.WithoutCancel(ctx), key, v)
	return v, nil
}

// leave removes a request from the requests that wait for a validation. If no request is left, leave removes
// a queued validation.
func (q *validationQueue) leave(key [sha256.Size]byte, v *validation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if v.waiters--; v.waiters == 0 && !v.running {
		q.queued--
		delete(q.byKey, key)
		close(v.abandoned)
	}
}

// run waits for the turn of a validation, and then validates the token. It waits for the turn among the
// validations of the client first, because it would otherwise keep a slot from other clients meanwhile.
func (q *validationQueue) run(ctx context.Context, key [sha256.Size]byte, v *validation) {
	limits := []chan struct{}{q.slots}
	if v.turns != nil {
		if turns := v.turns(); turns != nil {
			limits = []chan struct{}{turns, q.slots}
		}
	}
	for _, limit := range limits {
		select {
		case limit <- struct{}{}:
			defer func() { <-limit }()
		case <-v.abandoned:
			v.ended(nil)
			return
		}
	}
	if !q.begin(v) {
		v.ended(nil)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, q.runTimeout)
	defer cancel()
	v.caller, v.err = recovered(ctx, "the validation of a token", v.validate)
	v.ended(v.err)
	q.mu.Lock()
	delete(q.byKey, key)
	q.mu.Unlock()
	close(v.done)
}

// recovered calls a function in a goroutine that belongs to no request. If the function panics, recovered
// logs the panic and returns ErrUnavailable, so that the process continues.
func recovered[T any](
	ctx context.Context,
	what string,
	call func(context.Context) (T, error),
) (value T, err error) {
	defer func() {
		if errors.Is(err, panics.Err) {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}()
	defer panics.Recover(ctx, what, &err)
	return call(ctx)
}

// begin marks a validation as running. The result is false if all requests have left.
func (q *validationQueue) begin(v *validation) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if v.waiters == 0 {
		return false
	}
	q.queued--
	v.running = true
	return true
}
