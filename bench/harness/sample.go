package harness

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Operation executes one operation of a measurement. The result `count` is the number that this operation
// adds to the measurement's count. The parameter `client` is the number of the concurrent client that calls
// the operation.
type Operation func(ctx context.Context, client int) (count int, err error)

// Pace holds the number of clients, the warm-up and the window of a measurement. The window is the time after
// the warm-up in which measure counts operations.
type Pace struct {
	InFlight int           // concurrent clients
	Warmup   time.Duration // operations that end during the warm-up are not counted
	Window   time.Duration
}

// Sample is the result of measuring one window.
type Sample struct {
	Count   int
	Seconds float64
	CPU     CPUTimes
	Times   []time.Duration // duration of each operation, or of the measured part of the operation
}

// Sum adds the samples of several rounds.
func Sum(samples []Sample) Sample {
	total := Sample{CPU: CPUTimes{}}
	for _, s := range samples {
		total.Count += s.Count
		total.Seconds += s.Seconds
		total.Times = append(total.Times, s.Times...)
		for component, used := range s.CPU {
			total.CPU[component] += used
		}
	}
	return total
}

// Rate returns the count per second.
func (s Sample) Rate() float64 { return Ratio(float64(s.Count), s.Seconds) }

// CPUPerOperation returns the CPU time of each component in milliseconds for each operation.
func (s Sample) CPUPerOperation() map[string]float64 {
	all := map[string]float64{}
	for component, used := range s.CPU {
		all[component] = Ratio(float64(used.Microseconds())/1000, float64(s.Count))
	}
	return all
}

// Ratio returns a/b, or 0 if b is 0.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// slowWindow is how long a window without any operation stays open, if p.Window is shorter: on a busy machine
// an operation may take longer than a short window.
const slowWindow = 20 * time.Second

// Measure runs operations on p.InFlight concurrent clients and counts the operations that end inside the
// window. When the window closes, Measure waits for the operations that are still running. If an operation
// returns an error, Measure stops all clients and returns this error.
func Measure(ctx context.Context, p Pace, op Operation) (Sample, error) {
	var count atomic.Int64
	var open atomic.Bool // true while the window is open
	var clients sync.WaitGroup
	times := make([][]time.Duration, p.InFlight)
	stop := make(chan struct{})
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for client := range p.InFlight {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-ctx.Done():
					return
				default:
				}
				begin := time.Now()
				n, err := op(ctx, client)
				if err != nil {
					fail(err)
					return
				}
				if open.Load() {
					count.Add(int64(n))
					times[client] = append(times[client], time.Since(begin))
				}
			}
		})
	}
	Pause(ctx, p.Warmup)
	s := Sample{CPU: CPUTimes{}}
	before, cpuErr := ReadCPUTimes()
	begin := time.Now()
	open.Store(true)
	awaitWindow(ctx, p.Window, &count)
	open.Store(false)
	s.Seconds = time.Since(begin).Seconds()
	after, err := ReadCPUTimes()
	close(stop)
	clients.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return s, cause
	}
	s.Count, s.CPU, s.Times = int(count.Load()), after.Since(before), slices.Concat(times...)
	return s, errors.Join(cpuErr, err)
}

// awaitWindow waits until the window is over and an operation has ended in it, or until slowWindow is over.
func awaitWindow(ctx context.Context, window time.Duration, count *atomic.Int64) {
	begin := time.Now()
	Pause(ctx, window)
	for count.Load() == 0 && time.Since(begin) < slowWindow && ctx.Err() == nil {
		Pause(ctx, window)
	}
}

// Pause sleeps for d or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// Detail is an additional value in the report of a figure.
type Detail struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}
