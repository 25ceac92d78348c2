package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"berth/internal/contract"
	"berth/internal/journal"
)

// Times of automatic recoveries, which send failed journal entries again: the delay after an entry has failed
// for the first time, and the interval between two recoveries.
const (
	firstRecoveryDelay = 30 * time.Second
	recoveryInterval   = 5 * time.Minute
)

// StartDueRuns starts a full sync if there was none yet, if the controller has lost its data, if a scheduled
// full sync is due, or (with the option AuditRepair) if the last audit was automatic and has found missing or
// different objects. StartDueRuns starts an audit if one is due, and a recovery if journal entries have
// failed. StartDueRuns does nothing while the controller is unavailable or the journal is paused.
func (a *Activities) StartDueRuns(ctx context.Context) error {
	defer startHeartbeat(ctx)()
	if !a.ODL.Readable() {
		return nil
	}
	if pause, err := a.Store.Journal.Paused(ctx); err != nil || pause != nil {
		return classify(err)
	}
	lost, err := a.canaryMissing(ctx)
	if err != nil {
		return nil //nolint:nilerr // entries that wait for the controller show the error, and the next round repeats the check
	}
	audit, err := a.Store.Mirror.LastDone(ctx, contract.KeyAudit)
	if err != nil {
		return classify(err)
	}
	for _, due := range []struct {
		kind   string
		reason func() (string, error)
	}{
		{contract.KeyFullSync, func() (string, error) { return a.fullSyncReason(ctx, lost, audit) }},
		{contract.KeyAudit, func() (string, error) { return a.auditReason(ctx, audit) }},
		{contract.KeyRecovery, func() (string, error) { return a.recoveryReason(ctx) }},
	} {
		reason, err := due.reason()
		if err == nil && reason != "" {
			_, err = a.Store.Mirror.StartRun(ctx,
				journal.Run{Kind: due.kind, Actor: automaticActor, Reason: reason})
		}
		if err != nil {
			return classify(err)
		}
	}
	return nil
}

// automaticActor is the actor of the runs that StartDueRuns starts.
const automaticActor = "berth"

// fullSyncReason returns why a full sync is due, or "" if none is due. After an audit with differences at
// most one full sync is started in each AuditInterval, so that a difference that a full sync cannot repair
// does not cause one full sync after another.
func (a *Activities) fullSyncReason(ctx context.Context, lost bool, audit journal.Run) (string, error) {
	if lost {
		last, err := a.Store.Mirror.LastDone(ctx, contract.KeyFullSync)
		if err != nil || last.ID == 0 {
			return "this is the first comparison with the controller: no full sync has ended yet", err
		}
		return "the controller has lost its data: the network that berth keeps there as a check is missing", nil
	}
	missing, different, _ := audit.Differences()
	if a.AuditInterval > 0 && a.AuditRepair && audit.Actor == automaticActor && missing+different > 0 {
		if due, err := a.Store.Mirror.IsRunDue(ctx, contract.KeyFullSync, a.AuditInterval); err != nil ||
			due {
			return fmt.Sprintf("audit %d has found %s", audit.ID, audit.Note), err
		}
	}
	if a.FullSyncInterval > 0 {
		if due, err := a.Store.Mirror.IsRunDue(ctx, contract.KeyFullSync, a.FullSyncInterval); err != nil ||
			due {
			return "the last full sync was started " + a.FullSyncInterval.String() + " ago", err
		}
	}
	return "", nil
}

// auditReason returns why an audit is due, or "" if none is due. After a full sync or a repair, another audit
// shows which differences remain.
func (a *Activities) auditReason(ctx context.Context, last journal.Run) (string, error) {
	if a.AuditInterval <= 0 {
		return "", nil
	}
	if due, err := a.Store.Mirror.IsRunDue(ctx, contract.KeyAudit, a.AuditInterval); err != nil || due {
		return "no audit was started in the last " + a.AuditInterval.String(), err
	}
	if missing, different, extra := last.Differences(); missing+different+extra == 0 {
		return "", nil
	}
	for _, kind := range []string{contract.KeyFullSync, contract.KeyRepair} {
		repair, err := a.Store.Mirror.LastDone(ctx, kind)
		if err != nil {
			return "", err
		}
		if repair.FinishedAt != nil && repair.FinishedAt.After(last.CreatedAt) {
			return fmt.Sprintf("%s %d has ended after audit %d", kind, repair.ID, last.ID), nil
		}
	}
	return "", nil
}

// recoveryReason returns why a recovery is due, or "" if none is due.
func (a *Activities) recoveryReason(ctx context.Context) (string, error) {
	due, err := a.Store.Mirror.IsRecoveryDue(ctx, firstRecoveryDelay, recoveryInterval)
	if err != nil || !due {
		return "", err
	}
	return "entries have failed", nil
}

// canaryMissing reports whether the controller never had berth's data or has lost it: the controller is
// available but does not have the check network (see journal.Canary), and no open journal entry creates the
// check network.
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

// canaryPresent reports whether the controller has the check network (see journal.Canary). If the check
// network is not found, canaryPresent also reads the list of networks, because a server that answers "not
// found" to every request is not the controller.
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
