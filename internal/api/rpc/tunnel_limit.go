package rpc

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
)

// Each change of the tunnel endpoint of a host is a notification to the agents of all hosts. After
// tunnelBurst changes, the next changes of the host wait for their turn, one in each tunnelPause. A host
// changes its endpoint only when an operator gives it another address, at most one for each type of tunnel.
const (
	tunnelBurst = 5
	tunnelPause = 10 * time.Second
)

func newTunnelLimit() *rate.Limiter { return rate.NewLimiter(rate.Every(tunnelPause), tunnelBurst) }

// waitToChangeTunnel waits for the sender's turn to change its tunnel endpoint. Without a sender, or if the
// endpoint is stored already, waitToChangeTunnel returns at once.
func (h *handlers) waitToChangeTunnel(ctx context.Context, end network.TunnelEndpoint) error {
	if h.sender == nil {
		return nil
	}
	stored, err := h.Store.TunnelEnds(ctx, end.Type)
	if err != nil || slices.Contains(stored, end) || h.sender.tunnelChanges.Allow() {
		return err
	}
	slog.WarnContext(ctx, "a host changes its tunnel endpoint again and again", "host", h.sender.Host)
	if err := h.sender.tunnelChanges.Wait(ctx); err != nil {
		return oslomsg.NewFailure(neutronExceptions, "ServiceUnavailable",
			"The host %s changes its tunnel endpoint too often.", h.sender.Host)
	}
	return nil
}
