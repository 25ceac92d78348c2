package harness

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// HeartbeatInterval is the time between two heartbeats of an agent. If an agent sends no heartbeat for 75 s
// (agent_down_time in Neutron), berth regards the agent as down and binds no port to the agent's host.
const HeartbeatInterval = 10 * time.Second

// WithHeartbeats sends a heartbeat for the DHCP agent and one for the L2 agent, and then calls the function
// `do`. Until the function `do` returns, WithHeartbeats sends further heartbeats for both agents. If one of
// the first two heartbeats fails, WithHeartbeats returns the error. WithHeartbeats ignores the failure of a
// later heartbeat, because some measurements restart berth.
func (a *API) WithHeartbeats(
	ctx context.Context,
	interval time.Duration,
	do func(context.Context) error,
) error {
	if err := a.sendHeartbeats(ctx); err != nil {
		return err
	}
	var sender sync.WaitGroup
	defer sender.Wait()
	sending, stop := context.WithCancel(ctx)
	defer stop()
	sender.Go(func() {
		for Pause(sending, interval); sending.Err() == nil; Pause(sending, interval) {
			_ = a.sendHeartbeats(sending)
		}
	})
	return do(ctx)
}

// sendHeartbeats sends one heartbeat for each agent.
func (a *API) sendHeartbeats(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.heartbeat(ctx, "DHCP agent", DHCPHost) })
	group.Go(func() error { return a.heartbeat(ctx, "Open vSwitch agent", L2Host) })
	return group.Wait()
}

// heartbeat sends one heartbeat for an agent. berth creates an agent when it receives the first heartbeat of
// that agent.
func (a *API) heartbeat(ctx context.Context, agentType, host string) error {
	return a.Post(ctx, "/agent/v1/state", map[string]any{
		"agent_type":     agentType,
		"host":           host,
		"binary":         "bench",
		"topic":          "N/A",
		"configurations": Attributes{},
	}, nil)
}

// The hosts of the simulated agents.
const (
	DHCPHost = "bench-net"
	L2Host   = "bench-cmp"
)
