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
	for handled, waited := 0, false; ; waited = true {
		handled += drain(changed)
		if full(ctx, handled) {
			return contract.EntryProgress{}, workflow.NewContinueAsNewError(ctx, contract.JournalEntry, in)
		}
		p := contract.EntryProgress{State: string(journal.Pending)}
		if err := workflow.ExecuteLocalActivity(once(ctx, "mirror entry "+in.Key), do.TryEntry, in.Key).Get(ctx, &p); err != nil {
			p.LastError = err.Error()
			p.Sentence = "Entry " + in.Key + " could not be looked at: " + p.LastError + "."
		}
		done := journal.State(p.State) == journal.Completed
		if !done || waited { // an entry that never waited costs no more than it must
			if err := f.show(ctx, whyEntry(p)); err != nil {
				return p, err
			}
		}
		switch {
		case done:
			return p, nil
		case p.Blocked || journal.State(p.State) == journal.Failed:
			if err := workflow.Await(ctx, func() bool { return changed.Len() > 0 || full(ctx, handled) }); err != nil {
				return p, err
			}
		default:
			if err := workflow.ExecuteActivity(patient(ctx, "mirror entry "+in.Key), do.MirrorEntry, in.Key).Get(ctx, nil); err != nil {
				return p, err
			}
		}
	}
}

func whyEntry(p contract.EntryProgress) contract.Why {
	return contract.Why{State: p.State, Sentence: p.Sentence, Waiting: p.Waiting, LastError: p.LastError}
}
