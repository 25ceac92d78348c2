package activities

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"berth/internal/journal"
)

const (
	recoveryPage = 50
	// maxRounds bounds how often one recovery comes back to entries whose parents it has to bring back first.
	maxRounds = 30
)

// recoveryStep decides about some entries that failed, oldest first. One whose parents the controller lacks has to wait
// until they are back: the run goes round. Its position is the round and the last entry that it looked at.
func (a *Activities) recoveryStep(ctx context.Context, r *journal.Run) (time.Duration, error) {
	first, second, _ := strings.Cut(r.Position, "/")
	round, _ := strconv.Atoi(first) // empty at the beginning
	after, _ := strconv.ParseInt(second, 10, 64)
	entries, err := a.Store.Ailing(ctx, r.ID, after, recoveryPage)
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
		if err := a.recover(ctx, r, e, seen); err != nil {
			return 0, err
		}
	}
	r.Progress = with(r.Progress, p)
	r.Position = fmt.Sprintf("%d/%d", round, entries[len(entries)-1].Seq)
	return 0, nil
}

// endRound begins another round if entries are left, and ends the run otherwise.
func (a *Activities) endRound(ctx context.Context, r *journal.Run, round int) (time.Duration, error) {
	left, err := a.Store.Ailing(ctx, r.ID, 0, recoveryPage)
	if err != nil {
		return 0, err
	}
	open, held, err := a.Store.Unsettled(ctx, r.ID)
	if err != nil {
		return 0, err
	}
	if len(left) == 0 || round == maxRounds || open == held && round > 0 {
		r.State, r.Note = journal.RunDone, ""
		if len(left) > 0 {
			r.Note = fmt.Sprintf("entry %d and perhaps others could not be recovered", left[0].Seq)
		}
		return 0, nil
	}
	r.Position, r.Note = fmt.Sprintf("%d/0", round+1), "brings back what failed entries need"
	return settlePause, nil
}

// recover decides about one entry. What the controller answers about its objects concerns only that entry; that the
// controller is away concerns all.
func (a *Activities) recover(ctx context.Context, r *journal.Run, e journal.Entry, seen map[journal.Ref]bool) error {
	if e.Operation != journal.Delete {
		needs, _, err := journal.References(e.Object.Type, e.Data)
		if err != nil {
			needs = nil // what cannot be read needs nothing; its request will tell
		}
		waits, err := a.bringBack(ctx, r, needs, seen)
		if err != nil || waits || e.State != journal.Failed {
			return isolated(err)
		}
	}
	if e.State != journal.Failed {
		return nil
	}
	has, err := a.object(ctx, e.Object, e.Data)
	if err != nil {
		return isolated(err)
	}
	_, _, err = a.Store.RecoverEntry(ctx, r.ID, e, has)
	return err
}

// isolated is no error where only one object is concerned: its entry stays as it is, and others follow.
func isolated(err error) error {
	if isOdd(err) {
		return nil
	}
	return err
}

// bringBack records creates for those of the objects that the controller lacks and shall have, and for what they need
// themselves, first. It tells whether any is on its way.
func (a *Activities) bringBack(ctx context.Context, r *journal.Run, refs []journal.Ref, seen map[journal.Ref]bool) (waits bool, err error) {
	for _, ref := range refs {
		if there, known := seen[ref]; known {
			waits = waits || !there
			continue
		}
		since, err := a.Store.Now(ctx)
		if err != nil {
			return waits, err
		}
		kept, err := a.Store.These(ctx, ref.Type, ref.ID)
		if err != nil {
			return waits, err
		}
		if len(kept) == 0 {
			continue // nobody can bring it back
		}
		has, err := a.object(ctx, ref, kept[0].Data)
		if err != nil {
			return waits, err
		}
		if seen[ref] = has != nil; has != nil {
			continue
		}
		if _, err := a.bringBack(ctx, r, kept[0].Parents, seen); err != nil {
			return waits, err
		}
		if _, err := a.Store.Mend(ctx, r.ID, []journal.Finding{{Object: ref, Kind: journal.Missing}}, since, false); err != nil {
			return waits, err
		}
		waits = true
	}
	return waits, nil
}
