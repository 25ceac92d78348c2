package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	"berth/internal/contract"
	"berth/internal/journal"
	"berth/internal/odl"
	"berth/internal/store"
)

// StepRun does the next step of the open run of a kind that brings controller and rows together, and keeps how far
// it is. While the controller is in trouble it fails, and is repeated.
func (a *Activities) StepRun(ctx context.Context, kind string) (contract.RunProgress, error) {
	defer alive(ctx)()
	r, err := a.Store.OpenRun(ctx, kind)
	if err != nil || r.ID == 0 {
		return contract.RunProgress{Idle: true, State: "idle", Sentence: "There is no " + kind + " to do."}, verdict(err)
	}
	step := map[string]func(context.Context, *journal.Run) (time.Duration, error){
		contract.KeyFullSync: a.syncStep, contract.KeyAudit: a.auditStep, contract.KeyRepair: a.repairStep, contract.KeyRecovery: a.recoveryStep}[kind]
	if !a.ODL.Readable() {
		step = func(_ context.Context, r *journal.Run) (time.Duration, error) {
			r.State, r.Note = journal.RunFailed, "no controller is configured"
			return 0, nil
		}
	}
	after, err := step(ctx, &r)
	if err == nil {
		r, err = a.Store.SaveRun(ctx, r)
	}
	if errors.Is(err, store.ErrConflict) { // a twin of this step was faster: the next look tells
		err = fmt.Errorf("%s %d: overtaken", kind, r.ID)
	}
	p := contract.RunProgress{State: string(r.State), Sentence: r.Sentence(), Delay: after}
	if r.State == journal.Running && after > 0 {
		p.Waiting = []contract.Waiting{{For: "controller", Since: &r.UpdatedAt}}
	}
	return p, verdict(err)
}

// settlePause is how long a run waits before it looks again whether its entries are mirrored.
const settlePause = 2 * time.Second

// settled tells whether nothing of the run is on its way to the controller any more, and notes what is.
func (a *Activities) settled(ctx context.Context, r *journal.Run) (bool, error) {
	open, held, err := a.Store.Unsettled(ctx, r.ID)
	r.Note = ""
	if open > held {
		r.Note = fmt.Sprintf("waits until %d more entries are mirrored", open-held)
	}
	if held > 0 {
		r.Note += fmt.Sprintf("%d of its entries wait for an administrator", held)
	}
	return open == held, err
}

// read asks the controller for something. It is nil if the controller has no such thing, and an error while the
// controller is in trouble.
func (a *Activities) read(ctx context.Context, r journal.Request) ([]byte, error) {
	call, cancel := context.WithTimeout(ctx, LongCall)
	defer cancel()
	got, err := a.ODL.Send(call, r.Method, r.Path, nil)
	if err != nil {
		return nil, err
	}
	there, err := read(r, got)
	if !there {
		return nil, err
	}
	return got.Body, err
}

// list is read for a collection, whose objects each gets as they come.
func (a *Activities) list(ctx context.Context, r journal.Request, key string, each func(json.RawMessage) error) (there bool, err error) {
	got, err := a.ODL.List(ctx, r.Path, key, each)
	switch {
	case errors.Is(err, odl.ErrUnexpectedBody):
		return false, odd("%s %s: %s", r.Method, r.Path, err)
	case err != nil:
		return false, err
	}
	return read(r, got)
}

// read tells what an answer to a look means: there is such a thing, there is none, or the controller is in trouble.
func read(r journal.Request, got odl.Response) (there bool, err error) {
	switch {
	case got.Failure != "":
		return false, troubled(got.RetryAfter, "%s %s: %s: %s", r.Method, r.Path, got.Failure, got.Detail)
	case got.Status == 200:
		return true, nil
	case got.Status == 404:
		return false, nil
	case slices.Contains(everybody, got.Status):
		return false, troubled(got.RetryAfter, "%s %s: the controller answered %d", r.Method, r.Path, got.Status)
	default:
		return false, odd("%s %s: the controller answered %d", r.Method, r.Path, got.Status)
	}
}

// everybody are the answers that concern no object in particular.
var everybody = []int{401, 403, 408, 429, 502, 503, 504}

// oddity is the type of the error of an answer that concerns the objects that were asked for, and no others.
const oddity = "Odd"

func odd(format string, args ...any) error {
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf(format, args...), oddity, temporal.ApplicationErrorOptions{
		Category: temporal.ApplicationErrorCategoryBenign,
	})
}

func isOdd(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == oddity
}

// troubled is the error of a controller in trouble, which may ask for patience.
func troubled(after time.Duration, format string, args ...any) error {
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf(format, args...), again, temporal.ApplicationErrorOptions{
		NextRetryDelay: min(after, time.Minute),
		Category:       temporal.ApplicationErrorCategoryBenign,
	})
}

// WatchController starts a full sync if the controller has lost its data or one is due anyway, and a recovery if entries have failed. A
// controller in trouble is left alone.
func (a *Activities) WatchController(ctx context.Context) error {
	defer alive(ctx)()
	if !a.ODL.Readable() {
		return nil
	}
	lost, err := a.canaryLost(ctx)
	if err != nil {
		return nil //nolint:nilerr // the entries that wait for it tell, and the next round looks again
	}
	reason := "the canary network is missing"
	if !lost && a.SyncEvery > 0 {
		reason = "the last one was begun " + a.SyncEvery.String() + " ago"
		if lost, err = a.Store.Overdue(ctx, contract.KeyFullSync, a.SyncEvery); err != nil {
			return verdict(err)
		}
	}
	if lost {
		if _, err := a.Store.StartRun(ctx, journal.Run{Kind: contract.KeyFullSync, Actor: "berth", Reason: reason}); err != nil {
			return verdict(err)
		}
	}
	due, err := a.Store.Neglected(ctx, recoverSoon, recoverEvery)
	if err != nil || !due {
		return verdict(err)
	}
	_, err = a.Store.StartRun(ctx, journal.Run{Kind: contract.KeyRecovery, Actor: "berth", Reason: "entries have failed"})
	return verdict(err)
}

// When failed entries are recovered: soon for the first time, then again and again.
const (
	recoverSoon  = 30 * time.Second
	recoverEvery = 5 * time.Minute
)

// canaryLost tells whether a controller that is well lacks the canary, and nothing brings it there.
func (a *Activities) canaryLost(ctx context.Context) (bool, error) {
	c := journal.Canary()
	mark, err := a.Store.Now(ctx)
	if err != nil {
		return false, err
	}
	there, err := a.canary(ctx)
	if err != nil || there {
		return false, err
	}
	moving, err := a.Store.Moving(ctx, c.Object.Type, []string{c.Object.ID}, mark)
	return !moving[c.Object.ID], err
}

// canary tells whether the controller has the canary. Whoever answers "not found" to everything is no controller.
func (a *Activities) canary(ctx context.Context) (bool, error) {
	c := journal.Canary()
	body, err := a.object(ctx, c.Object, c.Data)
	if err != nil || body != nil {
		return body != nil, err
	}
	there := false
	known, err := a.listed(ctx, c.Object.Type, func(id string, _ json.RawMessage) error {
		there = there || id == c.Object.ID
		return nil
	})
	if err == nil && !known {
		err = odd("the controller has no networks")
	}
	return there, err
}

// object is what the controller has of an object; nil if it has none.
func (a *Activities) object(ctx context.Context, ref journal.Ref, data []byte) ([]byte, error) {
	request, err := journal.Read(journal.Entry{Object: ref, Data: data})
	if err != nil {
		return nil, odd("%s", err)
	}
	body, err := a.read(ctx, request)
	if body == nil || err != nil {
		return nil, err
	}
	shown, err := journal.Shown(ref.Type, body)
	if err != nil {
		return nil, odd("%s", err)
	}
	return shown, nil
}
