package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// arrivalRate is the number of operations that measureTimes starts per second. arrivalRate is so low that no
// operation has to wait for another operation.
const arrivalRate = 10

// measureTimes starts operations at a constant rate, even while earlier operations still run, and collects
// the durations that the operations return.
func measureTimes(
	ctx context.Context,
	p pace,
	op func(ctx context.Context) (time.Duration, error),
) (sample, error) {
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

// percentile returns the given percentile of the times: the smallest time t such that at least `percent`
// percent of the times are not greater than t. percentile returns 0 if the list of times is empty.
func percentile(times []time.Duration, percent int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// mean returns the average of the times. mean returns 0 if the list of times is empty.
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

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
