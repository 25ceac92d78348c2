package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/internal/journal"
	"berth/internal/store/journalstore"
)

// auditStep compares the controller's objects of one type with berth's rows and stores the differences. It
// changes nothing in the controller.
func (a *Activities) auditStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	if r.Position == positionSettling {
		missing, different, extra := r.Differences()
		r.State = journal.RunDone
		r.Note = fmt.Sprintf("%d missing, %d different, %d extra", missing, different, extra)
		return 0, nil
	}
	// findings of an earlier attempt at this step
	if err := a.Store.Mirror.DeleteFindings(ctx, *r, positionOf(r)); err != nil {
		return 0, err
	}
	return 0, a.compare(ctx, r, true, func(found []journal.Finding, _ journalstore.Timestamp) error {
		return a.Store.Mirror.SaveFindings(ctx, *r, found)
	})
}

// repairStep records journal entries that repair one page of the findings of an audit, in the order of the
// findings. After the last page, it repairs the objects that other transactions had locked, and waits until
// all entries of the repair are completed or failed.
func (a *Activities) repairStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	if r.Position == positionSettling {
		settled, err := a.entriesSettled(ctx, r)
		if err == nil && settled {
			r.State = journal.RunDone
		}
		return settleDelay(settled), err
	}
	plan, err := a.Store.Mirror.Run(ctx, r.Plan)
	if err != nil {
		return 0, err
	}
	var after journal.Ref
	after.Type, after.ID, _ = strings.Cut(r.Position, "/")
	found, err := a.Store.Mirror.Findings(ctx, r.Plan, after, comparePageSize)
	if err != nil {
		return 0, err
	}
	since := journalstore.Timestamp(plan.CreatedAt.UTC().Format(time.RFC3339Nano))
	if len(found) == 0 {
		r.Position = positionSettling
		return 0, a.repairLockedFindings(ctx, r, since)
	}
	n := slices.IndexFunc(found,
		func(f journal.Finding) bool { return f.Object.Type != found[0].Object.Type })
	if n >= 0 {
		found = found[:n]
	}
	last := found[len(found)-1].Object
	r.Position = last.Type + "/" + last.ID
	_, err = a.Store.Mirror.RepairFindings(ctx, r.ID, found, since, true)
	return 0, err
}

// repairLockedFindings repairs the findings of the audit whose objects other transactions had locked, page by
// page.
func (a *Activities) repairLockedFindings(
	ctx context.Context,
	r *journal.Run,
	since journalstore.Timestamp,
) error {
	l := lockedFindings{since: since}
	for after := (journal.Ref{}); ; {
		var err error
		l.findings, err = a.Store.Mirror.LockedFindings(ctx, r.Plan, after, comparePageSize)
		if err != nil || len(l.findings) == 0 {
			return err
		}
		after = l.findings[len(l.findings)-1].Object
		if err := a.repairLocked(ctx, r, &l, true); err != nil {
			return err
		}
	}
}
