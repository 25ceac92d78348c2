package activities

import (
	"context"
	"slices"
	"time"

	"berth/internal/journal"
	"berth/internal/store/journalstore"
)

// syncStep compares the controller's objects of one type with berth's rows. It records a create entry in the
// journal for each object that the controller lacks, and an update entry for each object that differs from
// the object's row. A full sync deletes nothing in the controller. A full sync creates the check network (see
// journal.Canary) last, after the controller has applied all other journal entries of the sync. If the
// controller has the check network, it therefore has every object, except those that other transactions kept
// locked during the sync; the next audit finds these.
func (a *Activities) syncStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	switch r.Position {
	case positionSettling:
		settled, err := a.entriesSettled(ctx, r)
		if err == nil && settled {
			r.Position = positionCanary
		}
		if i := slices.IndexFunc(r.Progress, func(p journal.TypeProgress) bool { return p.Failed }); i >= 0 &&
			settled {
			r.State, r.Note = journal.RunFailed, r.Progress[i].Type+": "+r.Progress[i].Note
		}
		return settleDelay(settled), err
	case positionCanary:
		return a.canaryStep(ctx, r)
	}
	var locked lockedFindings
	err := a.compare(ctx, r, false, func(found []journal.Finding, since journalstore.Timestamp) error {
		outcomes, err := a.Store.Mirror.RepairFindings(ctx, r.ID, found, since, false)
		locked.add(found, outcomes, since)
		return err
	})
	if err != nil {
		return 0, err
	}
	return 0, a.repairLocked(ctx, r, &locked, false)
}

// canaryStep creates the check network (see journal.Canary) in the controller. When the controller has the
// check network, canaryStep ends the full sync.
func (a *Activities) canaryStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	since, err := a.Store.Journal.Now(ctx)
	if err != nil {
		return 0, err
	}
	present, err := a.canaryPresent(ctx)
	if err != nil {
		return 0, err
	}
	settled, err := a.entriesSettled(ctx, r)
	if err != nil || !settled {
		return settleInterval, err
	}
	c := journal.Canary()
	moving, err := a.Store.Journal.ObjectsChanging(ctx, c.Object.Type, []string{c.Object.ID}, since)
	if err != nil {
		return 0, err
	}
	if present || moving[c.Object.ID] {
		r.State = journal.RunDone
		return 0, nil
	}
	r.Note = "creates the check network"
	_, err = a.Store.Mirror.RepairFindings(ctx, r.ID,
		[]journal.Finding{{Object: c.Object, Kind: journal.Missing}}, since, false)
	return settleInterval, err
}
