package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// arrivalRate is the number of operations that measureTimes starts in a second: so few that no operation waits for another.
const arrivalRate = 10

// measureTimes starts operations at a constant rate, whether the earlier ones have ended or not, and collects the
// time that each returns.
func measureTimes(ctx context.Context, p pace, op func(ctx context.Context) (time.Duration, error)) (sample, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var mu sync.Mutex
	var running sync.WaitGroup
	s := sample{CPU: cpuTimes{}}
	warm := int(p.Warmup.Seconds() * arrivalRate)
	total := warm + max(1, int(p.Window.Seconds()*arrivalRate))
	tick := time.NewTicker(time.Second / arrivalRate)
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
	s.Count, s.Seconds = len(s.Times), float64(total-warm)/arrivalRate
	return s, context.Cause(ctx)
}

// percentile returns the smallest of the times such that at least this percentage of all times is not greater. Without times it returns 0.
func percentile(times []time.Duration, percent int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// mean returns the average of the times. Without times it returns 0.
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
