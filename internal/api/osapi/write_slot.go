package osapi

import (
	"context"
	"errors"
	"net/http"

	"berth/internal/identity"
)

// Numbers of requests other than GET that are handled at the same time, without the requests of agents,
// administrators and services. Such a request may need as much memory for the objects that it reads, changes
// and returns as a GET request does. The numbers are higher than those of reads, because a change also waits
// for the locks of others, and still so low that the answers of the requests that a client has at once are a
// part of maxClientAnswers.
const (
	maxWrites       = 64
	maxClientWrites = 8 // of a project
)

// writes has the slots for requests other than GET. A request has its slot from the time when its body has
// been received until its answer is encoded, so that no slot depends on how fast a client is.
var writes = NewClientSlots(maxWrites, maxClientWrites)

// acquireWrite waits for a slot for a request other than GET, after it has received the body, so that a slow
// client holds no slot and the handler holds no objects while it waits for the client. acquireWrite then
// checks the unread answers of the client again, because requests that waited together passed the first check
// together. acquireWrite returns the request with the slot in its context, and sets *release.
//
// Agents need no slot: they change single rows, get small answers and have limits of their own.
func acquireWrite(r *http.Request, release *func()) (*http.Request, error) {
	receiveBody(r)
	if identity.From(r.Context()).AgentHost != "" {
		return r, nil
	}
	held, err := writes.acquire(r.Context())
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return r, Fault(http.StatusServiceUnavailable, "",
			"The request has waited too long for other changes. Nothing was changed. Try again later.").RetryIn(retryAfter)
	case err != nil || held == nil:
		return r, err
	}
	slot := &writeSlot{held}
	*release = func() { slot.held.release() }
	return r.WithContext(context.WithValue(r.Context(), writeSlotKey, slot)), checkAnswers(r)
}

// writeSlot is the slot of a request. The field `held` is nil while the request waits without a slot.
type writeSlot struct{ held *heldSlot }

// WaitOutside calls the function `wait`, which waits for another service or for a workflow. Meanwhile, the
// request leaves its place among all slots for writes to other clients, so that a slow service does not stop
// their writes. The request still counts among the writes of its own client, because it holds its objects.
func WaitOutside(ctx context.Context, wait func()) error {
	slot, ok := ctx.Value(writeSlotKey).(*writeSlot)
	if !ok {
		wait()
		return nil
	}
	slot.held.leaveAll()
	wait()
	return slot.held.joinAll(ctx)
}

// WaitWithoutSlot calls the function `wait`, which waits for a workflow and needs little memory. Meanwhile,
// the request has no slot, so that such requests do not stop the other changes of their project.
// WaitWithoutSlot then waits for a slot for the rest of the request, and checks the unread answers of the
// client again.
func WaitWithoutSlot(r *http.Request, wait func()) error {
	slot, ok := r.Context().Value(writeSlotKey).(*writeSlot)
	if !ok {
		wait()
		return nil
	}
	slot.held.release()
	slot.held = nil
	wait()
	held, err := writes.acquire(r.Context())
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Fault(http.StatusServiceUnavailable, "",
			"The change goes on, but its answer has waited too long for other changes.").RetryIn(retryAfter)
	case err != nil:
		return err
	}
	slot.held = held
	return checkAnswers(r)
}
