// Package feedback reads the state that an OpenDaylight controller reports: its features, its host
// configurations and the operational status of ports. An event of the controller only triggers a read of the
// controller's state; the content of the event is not stored. The status of a port is used only if the
// controller already knew the port's current binding when the status was read.
package feedback

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"berth/internal/odl"
	"berth/internal/store/portstore"
)

// Options configure a Listener.
type Options struct {
	Lock  Lock // lets only one process listen at a time
	Store *portstore.Store
	ODL   *odl.Client
	// PollInterval is the interval between two reads of the controller's state if no event arrives.
	// PollInterval is also the pause after a failed attempt to connect to the controller's event stream.
	PollInterval    time.Duration
	HostConfigsPath string // path of the host configurations below the controller's root
	// Features are the controller's features; if Features is nil, the Listener reads the features from the
	// controller.
	Features map[string]string
}

// Lock is the lock of a *db.DB that all processes with the same database share.
type Lock interface {
	InOneProcess(ctx context.Context, name string, f func(context.Context)) (bool, error)
}

// Listener watches one controller. If several processes use the same database, only one of them watches the
// controller at a time.
type Listener struct {
	Options
	features    atomic.Pointer[map[string]string]
	openStreams atomic.Int64

	wake chan struct{} // receives a value when there is work

	mu sync.Mutex
	// ports whose status must be read, and how often the read of each was postponed
	pending      map[uuid.UUID]int
	compareAll   bool   // events may have been lost: the status of all ports must be compared
	refresh      bool   // features and host configurations must be read
	compareAgain bool   // set compareAll at the next refresh
	hostRemoved  bool   // the controller deleted a host configuration
	lastError    string // the error that was logged last
}

// New returns a Listener that does nothing until Run is called.
func New(o Options) *Listener {
	return &Listener{Options: o, wake: make(chan struct{}, 1), pending: map[uuid.UUID]int{}}
}

const (
	// hostExpiry is the time after which the pseudo agent of a host is deleted if the controller has no host
	// configuration of this host. If an event reports the deletion of the host configuration, the pseudo
	// agent is deleted earlier.
	hostExpiry = 10 * time.Minute
	// maxPending is the maximum number of ports whose status waits to be read. If more than maxPending ports
	// wait, the Listener compares the status of all ports instead.
	maxPending = 50_000
	// maxParallel is the maximum number of ports whose status the Listener reads from the controller at the
	// same time.
	maxParallel = 8
	// maxPostponed is the maximum number of times that the Listener postpones the read of a port's status
	// because the journal has unsent changes of the port.
	maxPostponed = 10
)

// Features returns the controller's features, or nil if the Listener has not read them yet.
func (l *Listener) Features() map[string]string {
	if f := l.features.Load(); f != nil {
		return *f
	}
	return nil
}

// OpenStreams returns how many event streams of the controller this process has open.
func (l *Listener) OpenStreams() int { return int(l.openStreams.Load()) }

// Run watches the controller until ctx ends. While another process watches the controller, Run waits until
// the other process stops.
func (l *Listener) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := l.Lock.InOneProcess(ctx, "listen to the controller", l.runAsLeader); err != nil &&
			ctx.Err() == nil {
			l.logErrorChange(ctx, err)
		}
		sleep(ctx, l.PollInterval)
	}
}

// runAsLeader watches the controller until ctx ends. The caller must hold the database lock that only one
// process can hold at a time.
func (l *Listener) runAsLeader(ctx context.Context) {
	var streams sync.WaitGroup
	defer streams.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams.Go(func() { l.watchTopic(ctx, odl.TopicHostConfigs, func() bool { return true }, l.onHostEvent) })
	streams.Go(func() { l.watchTopic(ctx, odl.TopicPorts, l.reportsPortStatus, l.onPortEvent) })
	l.markMissed()
	for due := time.Now(); ctx.Err() == nil; {
		if !time.Now().Before(due) {
			due = time.Now().Add(l.PollInterval)
			l.update(func() { l.refresh = true })
		}
		err := l.processPending(ctx)
		l.logErrorChange(ctx, err)
		pause := time.Until(due)
		if err != nil {
			pause = min(pause, l.PollInterval/4)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		case <-l.wake:
			if err != nil { // so that many events do not cause many requests to a failing controller
				sleep(ctx, min(l.PollInterval, time.Second))
			}
		}
	}
}

// reportsPortStatus reports whether the controller has the feature of reporting the status of ports.
func (l *Listener) reportsPortStatus() bool {
	_, ok := l.Features()[odl.FeaturePortStatus]
	return ok
}

// watchTopic watches a topic of the controller while `wanted` returns true, and reconnects when the stream
// ends.
func (l *Listener) watchTopic(
	ctx context.Context,
	t odl.Topic,
	wanted func() bool,
	onEvent func(odl.ChangeEvent),
) {
	for ctx.Err() == nil {
		if !wanted() {
			sleep(ctx, min(l.PollInterval, time.Second))
			continue
		}
		connected := false
		err := l.ODL.Watch(ctx, t, func() {
			connected = true
			l.openStreams.Add(1)
			l.markMissed() // read the changes that the controller made before the connection
		}, onEvent)
		if connected {
			l.openStreams.Add(-1)
		}
		if ctx.Err() != nil {
			return
		}
		slog.InfoContext(ctx, "event stream of the OpenDaylight controller ended",
			"topic", string(t), "error", err)
		if connected {
			sleep(ctx, min(l.PollInterval, time.Second))
		} else {
			sleep(ctx, l.PollInterval)
		}
	}
}

func (l *Listener) onHostEvent(n odl.ChangeEvent) {
	l.update(func() {
		l.refresh = true
		l.hostRemoved = l.hostRemoved || n.Operation == "deleted"
	})
}

func (l *Listener) onPortEvent(n odl.ChangeEvent) {
	id, err := uuid.Parse(n.ID)
	l.update(func() {
		if err != nil || len(l.pending) >= maxPending {
			l.compareAll = true
			return
		}
		l.pending[id] = 0
	})
}

// markMissed records that events of the controller may have been lost. The Listener then compares the status
// of all ports now, and once more at the next refresh, because events may also be lost until the new
// subscription is active.
func (l *Listener) markMissed() {
	l.update(func() { l.compareAll, l.refresh, l.compareAgain = true, true, true })
}

// update calls `change`, which changes the pending work, and wakes runAsLeader.
func (l *Listener) update(change func()) {
	l.mu.Lock()
	change()
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// processPending does the pending work. If processPending fails, the next call to processPending reads the
// controller's state and compares the status of all ports again.
func (l *Listener) processPending(ctx context.Context) error {
	l.mu.Lock()
	pending, compareAll, refresh, removed := l.pending, l.compareAll, l.refresh, l.hostRemoved
	if refresh && !compareAll {
		compareAll, l.compareAgain = l.compareAgain, false
	}
	l.pending, l.compareAll, l.refresh, l.hostRemoved = map[uuid.UUID]int{}, false, false, false
	l.mu.Unlock()
	err := l.process(ctx, pending, compareAll, refresh, removed)
	if err != nil {
		l.mu.Lock()
		l.compareAll, l.refresh, l.hostRemoved = true, true, l.hostRemoved || removed
		l.mu.Unlock()
	}
	return err
}

func (l *Listener) process(
	ctx context.Context,
	pending map[uuid.UUID]int,
	compareAll, refresh, removed bool,
) error {
	if wait, why := l.ODL.BreakerWait(); wait > 0 {
		return errors.New(why)
	}
	if refresh {
		if err := l.refreshController(ctx, removed); err != nil {
			return err
		}
		waits, err := l.Store.HasPortAwaitingController(ctx)
		if err != nil {
			return err
		}
		compareAll = compareAll ||
			// a port's event may have arrived, and been ignored, before the controller knew the port's
			// binding
			waits
	}
	if !l.reportsPortStatus() {
		return nil
	}
	if compareAll {
		if err := l.compareStatuses(ctx, pending); err != nil {
			return err
		}
	}
	return l.reportPorts(ctx, pending)
}

// logErrorChange logs an error if the previous read of the controller succeeded, and logs a success if the
// previous read failed, so that a long outage is not logged again and again.
func (l *Listener) logErrorChange(ctx context.Context, err error) {
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
	}
	l.mu.Lock()
	before := l.lastError
	l.lastError = text
	l.mu.Unlock()
	switch {
	case text != "" && before == "":
		slog.WarnContext(ctx, "reading the OpenDaylight controller's state failed", "error", text)
	case text == "" && before != "" && ctx.Err() == nil:
		slog.InfoContext(ctx, "reading the OpenDaylight controller's state works again")
	}
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
