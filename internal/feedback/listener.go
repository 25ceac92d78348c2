// Package feedback hears what a controller says of its own accord: what it can do, which hosts it wires ports on, and which
// ports it has wired. Whatever it says is a nudge: what counts is what it answers when it is asked then, and that only for
// the binding of the port that it knows.
package feedback

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"berth/internal/network"
	"berth/internal/odl"
	"berth/internal/store"
)

// Options are what a Listener needs.
type Options struct {
	Store *store.Store
	ODL   *odl.Client
	// Every is how often the controller is asked for what it may not have told, and the pause before a lost connection is
	// made anew.
	PollInterval    time.Duration
	HostConfigsPath string // path of the host configurations
	// Features, if not nil, are the controller's; else it is asked.
	Features map[string]string
}

// Listener listens to one controller, in one process at a time.
type Listener struct {
	Options
	features  atomic.Pointer[map[string]string]
	listening atomic.Int64

	again chan struct{} // something is to be done at once

	mu      sync.Mutex
	dirty   map[uuid.UUID]int // ports to ask about, and how often that was put off
	gap     bool              // notices may be missing: all ports are to be compared
	refresh bool              // features and hosts are to be asked for
	owed    bool              // the same, at the next refresh
	removed bool              // the controller has given up a host
	trouble string            // the last that was logged
}

// New makes a Listener; Run lets it listen.
func New(o Options) *Listener {
	return &Listener{Options: o, again: make(chan struct{}, 1), dirty: map[uuid.UUID]int{}}
}

const (
	// forget is after how long a host is given up of which the controller no longer tells, without a word.
	forget = 10 * time.Minute
	// mostDirty bounds what is remembered; beyond it, all ports are compared.
	mostDirty = 50_000
	// parallel is how many ports are asked about at a time.
	parallel = 8
	// putOff is how often asking about a port is put off, each time for some moments, because the journal still has something
	// to tell the controller of it.
	putOff = 10
)

// Features are what the controller can do, as far as is known; nil before it is.
func (l *Listener) Features() map[string]string {
	if f := l.features.Load(); f != nil {
		return *f
	}
	return nil
}

// Listening is how many streams of the controller this process hears.
func (l *Listener) OpenStreams() int { return int(l.listening.Load()) }

// Run listens until ctx ends. Where another process does, it waits to take its place.
func (l *Listener) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := l.Store.Alone(ctx, "listen to the controller", l.lead); err != nil && ctx.Err() == nil {
			l.log(ctx, err)
		}
		rest(ctx, l.PollInterval)
	}
}

// lead is the life of the one process that listens.
func (l *Listener) lead(ctx context.Context) {
	var streams sync.WaitGroup
	defer streams.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams.Go(func() { l.follow(ctx, odl.TopicHostConfigs, func() bool { return true }, l.heardHost) })
	streams.Go(func() { l.follow(ctx, odl.TopicPorts, l.reports, l.heardPort) })
	l.miss()
	for due := time.Now(); ctx.Err() == nil; {
		if !time.Now().Before(due) {
			due = time.Now().Add(l.PollInterval)
			l.mark(func() { l.refresh = true })
		}
		err := l.round(ctx)
		l.log(ctx, err)
		pause := time.Until(due)
		if err != nil {
			pause = min(pause, l.PollInterval/4)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		case <-l.again:
			if err != nil { // a controller in trouble is not asked more often for its talking
				rest(ctx, min(l.PollInterval, time.Second))
			}
		}
	}
}

// reports tells whether the controller says which ports it has wired.
func (l *Listener) reports() bool {
	_, ok := l.Features()[odl.FeaturePortStatus]
	return ok
}

// follow hears one topic, as long as that makes sense, and connects again and again.
func (l *Listener) follow(ctx context.Context, t odl.Topic, wanted func() bool, heard func(odl.ChangeEvent)) {
	for ctx.Err() == nil {
		if !wanted() {
			rest(ctx, min(l.PollInterval, time.Second))
			continue
		}
		connected := false
		err := l.ODL.Watch(ctx, t, func() {
			connected = true
			l.listening.Add(1)
			l.miss() // what happened before is read now
		}, heard)
		if connected {
			l.listening.Add(-1)
		}
		if ctx.Err() != nil {
			return
		}
		slog.InfoContext(ctx, "the controller's stream", "topic", string(t), "error", err)
		if connected {
			rest(ctx, min(l.PollInterval, time.Second))
		} else {
			rest(ctx, l.PollInterval)
		}
	}
}

func (l *Listener) heardHost(n odl.ChangeEvent) {
	l.mark(func() {
		l.refresh = true
		l.removed = l.removed || n.Operation == "deleted"
	})
}

func (l *Listener) heardPort(n odl.ChangeEvent) {
	id, err := uuid.Parse(n.ID)
	l.mark(func() {
		if err != nil || len(l.dirty) >= mostDirty {
			l.gap = true
			return
		}
		l.dirty[id] = 0
	})
}

// miss says that notices may be missing, and perhaps some more for a moment, until the controller has taken us in.
func (l *Listener) miss() { l.mark(func() { l.gap, l.refresh, l.owed = true, true, true }) }

// mark notes what is to be done and wakes the round.
func (l *Listener) mark(note func()) {
	l.mu.Lock()
	note()
	l.mu.Unlock()
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// round does what is to be done. What it could not do is to be done again.
func (l *Listener) round(ctx context.Context) error {
	l.mu.Lock()
	dirty, gap, refresh, removed := l.dirty, l.gap, l.refresh, l.removed
	if refresh && !gap {
		gap, l.owed = l.owed, false
	}
	l.dirty, l.gap, l.refresh, l.removed = map[uuid.UUID]int{}, false, false, false
	l.mu.Unlock()
	err := l.do(ctx, dirty, gap, refresh, removed)
	if err != nil {
		l.mu.Lock()
		l.gap, l.refresh, l.removed = true, true, l.removed || removed
		l.mu.Unlock()
	}
	return err
}

func (l *Listener) do(ctx context.Context, dirty map[uuid.UUID]int, gap, refresh, removed bool) error {
	if wait, why := l.ODL.BreakerWait(); wait > 0 {
		return errors.New(why)
	}
	if refresh {
		if err := l.negotiate(ctx, removed); err != nil {
			return err
		}
		waits, err := l.Store.AwaitsController(ctx)
		if err != nil {
			return err
		}
		gap = gap || waits // a notice may have come before the controller knew the binding
	}
	if !l.reports() {
		return nil
	}
	if gap {
		if err := l.compare(ctx, dirty); err != nil {
			return err
		}
	}
	return l.ask(ctx, dirty)
}

// compare adds to dirty the ports whose status the controller tells otherwise than the rows.
func (l *Listener) compare(ctx context.Context, dirty map[uuid.UUID]int) error {
	const page = 500
	told := make(map[uuid.UUID]string, page)
	flush := func() error {
		ids := make([]uuid.UUID, 0, len(told))
		for id := range told {
			ids = append(ids, id)
		}
		wired, err := l.Store.WiredPorts(ctx, ids)
		for _, p := range wired {
			if _, says := event(told[p.ID], p.Waits); says {
				dirty[p.ID] += 0
			}
		}
		clear(told)
		return err
	}
	err := l.ODL.PortStatuses(ctx, func(id, status string) error {
		if port, err := uuid.Parse(id); err == nil {
			told[port] = status
		}
		if len(told) < page {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// event is the report that a status of the controller means for a port which waits for its wiring, or does not.
func event(status string, waits bool) (event string, says bool) {
	switch {
	case status == network.Active && waits:
		return network.Complete, true
	case status == network.Down && !waits:
		return network.Lost, true
	default:
		return "", false
	}
}

// ask asks the controller about ports and reports what it answers.
func (l *Listener) ask(ctx context.Context, dirty map[uuid.UUID]int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for id, tries := range dirty {
		group.Go(func() error { return l.settle(ctx, id, tries) })
	}
	return group.Wait()
}

// settle reports what the controller answers about a port. It is asked after its binding was read and found to be known
// there, and the report counts for that binding alone: an answer about an earlier one changes nothing.
func (l *Listener) settle(ctx context.Context, id uuid.UUID, tries int) error {
	wired, err := l.Store.WiredPorts(ctx, []uuid.UUID{id})
	if err != nil || len(wired) == 0 {
		return err
	}
	if !wired[0].Known {
		l.postpone(id, tries+1)
		return nil
	}
	status, err := l.ODL.PortStatus(ctx, id.String())
	if err != nil {
		return err
	}
	p := wired[0]
	what, says := event(status, p.Waits)
	if !says {
		return nil
	}
	_, err = l.Store.ReportPort(ctx, id, []network.Report{{Entity: network.L2, Host: p.Host, Event: what, Revision: p.Epoch}})
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// postpone asks about a port a little later, and after some tries with the next refresh.
func (l *Listener) postpone(id uuid.UUID, tries int) {
	if tries > putOff {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.owed = true
		return
	}
	time.AfterFunc(min(l.PollInterval, time.Second)/2, func() {
		l.mark(func() {
			if _, newer := l.dirty[id]; !newer {
				l.dirty[id] = tries
			}
		})
	})
}

// log tells of a trouble once, and of its end.
func (l *Listener) log(ctx context.Context, err error) {
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
	}
	l.mu.Lock()
	before := l.trouble
	l.trouble = text
	l.mu.Unlock()
	switch {
	case text != "" && before == "":
		slog.WarnContext(ctx, "the controller does not say what it wires", "error", text)
	case text == "" && before != "" && ctx.Err() == nil:
		slog.InfoContext(ctx, "the controller says again what it wires")
	}
}

// rest is over after d, or with ctx.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
