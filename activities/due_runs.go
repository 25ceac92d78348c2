package activities

import (
	"context"
	"encoding/json"
	"time"

	"berth/internal/contract"
	"berth/internal/journal"
)

// Times of automatic recoveries: the delay after an entry has failed for the first time, and the interval between two
// recoveries.
const (
	firstRecoveryDelay = 30 * time.Second
	recoveryInterval   = 5 * time.Minute
)

// StartDueRuns starts a full sync if the controller has lost its data or if a scheduled full sync is due. StartDueRuns starts a recovery
// if journal entries have failed. StartDueRuns does nothing while the controller is unavailable or the
// journal is paused.
func (a *Activities) StartDueRuns(ctx context.Context) error {
	defer startHeartbeat(ctx)()
	if !a.ODL.Readable() {
		return nil
	}
	if pause, err := a.Store.Journal.Paused(ctx); err != nil || pause != nil {
		return classify(err)
	}
	due, err := a.canaryMissing(ctx)
	if err != nil {
		return nil //nolint:nilerr // entries that wait for the controller show the error, and the next round repeats the check
	}
	reason := "the check network is missing in the controller"
	if !due && a.FullSyncInterval > 0 {
		reason = "the last full sync was started " + a.FullSyncInterval.String() + " ago"
		if due, err = a.Store.Mirror.IsRunDue(ctx, contract.KeyFullSync, a.FullSyncInterval); err != nil {
			return classify(err)
		}
	}
	if due {
		if _, err := a.Store.Mirror.StartRun(ctx, journal.Run{Kind: contract.KeyFullSync, Actor: "berth", Reason: reason}); err != nil {
			return classify(err)
		}
	}
	recover, err := a.Store.Mirror.IsRecoveryDue(ctx, firstRecoveryDelay, recoveryInterval)
	if err != nil || !recover {
		return classify(err)
	}
	_, err = a.Store.Mirror.StartRun(ctx, journal.Run{Kind: contract.KeyRecovery, Actor: "berth", Reason: "entries have failed"})
	return classify(err)
}

// canaryMissing reports whether two conditions hold: the controller is available but does not have the check network, and no journal
// entry creates the check network.
func (a *Activities) canaryMissing(ctx context.Context) (bool, error) {
	c := journal.Canary()
	mark, err := a.Store.Journal.Now(ctx)
	if err != nil {
		return false, err
	}
	present, err := a.canaryPresent(ctx)
	if err != nil || present {
		return false, err
	}
	moving, err := a.Store.Journal.ObjectsChanging(ctx, c.Object.Type, []string{c.Object.ID}, mark)
	return !moving[c.Object.ID], err
}

// canaryPresent reports whether the controller has the check network. If the check network is not found, canaryPresent also reads the
// list of networks, because a server that answers "not found" to every request is not the controller.
func (a *Activities) canaryPresent(ctx context.Context) (bool, error) {
	c := journal.Canary()
	body, err := a.controllerObject(ctx, c.Object, c.Data)
	if err != nil || body != nil {
		return body != nil, err
	}
	present := false
	listed, err := a.listObjects(ctx, c.Object.Type, func(id string, _ json.RawMessage) error {
		present = present || id == c.Object.ID
		return nil
	})
	if err == nil && !listed {
		err = objectError("the controller has no networks")
	}
	return present, err
}
