package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/sdk/temporal"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl"
	"berth/internal/store/db"
)

// TryEntry makes one short attempt to send a journal entry to the controller. If the controller is
// unavailable, it returns no error; the progress contains the failure.
func (a *Activities) TryEntry(ctx context.Context, key string) (contract.EntryProgress, error) {
	ctx, cancel := context.WithTimeout(ctx, a.Timeouts.ShortCall)
	defer cancel()
	p, _, err := a.mirrorEntry(ctx, key)
	return p, classify(err)
}

// MirrorEntry makes one attempt to send a journal entry to the controller. If the controller is unavailable,
// MirrorEntry returns an error, so that Temporal shows the attempt and retries it. If the entry is completed,
// MirrorEntry sends the entries that gathered while the controller was unavailable; Temporal retries
// MirrorEntry until no such entry is left.
func (a *Activities) MirrorEntry(ctx context.Context, key string) (contract.EntryProgress, error) {
	defer startHeartbeat(ctx)()
	// TryEntry, which made the first attempt, has stored its failure in the row
	if wait, why := a.ODL.BreakerWait(); wait > 0 {
		return contract.EntryProgress{}, controllerUnavailable(wait, "%s", why)
	}
	ctx, cancel := context.WithTimeout(ctx, a.Timeouts.LongCall)
	defer cancel()
	p, o, err := a.mirrorEntry(ctx, key)
	// If another workflow has sent the entry, this activity also drains the backlog, because the other
	// workflow may have ended before the backlog was empty.
	if err == nil && journal.State(p.State) == journal.Completed {
		if unfinished, after := a.drainBacklog(ctx, key); unfinished {
			return p, continueDrain(after)
		}
	}
	if err != nil || p.Blocked || o.RetryAfter == 0 && journal.State(p.State) != journal.Pending {
		return p, classify(err)
	}
	return p, temporal.NewApplicationErrorWithOptions(
		cmp.Or(p.LastError, p.Sentence),
		retryRequested,
		temporal.ApplicationErrorOptions{
			NextRetryDelay: o.RetryAfter,
			Category:       temporal.ApplicationErrorCategoryBenign,
		},
	)
}

// continueDrain returns an error that makes Temporal retry the activity of a completed entry after the given
// time, so that the activity sends more of the backlog. If the process dies, Temporal retries the activity in
// another process.
func continueDrain(after time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(
		"the entry is completed; this activity continues to send the entries that gathered while the controller was unavailable",
		retryRequested,
		temporal.ApplicationErrorOptions{
			NextRetryDelay: max(after, time.Millisecond),
			Category:       temporal.ApplicationErrorCategoryBenign,
		},
	)
}

// mirrorEntry claims an entry, which gives the attempt its number, and makes one attempt to send the entry.
// If the entry cannot be claimed, mirrorEntry makes no attempt, and the outcome contains only the time of the
// next attempt.
//
// A claim does not lock the entry: an entry in processing can be claimed again, because its sender may be
// dead. What protects the controller:
//   - Temporal runs one execution per entry, and this execution runs one activity at a time. If another
//     workflow sends the entry (see drainBacklog), ClaimEntry makes the entry's own workflow wait.
//   - An attempt after one that may have written reads the controller's object first. It also reads the
//     object if the controller answers that the object exists.
//   - Only the outcome of the newest attempt is saved, so the entry is completed once.
func (a *Activities) mirrorEntry(
	ctx context.Context,
	key string,
) (p contract.EntryProgress, o journal.Outcome, err error) {
	seq, err := parseSequence(key)
	if err != nil {
		return p, o, err
	}
	t, err := a.Store.Journal.ClaimEntry(ctx, seq)
	if err != nil || t.Entry.State != journal.Processing || len(t.Blockers) > 0 || t.Wait > 0 ||
		t.Pause != nil {
		return entryProgress(t.Entry, t.Blockers, t.Pause), journal.Outcome{RetryAfter: t.Wait}, err
	}
	e, o, err := a.attemptEntry(ctx, t, a.saveAndHandOver)
	return entryProgress(e, nil, nil), o, err
}

// saveOutcome stores the outcome of an attempt.
type saveOutcome func(ctx context.Context, seq int64, attempt int, o journal.Outcome) (journal.Entry, error)

// attemptEntry makes the requests of one attempt and stores the outcome. If the process dies in between, the
// entry stays in processing; the next attempt reads from the controller before it writes again.
func (a *Activities) attemptEntry(
	ctx context.Context,
	t journal.ClaimResult,
	save saveOutcome,
) (journal.Entry, journal.Outcome, error) {
	ctx = db.WithProject(ctx, t.Entry.Project)
	previous := time.Now().Add(-t.SinceLast)
	var err error
	if t.Nested, err = a.Store.Journal.NestedObjects(ctx, t.Entry.Object); err != nil {
		return t.Entry, journal.Outcome{}, err
	}
	attempt := journal.BeginAttempt(t, a.MaxEntryFailures)
	for r, more := attempt.NextRequest(); more; r, more = attempt.NextRequest() {
		got, err := a.ODL.Send(ctx, odl.Request{
			Method:    r.Method,
			Path:      r.Path,
			Body:      r.Body,
			MaxAnswer: journal.MaxAnswer(t.Entry),
		})
		if err != nil {
			return t.Entry, journal.Outcome{}, err
		}
		response := journal.Response{
			Status:     got.Status,
			Body:       got.Body,
			Failure:    journal.TransportFailure(got.Failure),
			Detail:     got.Detail,
			RetryAfter: got.RetryAfter,
		}
		if isControllerFailure(got) {
			response.AcceptsOthers = a.accepted.useAsEvidence(previous) && t.Entry.Attempt > 1
		}
		attempt.HandleResponse(response)
		if r.Method != "GET" && got.Status < 300 && attempt.Outcome().Kind == journal.OutcomeDone {
			a.accepted.record()
		}
	}
	o := attempt.Outcome()
	e, err := save(ctx, t.Entry.Seq, t.Entry.Attempt, o)
	if errors.Is(err, db.ErrConflict) {
		// another attempt has claimed or settled the entry; the next read shows the result
		return t.Entry, journal.Outcome{}, fmt.Errorf(
			"entry %d: another attempt has claimed or completed it",
			t.Entry.Seq,
		)
	}
	if err == nil && a.OnAttempt != nil {
		a.OnAttempt(e, o)
	}
	return e, o, err
}

// maxHandedOver is the maximum number of unblocked entries whose workflows this process starts when an entry
// completes. A relay starts the workflows of the others.
const maxHandedOver = 16

// saveAndHandOver stores the outcome of an attempt that the entry's own workflow made. It also starts the
// workflows of the entries that this outcome unblocks, because a relay would start them later: it would first
// have to claim their notes.
func (a *Activities) saveAndHandOver(
	ctx context.Context,
	seq int64,
	attempt int,
	o journal.Outcome,
) (journal.Entry, error) {
	if a.Notes == nil {
		return a.Store.Journal.SaveOutcome(ctx, seq, attempt, o)
	}
	e, unblocked, err := a.Store.Journal.SaveOutcomeAndClaimNotes(ctx, seq, attempt, o,
		min(maxHandedOver, a.Notes.FreeDeliveries()))
	a.Notes.DeliverClaimed(unblocked)
	return e, err
}

// maxNamedBlockers is the maximum number of an entry's blockers that its workflow names. The delete of a
// network waits for the entries of all its ports, and Temporal terminates a workflow whose activity has a
// result of more than 2 MB.
const maxNamedBlockers = 100

// entryProgress describes an entry for its workflow. The workflow of a blocked entry waits for a nudge (a
// signal to read the row again); the end of a pause also nudges the workflows of entries that have no
// blockers. The description of an entry with blockers does not name the pause, because the end of the pause
// does not nudge this entry's workflow, so the description would stay outdated. The description of the
// blocker names the pause instead.
func entryProgress(e journal.Entry, blockers []journal.Blocker, pause *journal.Pause) contract.EntryProgress {
	if len(blockers) > 0 {
		pause = nil
	}
	p := contract.EntryProgress{
		State:       string(e.State),
		Blocked:     len(blockers) > 0 || pause != nil,
		LastError:   e.LastError,
		Attempts:    e.Attempt,
		NextAttempt: e.RetryAt,
	}
	if e.SentBy != nil {
		p.SentBy = contract.JournalID(strconv.FormatInt(*e.SentBy, 10))
	}
	p.Sentence = fmt.Sprintf("Entry %d (%s) is %s: %s.",
		e.Seq, journal.Summary(e), e.State, journal.Sentence(e, blockers, pause))
	for _, w := range journal.WaitingFor(e, blockers[:min(len(blockers), maxNamedBlockers)], pause) {
		p.Waiting = append(p.Waiting, contract.Waiting{For: w.For, Since: &w.Since})
	}
	return p
}
