package odl_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/odl"
)

// blockingController is a controller that answers only after the test allows it.
type blockingController struct {
	arrived          chan struct{}
	answer           chan struct{}
	inFlight, atMost atomic.Int64
}

func newBlockingController() *blockingController {
	return &blockingController{arrived: make(chan struct{}, 1000), answer: make(chan struct{})}
}

func (c *blockingController) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	now := c.inFlight.Add(1)
	for most := c.atMost.Load(); now > most && !c.atMost.CompareAndSwap(most, now); most = c.atMost.Load() {
	}
	c.arrived <- struct{}{}
	<-c.answer
	c.inFlight.Add(-1)
	w.WriteHeader(http.StatusNoContent)
}

func TestSend_LimitsRequestsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, requests = 3, 40
		c := newBlockingController()
		client := newMemoryClient(t, odl.Config{Concurrency: limit}, c)
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				if a := send(t, client, "PUT", "/networks/x", "{}"); a.Status != http.StatusNoContent {
					t.Errorf("send one of %d requests at the same time: got %+v, want status 204",
						requests, a)
				}
			})
		}
		for range limit {
			<-c.arrived
		}
		if n := client.InFlight(); n != limit {
			t.Errorf(
				"while the controller answers none of %d requests: got %d requests in flight, want %d",
				requests, n, limit,
			)
		}
		close(c.answer)
		all.Wait()
		if most := c.atMost.Load(); most != limit {
			t.Errorf("%d requests at the same time: the controller saw at most %d at once, want %d",
				requests, most, limit)
		}
		if n := client.InFlight(); n != 0 {
			t.Errorf("after all requests: got %d requests in flight, want 0", n)
		}
	})
}

// If a caller gets no slot within half of its deadline, Send returns FailureBusy and sends nothing, and the
// circuit breaker counts no failure.
func TestSend_WithoutSlotSendsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newBlockingController()
		client := newMemoryClient(t, odl.Config{Concurrency: 1}, c)
		ended := make(chan odl.Response)
		go func() { ended <- send(t, client, "PUT", "/networks/x", "{}") }()
		<-c.arrived

		var callers sync.WaitGroup
		for range 10 { // at the same time, because each call waits for half of its deadline
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				a, err := client.Send(ctx, odl.Request{Method: "PUT", Path: "/networks/y", Body: []byte("{}")})
				if err != nil || a.Failure != odl.FailureBusy || a.RetryAfter <= 0 || ctx.Err() != nil {
					t.Errorf(
						"send while all slots are occupied: got %+v, error %v, context %v; want failure busy before the deadline",
						a, err, ctx.Err(),
					)
				}
			})
		}
		callers.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := client.Send(ctx, odl.Request{Method: "PUT", Path: "/networks/y"}); !errors.Is(err, context.Canceled) {
			t.Errorf("send with a cancelled context: got error %v, want context.Canceled", err)
		}
		if client.BreakerOpen() {
			t.Error("after requests without a slot: the circuit breaker is open, want it closed")
		}
		close(c.answer)
		if a := <-ended; a.Status != http.StatusNoContent {
			t.Errorf("the request with the slot: got %+v, want status 204", a)
		}
		if a := send(t, client, "PUT", "/networks/y", "{}"); a.Status != http.StatusNoContent ||
			len(c.arrived) != 1 {
			t.Errorf(
				"send after the slot is free: got %+v and %d requests at the controller, want status 204 and 1 request",
				a,
				len(c.arrived),
			)
		}
	})
}
