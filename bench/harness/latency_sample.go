package harness

import (
	"context"
	"slices"
	"sync"
	"time"
)

// ArrivalRate is the number of operations that MeasureTimes starts per second. ArrivalRate is so low that no
// operation has to wait for another operation.
const ArrivalRate = 10

// MeasureTimes starts operations at a constant rate, even while earlier operations still run, and collects
// the durations that the operations return.
func MeasureTimes(
	ctx context.Context,
	p Pace,
	op func(ctx context.Context) (time.Duration, error),
) (Sample, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var mu sync.Mutex
	var running sync.WaitGroup
	s := Sample{CPU: CPUTimes{}}
	warm := int(p.Warmup.Seconds() * ArrivalRate)
	total := warm + max(1, int(p.Window.Seconds()*ArrivalRate))
	tick := time.NewTicker(time.Second / ArrivalRate)
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
	s.Count, s.Seconds = len(s.Times), float64(total-warm)/ArrivalRate
	return s, context.Cause(ctx)
}

// Percentile returns the given percentile of the times: the smallest time t such that at least `percent`
// percent of the times are not greater than t. Percentile returns 0 if the list of times is empty.
func Percentile(times []time.Duration, percent int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// Mean returns the average of the times. Mean returns 0 if the list of times is empty.
func Mean(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	var all time.Duration
	for _, t := range times {
		all += t
	}
	return all / time.Duration(len(times))
}

// Milliseconds returns a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
