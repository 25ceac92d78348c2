package workflows

import (
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/internal/journal"
)

// JournalEntry brings one change to the controller: it waits while earlier entries block it, sends, and is done.
// The first try is a local activity; a controller that is away is then tried by a regular one, so that attempts
// and the next retry are seen. A failed entry waits for a human's retry or skip.
func JournalEntry(ctx workflow.Context, in contract.Input) (contract.EntryProgress, error) {
	f, err := newFace(ctx, contract.JournalID(in.Key))
	if err != nil {
		return contract.EntryProgress{}, err
	}
	changed := nudged(ctx)
	handled := drain(changed)
	p := look(ctx, in.Key)
	for waited := false; ; waited = true {
		done := journal.State(p.State) == journal.Completed
		if !done || waited { // an entry that never waited costs no more than it must
			if err := f.show(ctx, whyEntry(p)); err != nil {
				return p, err
			}
		}
		switch {
		case done:
			return p, nil
		case full(ctx, handled):
			return contract.EntryProgress{}, workflow.NewContinueAsNewError(ctx, contract.JournalEntry, in)
		case p.Blocked || journal.State(p.State) == journal.Failed:
			if err := workflow.Await(ctx, func() bool { return changed.Len() > 0 || full(ctx, handled) }); err != nil {
				return p, err
			}
			handled += drain(changed)
			p = look(ctx, in.Key)
		default:
			interrupted, err := insist(ctx, in.Key, &p, func() bool { return changed.Len() > 0 || full(ctx, handled) })
			if err != nil {
				return p, err
			}
			if interrupted {
				handled += drain(changed)
				p = look(ctx, in.Key)
			}
		}
	}
}

// look tries an entry once.
func look(ctx workflow.Context, key string) contract.EntryProgress {
	p := contract.EntryProgress{State: string(journal.Pending)}
	if err := workflow.ExecuteLocalActivity(once(ctx, "mirror entry "+key), do.TryEntry, key).Get(ctx, &p); err != nil {
		p.LastError = err.Error()
		p.Sentence = "Entry " + key + " could not be looked at: " + p.LastError + "."
	}
	return p
}

// insist tries an entry for as long as the controller is in trouble, or until somebody interrupts, which ends the
// pause between two attempts.
func insist(ctx workflow.Context, key string, p *contract.EntryProgress, interrupt func() bool) (interrupted bool, err error) {
	trying, stop := workflow.WithCancel(patient(ctx, "mirror entry "+key))
	defer stop()
	attempts := workflow.ExecuteActivity(trying, do.MirrorEntry, key)
	if err := workflow.Await(ctx, func() bool { return attempts.IsReady() || interrupt() }); err != nil {
		return false, err
	}
	interrupted = !attempts.IsReady()
	if interrupted {
		stop()
	}
	var got contract.EntryProgress // what it leaves out is no longer so
	if err = attempts.Get(ctx, &got); err == nil {
		*p = got
	}
	if interrupted && err != nil && ctx.Err() == nil { // cancelled, or the last failure of an attempt that could not be
		return true, nil
	}
	return false, err
}

func whyEntry(p contract.EntryProgress) contract.Why {
	return contract.Why{State: p.State, Sentence: p.Sentence, Waiting: p.Waiting, LastError: p.LastError, NextAttempt: p.NextAttempt}
}
