package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// operation does one thing and tells how much that counts for. Each of those in flight has its own number.
type operation func(ctx context.Context, client int) (count int, err error)

// pace is how something is measured.
type pace struct {
	InFlight int
	Warmup   time.Duration // runs the same and counts for nothing
	Window   time.Duration
}

// sample is what was counted in one window.
type sample struct {
	Count   int
	Seconds float64
	CPU     usage
	Times   []time.Duration // how long each took, or the part of it that is the question
}

// sum puts the windows of several rounds together.
func sum(samples []sample) sample {
	total := sample{CPU: usage{}}
	for _, s := range samples {
		total.Count += s.Count
		total.Seconds += s.Seconds
		total.Times = append(total.Times, s.Times...)
		for who, spent := range s.CPU {
			total.CPU[who] += spent
		}
	}
	return total
}

// rate is how much was done in a second.
func (s sample) rate() float64 { return ratio(float64(s.Count), s.Seconds) }

// each is the CPU time per operation in milliseconds, by who spent it.
func (s sample) each() map[string]float64 {
	each := map[string]float64{}
	for who, spent := range s.CPU {
		each[who] = ratio(float64(spent.Microseconds())/1000, float64(s.Count))
	}
	return each
}

// ratio is a/b, and 0 where there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// measure keeps so many operations in flight and counts those that end inside the window. What is in flight when
// it closes is still finished, so that nothing is left behind. The first error ends everything.
func measure(ctx context.Context, p pace, op operation) (sample, error) {
	var count atomic.Int64
	var open atomic.Bool // the window
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
	pause(ctx, p.Warmup)
	s := sample{CPU: usage{}}
	cpu, cpuErr := spent()
	begin := time.Now()
	open.Store(true)
	pause(ctx, p.Window)
	open.Store(false)
	s.Seconds = time.Since(begin).Seconds()
	after, err := spent()
	close(stop)
	clients.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return s, cause
	}
	s.Count, s.CPU, s.Times = int(count.Load()), after.since(cpu), slices.Concat(times...)
	return s, errors.Join(cpuErr, err)
}

// pause waits, unless there is no more reason to.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
