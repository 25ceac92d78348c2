package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// arrivals is the rate at which times are measured, low enough that nothing queues.
const arrivals = 10

// measureTimes starts an operation every tenth of a second, however long the earlier ones take, and collects what
// each of them measured.
func measureTimes(ctx context.Context, p pace, op func(ctx context.Context) (time.Duration, error)) (sample, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var mu sync.Mutex
	var running sync.WaitGroup
	s := sample{CPU: usage{}}
	warm := int(p.Warmup.Seconds() * arrivals)
	total := warm + max(1, int(p.Window.Seconds()*arrivals))
	tick := time.NewTicker(time.Second / arrivals)
	defer tick.Stop()
	for n := range total {
		running.Go(func() {
			took, err := op(ctx)
			if err != nil {
				fail(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if n >= warm {
				s.Times = append(s.Times, took)
			}
		})
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	running.Wait()
	s.Count, s.Seconds = len(s.Times), float64(total-warm)/arrivals
	return s, context.Cause(ctx)
}

// percentile is the smallest of the times that at least so many percent do not exceed.
func percentile(times []time.Duration, percent int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// mean is the average of the times, 0 of none.
func mean(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	var all time.Duration
	for _, t := range times {
		all += t
	}
	return all / time.Duration(len(times))
}
