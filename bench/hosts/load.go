package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"berth/bench/harness"
)

// load sends operations when they are due, one after the other in equal intervals, and counts those that end
// in the window. An operation is due whether or not the earlier ones have ended, as on a cloud whose hosts
// know nothing of each other. Its time begins when it is due, so that the time contains every delay.
type load struct {
	begin    time.Time
	interval time.Duration // between two operations
	from, to time.Time     // the window

	mu       sync.Mutex
	times    []time.Duration // of the operations that succeeded
	failed   int
	firstErr error
}

// newLoad returns a load of a number of operations in a period, over and over.
func newLoad(operations float64, period time.Duration, w window) *load {
	return &load{
		begin:    w.begin,
		interval: max(1, time.Duration(float64(period)/operations)),
		from:     w.from,
		to:       w.to,
	}
}

// window is the time in which operations are counted.
type window struct {
	begin    time.Time // of the loads
	from, to time.Time
}

// run sends operations until ctx ends. Each client sends the next operation when it is due, or at once if it
// is late. `send` sends the n-th operation.
func (l *load) run(ctx context.Context, clients int, send func(ctx context.Context, client, n int) error) {
	var next atomic.Int64
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				due := l.begin.Add(time.Duration(n) * l.interval)
				harness.Pause(ctx, time.Until(due))
				if ctx.Err() != nil {
					return
				}
				err := send(ctx, client, n)
				l.count(due, time.Now(), err)
			}
		})
	}
	running.Wait()
}

// count counts an operation if it has ended in the window.
func (l *load) count(due, ended time.Time, err error) {
	if ended.Before(l.from) || !ended.Before(l.to) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.times = append(l.times, ended.Sub(due))
		return
	}
	if l.failed++; l.firstErr == nil {
		l.firstErr = err
	}
}

// wanted returns the number of operations that are due in the window.
func (l *load) wanted() int { return l.dueBefore(l.to) - l.dueBefore(l.from) }

// dueBefore returns the number of operations that are due before a time.
func (l *load) dueBefore(t time.Time) int {
	return int((t.Sub(l.begin) + l.interval - 1) / l.interval)
}

// result returns what the window has counted.
func (l *load) result() loadResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	seconds := l.to.Sub(l.from).Seconds()
	r := loadResult{
		Wanted: l.wanted(),
		Done:   len(l.times),
		Failed: l.failed,
		P50:    harness.Milliseconds(harness.Percentile(l.times, 50)),
		P99:    harness.Milliseconds(harness.Percentile(l.times, 99)),
	}
	r.WantedRate, r.Rate = float64(r.Wanted)/seconds, float64(r.Done)/seconds
	if l.firstErr != nil {
		r.FirstError = l.firstErr.Error()
	}
	return r
}
