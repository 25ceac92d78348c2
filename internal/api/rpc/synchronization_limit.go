package rpc

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"berth/internal/api/rpc/oslomsg"
)

// A DHCP agent that cannot serve one of its networks synchronizes all its networks again, at once and without
// end: one network then occupies the agent, and with it berth. Each synchronization begins with a call that
// reads all networks. After synchronizationBurst such calls, the calls of one host that follow wait for their
// turn, one in each synchronizationPause.
const (
	synchronizationBurst = 5
	synchronizationPause = 2 * time.Second
)

// synchronizationLimit limits how often the DHCP agent of one host synchronizes.
type synchronizationLimit struct {
	turns   *rate.Limiter
	delayed prometheus.Counter
}

func newSynchronizationLimit(delayed prometheus.Counter) *synchronizationLimit {
	return &synchronizationLimit{
		rate.NewLimiter(rate.Every(synchronizationPause), synchronizationBurst),
		delayed,
	}
}

func newDelayedSynchronizations() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_rpc_synchronizations_delayed_total",
		Help: "Synchronizations of DHCP agents that waited because their host synchronizes too often."})
}

// waitToSynchronize waits for the sender's turn. If the sender is nil, or its turn is now, waitToSynchronize
// returns at once.
func (s *sender) waitToSynchronize(ctx context.Context) error {
	if s == nil || s.synchronizations.turns.Allow() {
		return nil
	}
	s.synchronizations.delayed.Inc()
	slog.WarnContext(ctx, "a DHCP agent synchronizes all its networks again and again", "host", s.Host,
		"hint", "the agent's log names the network that it cannot serve")
	if err := s.synchronizations.turns.Wait(ctx); err != nil {
		return oslomsg.NewFailure(neutronExceptions, "ServiceUnavailable",
			"The DHCP agent of the host %s synchronizes too often.", s.Host)
	}
	return nil
}
