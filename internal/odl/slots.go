package odl

import (
	"context"
	"fmt"
	"time"
)

// DefaultConcurrency is the usual maximum number of requests in flight.
const DefaultConcurrency = 64

// busyRetry is the time after which a caller that got no slot tries again.
const busyRetry = time.Second

// slots limits the requests in flight: each request occupies one slot. Lists occupy no slot, because they
// take long and only a few of them run at the same time.
type slots chan struct{}

// acquire waits for a free slot and occupies it. If ctx has a deadline, acquire waits for at most half of the
// remaining time, so that the caller has time left to store that nothing was sent. If no slot becomes free in
// this time, acquire returns false. acquire returns an error if ctx ended.
func (s slots) acquire(ctx context.Context) (ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	select {
	case s <- struct{}{}:
		return true, nil
	default:
	}
	wait := ctx
	if end, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	select {
	case s <- struct{}{}:
		return true, nil
	case <-wait.Done():
		return false, ctx.Err()
	}
}

func (s slots) release() { <-s }

// busyResponse returns the Response for a request that got no slot.
func (s slots) busyResponse() Response {
	return Response{
		Failure:    FailureBusy,
		RetryAfter: busyRetry,
		Detail:     fmt.Sprintf("%d requests are in flight", cap(s)),
	}
}

// InFlight returns the number of requests in flight. Requests that list objects are not counted.
func (c *Client) InFlight() int { return len(c.slots) }
