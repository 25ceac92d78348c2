package activities

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"berth/internal/journal"
	"berth/internal/store/db"
)

const (
	recoveryPage = 50
	// maxRecoveryRounds is the maximum number of rounds in one recovery. Each round handles the entries whose
	// parents an earlier round has recreated.
	maxRecoveryRounds = 30
)

// recoveryStep decides how some failed entries are recovered, oldest first. An entry whose parents are
// missing in the controller waits for a later round, after the parents are recreated. The run's position
// contains the round and the last entry of the step.
func (a *Activities) recoveryStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	first, second, _ := strings.Cut(r.Position, "/")
	round, _ := strconv.Atoi(first) // 0 at the beginning, when the position is empty
	after, _ := strconv.ParseInt(second, 10, 64)
	entries, err := a.Store.Mirror.UnrecoveredEntries(ctx, r.ID, after, recoveryPage)
	if err != nil {
		return 0, err
	}
	if len(entries) == 0 {
		return a.endRound(ctx, r, round)
	}
	p := journal.TypeProgress{Type: "entries"}
	if len(r.Progress) > 0 && r.Progress[0].Type == p.Type {
		p = r.Progress[0]
	}
	seen := map[journal.Ref]bool{}
	for _, e := range entries {
		if round == 0 {
			p.Total, p.Checked = p.Total+1, p.Checked+1
		}
		if err := a.recoverEntry(ctx, r, e, seen); err != nil {
			return 0, err
		}
	}
	r.Progress = withProgress(r.Progress, p)
	r.Position = fmt.Sprintf("%d/%d", round, entries[len(entries)-1].Seq)
	return 0, nil
}

// endRound starts another round if entries are left. Otherwise it ends the run.
func (a *Activities) endRound(ctx context.Context, r *journal.Run, round int) (time.Duration, error) {
	left, err := a.Store.Mirror.UnrecoveredEntries(ctx, r.ID, 0, recoveryPage)
	if err != nil {
		return 0, err
	}
	open, held, err := a.Store.Mirror.CountOpenEntries(ctx, r.ID)
	if err != nil {
		return 0, err
	}
	if len(left) == 0 || round == maxRecoveryRounds || open == held && round > 0 {
		r.State, r.Note = journal.RunDone, ""
		if len(left) > 0 {
			r.Note = fmt.Sprintf("entry %d and perhaps others could not be recovered", left[0].Seq)
		}
		return 0, nil
	}
	r.Position, r.Note = fmt.Sprintf("%d/0", round+1), "recreates objects that failed entries need"
	return settleInterval, nil
}

// recoverEntry decides how one entry is recovered. If an error concerns only the entry's own objects, or if
// other transactions keep the entry or its object locked, the entry stays failed, and recoverEntry returns no
// error; the next round or the next recovery finds the entry again. If the controller is unavailable,
// recoverEntry returns an error.
func (a *Activities) recoverEntry(
	ctx context.Context,
	r *journal.Run,
	e journal.Entry,
	seen map[journal.Ref]bool,
) error {
	if e.Operation != journal.Delete {
		needs, _, err := journal.References(e.Object.Type, e.Data)
		if err != nil {
			needs = nil // malformed data names no parents; the request of the entry will fail
		}
		pending, err := a.recreateMissing(ctx, r, needs, seen)
		if err != nil || pending || e.State != journal.Failed {
			return ignoreObjectErrors(err)
		}
	}
	if e.State != journal.Failed {
		return nil
	}
	has, err := a.controllerObject(ctx, e.Object, e.Data)
	if err != nil {
		return ignoreObjectErrors(err)
	}
	if _, _, err = a.Store.Mirror.RecoverEntry(ctx, r.ID, e, has); db.WasLocked(err) {
		return nil
	}
	return err
}

// ignoreObjectErrors ignores an error that concerns only one object: the entry of this object stays failed,
// and the recovery continues with the next entries.
func ignoreObjectErrors(err error) error {
	if isObjectError(err) {
		return nil
	}
	return err
}

// recreateMissing records journal entries that create those of the given objects that are missing in the
// controller although they have a row. It first records entries that create the parents of these objects. It
// reports whether any of these objects is not yet recreated.
func (a *Activities) recreateMissing(
	ctx context.Context,
	r *journal.Run,
	refs []journal.Ref,
	seen map[journal.Ref]bool,
) (pending bool, err error) {
	for _, ref := range refs {
		if present, known := seen[ref]; known {
			pending = pending || !present
			continue
		}
		since, err := a.Store.Journal.Now(ctx)
		if err != nil {
			return pending, err
		}
		kept, err := a.Store.Mirror.Objects(ctx, ref.Type, ref.ID)
		if err != nil {
			return pending, err
		}
		if len(kept) == 0 {
			continue // the object has no row, so it cannot be recreated
		}
		has, err := a.controllerObject(ctx, ref, kept[0].Data)
		if err != nil {
			return pending, err
		}
		if seen[ref] = has != nil; has != nil {
			continue
		}
		if _, err := a.recreateMissing(ctx, r, kept[0].Parents, seen); err != nil {
			return pending, err
		}
		missing := []journal.Finding{{Object: ref, Kind: journal.Missing}}
		if _, err := a.Store.Mirror.RepairFindings(ctx, r.ID, missing, since, false); err != nil {
			return pending, err
		}
		pending = true
	}
	return pending, nil
}
