package db

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// AnswerLimits define when the database counts as hung. The zero value means that it never does.
//
// A long statement and a statement that waits for a lock get no answer either, so a missing answer alone does
// not mean that the database hangs. If an operation has waited for ProbeAfter, and no other operation got an
// answer in this time, the database is probed on a connection of its own. The database hangs if the probe
// gets no answer within ProbeTimeout.
type AnswerLimits struct {
	ProbeAfter, ProbeTimeout time.Duration
}

// errHung ends the operations that run when the database hangs.
var errHung = &interruption{Hung, "a probe got no answer"}

// answerWatch detects that the database hangs. Then answerWatch ends all running operations and refuses new
// ones, until the database answers a probe again.
type answerWatch struct {
	limits AnswerLimits
	cfg    *pgx.ConnConfig
	conn   *pgx.Conn // for probes; nil before the first probe and after a failed one

	mu       sync.Mutex
	running  list.List // of *operation, in the order of their begin
	answered time.Time // when an operation or a probe last got an answer
	hung     bool
	probes   atomic.Int64 // probes that have ended
}

func newAnswerWatch(limits AnswerLimits, cfg *pgx.ConnConfig) *answerWatch {
	cfg = cfg.Copy()
	cfg.Tracer = nil
	// Only ProbeTimeout limits the time to connect. The servers of the database URL share it, because the
	// machine of the first one may be gone.
	cfg.ConnectTimeout = limits.ProbeTimeout / time.Duration(len(addresses(cfg)))
	cfg.DialFunc = dialer(0).DialContext
	return &answerWatch{limits: limits, cfg: cfg}
}

// add registers an operation. If the database hangs, add returns an error.
func (w *answerWatch) add(o *operation) error {
	if w.limits == (AnswerLimits{}) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hung {
		return &UnavailableError{Reason: Hung, err: errHung}
	}
	o.begun = time.Now()
	o.place = w.running.PushBack(o)
	return nil
}

// remove removes an operation that ends with the error err.
func (w *answerWatch) remove(o *operation, err error) {
	if w.limits == (AnswerLimits{}) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.place != nil {
		w.running.Remove(o.place)
	}
	if o.conn != nil && isAnswer(err) {
		w.answered = time.Now()
	}
}

// isAnswer reports whether an operation that ends with the error err has got an answer from the database.
func isAnswer(err error) bool {
	var known *UnavailableError
	return !errors.As(err, &known) && !errors.Is(err, context.Canceled) && reasonOf(err) == ""
}

// run probes the database when an operation gets no answer, until ctx ends.
func (w *answerWatch) run(ctx context.Context) {
	if w.limits == (AnswerLimits{}) {
		return
	}
	tick := time.NewTicker(max(w.limits.ProbeAfter/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if w.conn != nil {
				CloseSession(ctx, w.conn)
			}
			return
		case <-tick.C:
		}
		if !w.needsProbe() {
			continue
		}
		begun := time.Now()
		answers := w.probe(ctx)
		if ctx.Err() == nil {
			w.record(ctx, begun, answers)
		}
	}
}

// needsProbe reports whether an operation has waited for ProbeAfter while no operation got an answer, or the
// database hangs.
func (w *answerWatch) needsProbe() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hung {
		return true
	}
	oldest := w.running.Front()
	return oldest != nil && time.Since(oldest.Value.(*operation).begun) >= w.limits.ProbeAfter &&
		time.Since(w.answered) >= w.limits.ProbeAfter
}

// probe reports whether the database answers within ProbeTimeout. A refused connection counts as an answer,
// because an operation gets the same error at once.
func (w *answerWatch) probe(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, w.limits.ProbeTimeout)
	defer cancel()
	if w.conn != nil {
		if w.conn.Ping(ctx) == nil {
			return true
		}
		CloseSession(ctx, w.conn) // the session may have ended since the last probe
	}
	var err error
	w.conn, err = pgx.ConnectConfig(ctx, w.cfg)
	return err == nil || ctx.Err() == nil
}

// record stores the result of a probe that began at the time `begun`. A database that has meanwhile answered
// an operation does not hang.
func (w *answerWatch) record(ctx context.Context, begun time.Time, answers bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.probes.Add(1)
	switch {
	case answers:
		w.answered = time.Now()
		if w.hung {
			slog.InfoContext(ctx, "the database answers again")
		}
		w.hung = false
	case !w.hung && w.answered.Before(begun):
		slog.WarnContext(ctx, "the database hangs; operations fail until it answers",
			"operations", w.running.Len(), "probe_timeout", w.limits.ProbeTimeout)
		w.hung = true
		for e := w.running.Front(); e != nil; e = e.Next() {
			e.Value.(*operation).interrupt(errHung)
		}
	}
}

// Hangs reports whether the database hangs, so that operations fail.
func (d *DB) Hangs() bool {
	d.answers.mu.Lock()
	defer d.answers.mu.Unlock()
	return d.answers.hung
}
