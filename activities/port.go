package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/notify"
	"berth/internal/store"
)

// SettlePort hands reports to the port's row and tells what the port has become. With no reports it is a look.
func (a *Activities) SettlePort(ctx context.Context, key string, reports []contract.Report) (contract.PortStatus, error) {
	id, err := uuidOf(key)
	if err != nil {
		return contract.PortStatus{}, err
	}
	in := make([]network.Report, len(reports))
	for i, r := range reports {
		in[i] = network.Report(r)
	}
	s, err := a.Store.SettlePort(ctx, id, in)
	if err != nil {
		return contract.PortStatus{}, verdict(err)
	}
	return store.PortStanding(key, s), nil
}

// NotifyNova tells Nova what was recorded for it about the port, oldest first. World first, row second: Nova may
// hear an event twice, and never misses one.
func (a *Activities) NotifyNova(ctx context.Context, key string) error {
	defer alive(ctx)()
	id, err := uuidOf(key)
	if err != nil {
		return err
	}
	recorded, err := a.Store.NovaEvents(ctx, id)
	if err != nil || len(recorded) == 0 {
		return verdict(err)
	}
	events, ids := make([]notify.Event, len(recorded)), make([]int64, len(recorded))
	for i, e := range recorded {
		events[i] = notify.Event{Server: e.Server, Name: e.Name, Status: e.Status, Tag: e.Tag}
		ids[i] = e.ID
	}
	codes, err := a.Nova.Send(ctx, events)
	if errors.Is(err, notify.ErrRejected) { // no repetition mends it, and the next events must not wait for it
		activity.GetLogger(ctx).Error("Nova will never take these events", "port", key, "events", events, "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	var unheard []network.NovaEvent
	if codes != nil {
		unheard = network.Unheard(recorded, codes)
	}
	heard := slices.DeleteFunc(ids, func(id int64) bool {
		return slices.ContainsFunc(unheard, func(e network.NovaEvent) bool { return e.ID == id })
	})
	if err := a.Store.SettleNovaEvents(ctx, heard); err != nil || len(unheard) == 0 {
		return verdict(err)
	}
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("Nova does not know the server %s yet", unheard[0].Server), again,
		temporal.ApplicationErrorOptions{NextRetryDelay: max(unheard[0].Age/2, time.Second), Category: temporal.ApplicationErrorCategoryBenign})
}

// Compute is who is told about ports.
type Compute interface {
	// Send delivers events and returns Nova's code for each.
	Send(ctx context.Context, events []notify.Event) ([]int, error)
}
