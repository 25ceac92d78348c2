package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store"
)

// How long one attempt may spend on calls to a neighbour; a rung below the attempt's own time-out.
const (
	BriefCall = 3 * time.Second
	LongCall  = 12 * time.Second
)

// TryEntry attempts to mirror a journal entry once, briefly. That the controller is in trouble is no error here:
// the progress tells it.
func (a *Activities) TryEntry(ctx context.Context, key string) (contract.EntryProgress, error) {
	ctx, cancel := context.WithTimeout(ctx, BriefCall)
	defer cancel()
	p, _, err := a.mirror(ctx, key, &train{places: together})
	return p, verdict(err)
}

// again is the type of the error with which an activity asks for its own repetition.
const again = "Again"

// MirrorEntry attempts to mirror a journal entry, and fails while the controller is in trouble, so that Temporal
// shows the attempts and makes the next one.
func (a *Activities) MirrorEntry(ctx context.Context, key string) (contract.EntryProgress, error) {
	defer alive(ctx)()
	if wait, why := a.ODL.BreakerWait(); wait > 0 { // the row knows from the first attempt
		return contract.EntryProgress{}, troubled(wait, "%s", why)
	}
	ctx, cancel := context.WithTimeout(ctx, LongCall)
	defer cancel()
	p, o, err := a.mirror(ctx, key, &train{})
	if o.Kind == journal.Done {
		a.bringWaiting(ctx, key)
	}
	if err != nil || p.Blocked || o.After == 0 && journal.State(p.State) != journal.Pending {
		return p, verdict(err)
	}
	return p, temporal.NewApplicationErrorWithOptions(cmp.Or(p.LastError, p.Sentence), again, temporal.ApplicationErrorOptions{
		NextRetryDelay: o.After,
		Category:       temporal.ApplicationErrorCategoryBenign,
	})
}

// mirror takes the entry and makes an attempt at it. Of one that is not taken the outcome says no more than when to come
// again. Entries that waited for nothing else go along with it: each would cost a workflow of its own.
func (a *Activities) mirror(ctx context.Context, key string, along *train) (p contract.EntryProgress, o journal.Outcome, err error) {
	seq, err := seqOf(key)
	if err != nil {
		return p, o, err
	}
	t, err := a.Store.TakeEntry(ctx, seq)
	if err != nil || t.Entry.State != journal.Processing || len(t.Blockers) > 0 || t.Wait > 0 {
		return progress(t.Entry, t.Blockers), journal.Outcome{After: t.Wait}, err
	}
	e, o, err := a.attempt(ctx, t, along)
	along.Wait()
	p = progress(e, nil)
	p.Sentence += along.sentence()
	return p, o, err
}

// attempt makes the requests of one attempt, settles what came of it, and sends off those that may go along. One that
// dies in between leaves the entry in processing; the next one looks at the controller before it writes again.
func (a *Activities) attempt(ctx context.Context, t journal.Take, along *train) (journal.Entry, journal.Outcome, error) {
	attempt := journal.Begin(t)
	for r, more := attempt.Next(); more; r, more = attempt.Next() {
		got, err := a.ODL.Send(ctx, r.Method, r.Path, r.Body)
		if err != nil {
			return t.Entry, journal.Outcome{}, err
		}
		attempt.Tell(journal.Answer{Status: got.Status, Body: got.Body, Trouble: journal.Trouble(got.Failure), Detail: got.Detail, RetryAfter: got.RetryAfter})
	}
	o := attempt.Outcome()
	e, next, err := a.settle(ctx, t.Entry, o, along)
	if errors.Is(err, store.ErrConflict) { // somebody took it again or settled it for us: the next look tells
		return t.Entry, journal.Outcome{}, fmt.Errorf("entry %d: overtaken", t.Entry.Seq)
	}
	if err != nil {
		return e, o, err
	}
	if a.Attempted != nil {
		a.Attempted(e, o)
	}
	for _, n := range next {
		along.Go(func() { a.goAlong(ctx, n, along) })
	}
	return e, o, nil
}

// settle writes the outcome of an attempt, and takes those that may go along.
func (a *Activities) settle(ctx context.Context, of journal.Entry, o journal.Outcome, along *train) (e journal.Entry, next []journal.Entry, err error) {
	if along.inLine {
		e, err = a.Store.SettleInLine(ctx, of.Seq, of.Attempt, o)
		return e, nil, err
	}
	return a.Store.SettleAndTake(ctx, of.Seq, of.Attempt, o, along.room(ctx))
}

func progress(e journal.Entry, blockers []journal.Blocker) contract.EntryProgress {
	p := contract.EntryProgress{State: string(e.State), Blocked: len(blockers) > 0, LastError: e.LastError, NextAttempt: e.RetryAt}
	p.Sentence = fmt.Sprintf("Entry %d (%s) is %s: %s.", e.Seq, journal.Summary(e), e.State, journal.Sentence(e, blockers))
	for _, w := range journal.Waits(e, blockers) {
		p.Waiting = append(p.Waiting, contract.Waiting{For: w.For, Since: &w.Since})
	}
	return p
}
