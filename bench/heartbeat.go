package main

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// heartbeatInterval is the time between two heartbeats of an agent. Like Neutron with agent_down_time, berth regards an
// agent as down after 75 s without one, and binds no port to its host then.
const heartbeatInterval = 10 * time.Second

// withHeartbeats calls the parameter `do`; both agents send heartbeats until `do` returns. The first heartbeats are answered
// before `do` begins. Later ones may fail, because some figures restart berth; the agents then send the next one in time.
func (a *api) withHeartbeats(ctx context.Context, interval time.Duration, do func(context.Context) error) error {
	if err := a.sendHeartbeats(ctx); err != nil {
		return err
	}
	var sender sync.WaitGroup
	defer sender.Wait()
	sending, stop := context.WithCancel(ctx)
	defer stop()
	sender.Go(func() {
		for pause(sending, interval); sending.Err() == nil; pause(sending, interval) {
			_ = a.sendHeartbeats(sending)
		}
	})
	return do(ctx)
}

// sendHeartbeats sends one heartbeat of each agent.
func (a *api) sendHeartbeats(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.heartbeat(ctx, "DHCP agent", dhcpHost) })
	group.Go(func() error { return a.heartbeat(ctx, "Open vSwitch agent", l2Host) })
	return group.Wait()
}

// heartbeat sends a heartbeat of an agent. The first one creates the agent.
func (a *api) heartbeat(ctx context.Context, agentType, host string) error {
	return a.post(ctx, "/agent/v1/state", map[string]any{
		"agent_type": agentType, "host": host, "binary": "bench", "topic": "N/A", "configurations": attributes{}}, nil)
}
