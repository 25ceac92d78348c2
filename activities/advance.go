package activities

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/store"
)

// advanceFor is how long one attempt waits for what is due to be done, well within workflows.QuickAttempt.
const advanceFor = 2 * time.Second

// AdvanceLeases waits for that instant, then starts and ends all leases of which that is due and returns how many, or how
// many it was so far: where that takes longer, it goes on without anybody who waits. Those who ask meanwhile are answered
// together.
func (a *Activities) AdvanceLeases(ctx context.Context, at time.Time) (int, error) {
	left, err := a.Store.Until(ctx, at)
	if err != nil {
		return 0, verdict(err)
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(max(left, time.Until(at))):
	}
	var outside store.World
	if a.Cloud != nil {
		outside = world{a}
	}
	background := context.WithoutCancel(ctx)
	s := a.sweeps.join(func() (begun, finished int, err error) { return a.Store.AdvanceLeases(background, outside) })
	select {
	case <-s.over:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(advanceFor):
	}
	n, err := a.sweeps.result(s)
	return n, verdict(err)
}

// sweeps are made one after another.
type sweeps struct {
	mu  sync.Mutex
	now *sweep
}

// sweep takes what is due until nothing is left.
type sweep struct {
	asked    bool // somebody has come since it last looked
	finished int
	err      error
	over     chan struct{}
}

// join has what is due now taken: by the sweep that goes on, or by a new one.
func (s *sweeps) join(advance func() (begun, finished int, err error)) *sweep {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		s.now = &sweep{over: make(chan struct{})}
		go s.run(s.now, advance)
	}
	s.now.asked = true
	return s.now
}

func (s *sweeps) run(one *sweep, advance func() (begun, finished int, err error)) {
	defer close(one.over)
	for {
		s.mu.Lock()
		one.asked = false
		s.mu.Unlock()
		begun, finished, err := advance()
		if s.ends(one, begun, finished, err) {
			return
		}
	}
}

// ends tells whether that was the last of a sweep.
func (s *sweeps) ends(one *sweep, begun, finished int, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.finished, one.err = one.finished+finished, err
	over := err != nil || begun == 0 && !one.asked
	if over {
		s.now = nil
	}
	return over
}

// result is what has come of a sweep so far.
func (s *sweeps) result(one *sweep) (finished int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return one.finished, one.err
}

// bringFor is how long leases that are brought into the cloud together may take: who hangs there holds up the others.
const bringFor = 3 * time.Second

// world is the cloud as the store knows it.
type world struct{ *Activities }

// Bring does for leases at the same time what their steps mean to the cloud, and returns those of which all went well in
// time, as the cloud calls them.
func (w world) Bring(ctx context.Context, begun []store.Begun) []store.Begun {
	well := make([]bool, len(begun))
	told := slices.Clone(begun)
	w.eachAtOnce(ctx, told, func(ctx context.Context, i int) {
		told[i].Marks = map[uuid.UUID]lease.Mark{}
		well[i] = w.bringOne(ctx, told[i]) == nil
	})
	i := -1
	return slices.DeleteFunc(told, func(store.Begun) bool { i++; return !well[i] })
}

func (w world) bringOne(ctx context.Context, b store.Begun) error {
	for _, c := range b.Claims {
		if !slices.Contains(w.Cloud.Types(), c.Type) {
			continue
		}
		var err error
		switch b.Step {
		case lease.Start:
			b.Marks[c.ID], err = w.Cloud.Provide(ctx, c)
		case lease.BeforeEnd:
			c.BeforeEnd = w.beforeEnd(c.Reservation)
			err = w.Cloud.BeforeEnd(ctx, c)
		case lease.End:
			err = w.Cloud.Withdraw(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Retract leaves nothing in the cloud of leases that were deleted while they were brought there. What cannot be done now,
// those who delete them do.
func (w world) Retract(ctx context.Context, begun []store.Begun) {
	w.eachAtOnce(ctx, begun, func(ctx context.Context, i int) {
		for _, c := range begun[i].Claims {
			_ = w.Cloud.Withdraw(ctx, c)
		}
	})
}

func (w world) eachAtOnce(ctx context.Context, begun []store.Begun, do func(ctx context.Context, i int)) {
	ctx, cancel := context.WithTimeout(ctx, bringFor)
	defer cancel()
	var all sync.WaitGroup
	for i := range begun {
		all.Go(func() { do(ctx, i) })
	}
	all.Wait()
}
