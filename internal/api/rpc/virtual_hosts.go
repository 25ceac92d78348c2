package rpc

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"berth/internal/store/agentstore"
)

// virtualHostPoll is the interval at which a process reads the registered virtual hosts and looks for lost
// connections to them.
const virtualHostPoll = 2 * time.Second

// pollVirtualHosts reads the registered virtual hosts every virtualHostPoll until ctx ends, and calls
// `update` with them. While the database is unavailable, pollVirtualHosts does not call `update`.
func pollVirtualHosts(ctx context.Context, o Options, update func([]agentstore.VirtualHost)) {
	tick := time.NewTicker(virtualHostPoll)
	defer tick.Stop()
	for ctx.Err() == nil {
		registered, err := registeredVirtualHosts(ctx, o)
		switch {
		case err == nil:
			update(registered)
		case ctx.Err() == nil:
			slog.WarnContext(ctx, "registered virtual hosts of agents cannot be read", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// registeredVirtualHosts reads the registered virtual hosts. registeredVirtualHosts leaves out the virtual
// host of the brokers' URLs, because messages there may come from any host.
func registeredVirtualHosts(ctx context.Context, o Options) ([]agentstore.VirtualHost, error) {
	all, err := o.Agents.VirtualHosts(ctx, "")
	return slices.DeleteFunc(all, func(v agentstore.VirtualHost) bool {
		shared := o.broker().HasVirtualHost(v.Name)
		if shared {
			slog.WarnContext(ctx, "registered virtual host ignored: BERTH_RABBITMQ_URL names it",
				"virtual_host", v.Name, "host", v.Host)
		}
		return shared
	}), err
}
