package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/internal/journal"
	"berth/internal/store"
)

// Positions of a run behind the types.
const (
	atSettling = "settling" // its entries are on their way
	atCanary   = "canary"   // the last of them
)

// syncStep compares one type and records what the controller lacks or has otherwise. Nothing is deleted there. The
// canary comes last, when all the rest is mirrored: it says that the controller has everything.
func (a *Activities) syncStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	switch r.Position {
	case atSettling:
		done, err := a.settled(ctx, r)
		if err == nil && done {
			r.Position = atCanary
		}
		if i := slices.IndexFunc(r.Progress, func(p journal.TypeProgress) bool { return p.Failed }); i >= 0 && done {
			r.State, r.Note = journal.RunFailed, r.Progress[i].Type+": "+r.Progress[i].Note
		}
		return pauseUnless(done), err
	case atCanary:
		return a.canaryStep(ctx, r)
	}
	return 0, a.compare(ctx, r, false, func(found []journal.Finding, since store.Mark) error {
		_, err := a.Store.Mend(ctx, r.ID, found, since, false)
		return err
	})
}

func pauseUnless(done bool) time.Duration {
	if done {
		return 0
	}
	return settlePause
}

// canaryStep puts the canary there and ends the run once it is.
func (a *Activities) canaryStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	since, err := a.Store.Now(ctx)
	if err != nil {
		return 0, err
	}
	there, err := a.canary(ctx)
	if err != nil {
		return 0, err
	}
	done, err := a.settled(ctx, r)
	if err != nil || !done {
		return settlePause, err
	}
	c := journal.Canary()
	moving, err := a.Store.Moving(ctx, c.Object.Type, []string{c.Object.ID}, since)
	if err != nil {
		return 0, err
	}
	if there || moving[c.Object.ID] {
		r.State = journal.RunDone
		return 0, nil
	}
	r.Note = "puts the canary network there"
	_, err = a.Store.Mend(ctx, r.ID, []journal.Finding{{Object: c.Object, Kind: journal.Missing}}, since, false)
	return settlePause, err
}

// auditStep compares one type and keeps what differs.
func (a *Activities) auditStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	if r.Position == atSettling {
		n := journal.TypeProgress{}
		for _, p := range r.Progress {
			n.Missing, n.Different, n.Extra = n.Missing+p.Missing, n.Different+p.Different, n.Extra+p.Extra
		}
		r.State = journal.RunDone
		r.Note = fmt.Sprintf("%d missing, %d different, %d extra", n.Missing, n.Different, n.Extra)
		return 0, nil
	}
	if err := a.Store.ForgetFindings(ctx, *r, position(r)); err != nil { // of an attempt that did not get to its end
		return 0, err
	}
	return 0, a.compare(ctx, r, true, func(found []journal.Finding, _ store.Mark) error {
		return a.Store.SaveFindings(ctx, *r, found)
	})
}

// repairStep records entries for some findings of the plan, in their order, and then waits for them.
func (a *Activities) repairStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	if r.Position == atSettling {
		done, err := a.settled(ctx, r)
		if err == nil && done {
			r.State = journal.RunDone
		}
		return pauseUnless(done), err
	}
	plan, err := a.Store.Run(ctx, r.Plan)
	if err != nil {
		return 0, err
	}
	var after journal.Ref
	after.Type, after.ID, _ = strings.Cut(r.Position, "/")
	found, err := a.Store.Findings(ctx, r.Plan, after, syncPage)
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		r.Position = atSettling
		return 0, nil
	}
	n := slices.IndexFunc(found, func(f journal.Finding) bool { return f.Object.Type != found[0].Object.Type })
	if n >= 0 {
		found = found[:n]
	}
	since := store.Mark(plan.CreatedAt.UTC().Format(time.RFC3339Nano))
	last := found[len(found)-1].Object
	r.Position = last.Type + "/" + last.ID
	_, err = a.Store.Mend(ctx, r.ID, found, since, true)
	return 0, err
}
