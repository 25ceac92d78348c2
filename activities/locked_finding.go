package activities

import (
	"context"
	"slices"

	"berth/internal/journal"
	"berth/internal/store/journalstore"
)

const (
	// maxLockWaits is the maximum number of objects for whose locks one step of a run waits in vain. The step
	// then leaves the other locked objects, so that it ends long before its timeout.
	maxLockWaits = 100
	// maxLockedFindings is the maximum number of objects of one type to which a full sync returns. Their
	// findings are kept in memory.
	maxLockedFindings = 10_000
)

// lockedFindings are findings whose objects are not repaired yet, because other transactions had locked them.
type lockedFindings struct {
	findings []journal.Finding
	since    journalstore.Timestamp
	omitted  int // findings beyond maxLockedFindings, about objects of the same type
	waits    int // objects for whose locks the step has waited in vain
}

// add adds those of the findings that have the outcome journal.FindingLocked, without their data. All
// findings must have the same object type.
func (l *lockedFindings) add(found []journal.Finding, outcomes []string, since journalstore.Timestamp) {
	l.since = since
	for i, outcome := range outcomes {
		switch {
		case outcome != journal.FindingLocked:
		case len(l.findings) == maxLockedFindings:
			l.omitted++
		default:
			l.findings = append(l.findings, journal.Finding{Object: found[i].Object, Kind: found[i].Kind})
		}
	}
}

// repairLocked returns to objects that other transactions had locked, and repairs each in a transaction of
// its own, which waits shortly for the lock. It counts the objects that stay locked in the run's progress;
// they do not end the run. The parameter `exactly` is that of RepairFindings.
func (a *Activities) repairLocked(
	ctx context.Context,
	r *journal.Run,
	l *lockedFindings,
	exactly bool,
) error {
	for i, f := range l.findings {
		if l.waits == maxLockWaits {
			for _, left := range l.findings[i:] {
				countLocked(r, left.Object.Type, 1)
			}
			break
		}
		outcomes, err := a.Store.Mirror.RepairFindings(ctx, r.ID, []journal.Finding{f}, l.since, exactly)
		if err != nil {
			return err
		}
		if outcomes[0] == journal.FindingLocked {
			l.waits++
			countLocked(r, f.Object.Type, 1)
		}
	}
	if l.omitted > 0 {
		countLocked(r, l.findings[0].Object.Type, l.omitted)
	}
	return nil
}

// countLocked adds n objects of a type to those that a run has not repaired because they were locked.
func countLocked(r *journal.Run, typ string, n int) {
	i := slices.IndexFunc(r.Progress, func(p journal.TypeProgress) bool { return p.Type == typ })
	if i < 0 {
		i = len(r.Progress)
		r.Progress = append(r.Progress, journal.TypeProgress{Type: typ})
	}
	r.Progress[i].Locked += n
}
