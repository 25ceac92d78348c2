package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/store/db"
)

// StepRun performs the next step of the open run of a kind and stores its progress. A run is a full sync, an
// audit, a repair or a recovery. While the controller is unavailable, StepRun returns an error, and Temporal
// retries it.
func (a *Activities) StepRun(ctx context.Context, kind string) (contract.RunProgress, error) {
	defer startHeartbeat(ctx)()
	r, err := a.Store.Mirror.OpenRun(ctx, kind)
	if err != nil || r.ID == 0 {
		return contract.RunProgress{
			Idle:     true,
			State:    "idle",
			Sentence: "No " + kind + " is open.",
		}, classify(err)
	}
	if pause, err := a.Store.Journal.Paused(ctx); err != nil || pause != nil {
		return pausedRun(r, pause), classify(err)
	}
	step := map[string]func(context.Context, *journal.Run) (time.Duration, error){
		contract.KeyFullSync: a.syncStep,
		contract.KeyAudit:    a.auditStep,
		contract.KeyRepair:   a.repairStep,
		contract.KeyRecovery: a.recoveryStep,
	}[kind]
	if !a.ODL.Readable() {
		step = func(_ context.Context, r *journal.Run) (time.Duration, error) {
			r.State, r.Note = journal.RunFailed, "no controller is configured"
			return 0, nil
		}
	}
	delay, err := step(ctx, &r)
	if err == nil {
		r, err = a.Store.Mirror.SaveRun(ctx, r)
	}
	if errors.Is(err, db.ErrConflict) {
		// another attempt has performed this step; the next read shows the result
		err = fmt.Errorf("%s %d: another attempt has already performed this step", kind, r.ID)
	}
	p := contract.RunProgress{State: string(r.State), Sentence: r.Sentence(), Delay: delay}
	if r.State == journal.Running && delay > 0 {
		p.Waiting = []contract.Waiting{{For: "controller", Since: &r.UpdatedAt}}
	}
	return p, classify(err)
}

// pauseInterval is how long a run waits before it checks again whether the journal is paused.
const pauseInterval = 10 * time.Second

// pausedRun returns the progress of a run that waits for the end of the pause of the journal.
func pausedRun(r journal.Run, pause *journal.Pause) contract.RunProgress {
	p := contract.RunProgress{State: string(r.State), Delay: pauseInterval}
	if pause != nil {
		p.Sentence = fmt.Sprintf("The %s %d waits: %s.", r.Kind, r.ID, pause.Sentence())
		p.Waiting = []contract.Waiting{{For: "an administrator", Since: &pause.At}}
	}
	return p
}

// Values of Run.Position after a run has compared the last object type.
const (
	positionSettling = "settling" // the run waits for its entries
	// the run waits for the entry that creates the check network (see journal.Canary)
	positionCanary = "canary"
)

// settleInterval is the pause before a run checks again whether its entries are settled.
const settleInterval = 2 * time.Second

// settleDelay returns the pause before the run's next step: none if the run's entries are settled.
func settleDelay(settled bool) time.Duration {
	if settled {
		return 0
	}
	return settleInterval
}

// entriesSettled reports whether no entry of the run is pending any more, and stores the number of pending
// entries in the run's note. Failed entries, which wait for an administrator, count as settled.
func (a *Activities) entriesSettled(ctx context.Context, r *journal.Run) (bool, error) {
	open, held, err := a.Store.Mirror.CountOpenEntries(ctx, r.ID)
	r.Note = ""
	if open > held {
		r.Note = fmt.Sprintf("waits until %d more entries are mirrored", open-held)
	}
	if held > 0 {
		r.Note += fmt.Sprintf("%d of its entries wait for an administrator", held)
	}
	return open == held, err
}
