package activities

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"berth/internal/lease"
)

// HypervisorLister lists Nova's hypervisors.
type HypervisorLister interface {
	Hypervisors(ctx context.Context) ([]lease.Hypervisor, error)
}

const (
	// healBatch is the maximum number of reservations that one call to HealReservations heals.
	healBatch = 100_000
	// healTime is the maximum duration of one call to HealReservations. healTime must be shorter than
	// workflows.LongRunningTimeout. The next call to HealReservations begins with the reservations for which
	// the time was not sufficient.
	healTime = 5 * time.Minute
)

// HealReservations updates the hosts from Nova and heals reservations that lost a host, or that lack a
// resource which is available again. If HealReservations cannot heal a reservation, it logs the error and
// continues with the other reservations; the next call to HealReservations retries the failed one.
// HealReservations also removes what ended and deleted leases may have left in Nova and Neutron, and releases
// former hosts of leases.
func (a *Activities) HealReservations(ctx context.Context) error {
	defer startHeartbeat(ctx)()
	log := activity.GetLogger(ctx)
	if err := a.updateHosts(ctx); err != nil {
		log.Warn("update of the hosts from Nova failed", "error", err)
	}
	if err := a.clearLeftovers(ctx); err != nil {
		log.Warn("removing the resources of ended leases failed", "error", err)
	}
	if err := a.releaseFormerHosts(ctx); err != nil {
		log.Warn("release of the former hosts of leases failed", "error", err)
	}
	unhealthy, err := a.Store.Lease.UnhealthyReservations(ctx, a.HealingWindow, healBatch)
	if err != nil {
		return classify(err)
	}
	begin := time.Now()
	hasTime := func() bool { return time.Since(begin) < healTime && ctx.Err() == nil }
	a.healing.each(unhealthy, hasTime, func(r lease.UnhealthyReservation) {
		if err := a.Store.Lease.HealReservation(ctx, r); err != nil {
			log.Warn("healing of a reservation failed",
				"reservation", r.Reservation, "host", r.Host, "error", err)
		}
	})
	return ctx.Err()
}

// healingRound remembers the first reservation for which the last round of a process had no time. Without it,
// reservations that cannot be healed would be tried first in each round, so that a project with many of them
// could keep the reservations of others from being healed.
type healingRound struct {
	mu   sync.Mutex
	next lease.UnhealthyReservation
}

// each calls heal for the reservations while hasTime returns true. It begins where the last round had no time
// left; then it continues with the first reservations.
func (h *healingRound) each(
	all []lease.UnhealthyReservation,
	hasTime func() bool,
	heal func(lease.UnhealthyReservation),
) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := max(slices.Index(all, h.next), 0)
	h.next = lease.UnhealthyReservation{}
	for _, r := range slices.Concat(all[first:], all[:first]) {
		if !hasTime() {
			h.next = r
			return
		}
		heal(r)
	}
}

// updateHosts stores in the rows of the hosts what Nova reports about the hypervisors of
// these hosts. With the option MonitorHosts, updateHosts also stores the states of the hosts.
func (a *Activities) updateHosts(ctx context.Context) error {
	if a.Hypervisors == nil {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, a.Timeouts.LongCall)
	defer cancel()
	all, err := a.Hypervisors.Hypervisors(call)
	if err != nil {
		return err
	}
	all, others, unclear := lease.TrustedHypervisors(all)
	if others > 0 {
		activity.GetLogger(ctx).Warn(
			"Nova describes hypervisors with invalid values or with the same hostname; they are ignored",
			"hypervisors", others)
	}
	if unclear > 0 {
		activity.GetLogger(ctx).Warn(
			"Nova describes hypervisors with the compute service of another one; hosts keep their services",
			"hypervisors", unclear)
	}
	if err := a.Store.Lease.RefreshHosts(ctx, all); err != nil || !a.MonitorHosts {
		return err
	}
	states, err := a.Store.Lease.UpdateHostStates(ctx, all)
	if len(states.Failed)+len(states.Recovered) > 0 {
		activity.GetLogger(ctx).Warn("states of hosts changed",
			"failed", states.Failed, "recovered", states.Recovered)
	}
	if states.Suspended > 0 {
		activity.GetLogger(ctx).Warn("too many hosts are down together; leases keep them", "down", states.Suspended)
	}
	return err
}
