package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// Hypervisors is who knows which hosts are up.
type Hypervisors interface {
	// Hypervisors tells it by their names.
	Hypervisors(ctx context.Context) (map[string]bool, error)
}

const (
	// healAtOnce is how many reservations are healed in one round.
	healAtOnce = 10_000
	// healFor is how long a round may take, well within workflows.LongAttempt; the next one goes on.
	healFor = 5 * time.Minute
)

// WatchHosts finds out which hosts are up and heals the reservations that lost one, or lack something that can be had
// by now. Nobody's trouble holds up the others: what does not go well is tried again in the next round.
func (a *Activities) WatchHosts(ctx context.Context) error {
	defer alive(ctx)()
	log := activity.GetLogger(ctx)
	if err := a.seeHosts(ctx); err != nil {
		log.Warn("nobody says which hosts are up", "error", err)
	}
	unwell, err := a.Store.Unwell(ctx, a.Healing, healAtOnce)
	if err != nil {
		return verdict(err)
	}
	for begin := time.Now(); len(unwell) > 0 && time.Since(begin) < healFor && ctx.Err() == nil; unwell = unwell[1:] {
		if err := a.Store.HealReservation(ctx, unwell[0]); err != nil {
			log.Warn("a reservation could not be healed", "reservation", unwell[0].Reservation, "host", unwell[0].Host, "error", err)
		}
	}
	return ctx.Err()
}

func (a *Activities) seeHosts(ctx context.Context) error {
	if a.Hypervisors == nil {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, LongCall)
	defer cancel()
	up, err := a.Hypervisors.Hypervisors(call)
	if err != nil {
		return err
	}
	failed, recovered, err := a.Store.SeeHosts(ctx, up)
	if len(failed)+len(recovered) > 0 {
		activity.GetLogger(ctx).Warn("hosts of leases", "failed", failed, "recovered", recovered)
	}
	return err
}
