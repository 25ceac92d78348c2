package coalesce

import (
	"context"
	"sync"

	"berth/internal/panics"
)

// Loop repeats a step: a function that searches for work and does some of the work. The loop ends when a step
// that began after the last caller joined finds no more work. Concurrent callers of Join share one loop. The
// zero value of Loop is ready to use.
type Loop struct {
	mu      sync.Mutex
	current *LoopRun
}

// LoopRun is one running or ended loop.
type LoopRun struct {
	loop   *Loop
	joined bool // a caller has joined since the current step began
	total  int
	err    error
	done   chan struct{}
}

// Step is a function that searches for work and does some of the work. A Step returns the amount of work that
// it completed, and whether it found any work. An error of a Step ends the loop.
type Step func() (completed int, found bool, err error)

// Join joins the running loop or, if the loop is not running, starts the loop with the given step. A running
// loop keeps its own step and ignores the given one. In both cases, the loop begins at least one more step
// after the call to Join.
func (l *Loop) Join(step Step) *LoopRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		l.current = &LoopRun{loop: l, done: make(chan struct{})}
		go l.current.repeat(step)
	}
	l.current.joined = true
	return l.current
}

// Done returns a channel that is closed when the loop has ended.
func (r *LoopRun) Done() <-chan struct{} { return r.done }

// Progress returns the amount of work completed so far, and the error that ended the loop, if any.
func (r *LoopRun) Progress() (completed int, err error) {
	r.loop.mu.Lock()
	defer r.loop.mu.Unlock()
	return r.total, r.err
}

func (r *LoopRun) repeat(step Step) {
	defer close(r.done)
	for {
		r.loop.mu.Lock()
		r.joined = false
		r.loop.mu.Unlock()
		completed, found, err := recovered(step)
		if r.ends(completed, found, err) {
			return
		}
	}
}

// ends records the result of one step and reports whether this step was the last one of the loop.
func (r *LoopRun) ends(completed int, found bool, err error) bool {
	r.loop.mu.Lock()
	defer r.loop.mu.Unlock()
	r.total, r.err = r.total+completed, err
	last := err != nil || !found && !r.joined
	if last {
		r.loop.current = nil
	}
	return last
}

// recovered calls the step and turns a panic into an error.
func recovered(step Step) (completed int, found bool, err error) {
	defer panics.Recover(context.Background(), "a step of a loop", &err)
	return step()
}
