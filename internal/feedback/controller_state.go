package feedback

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"

	"berth/internal/network"
	"berth/internal/odl"
)

// negotiate asks what the controller can do, and which hosts it wires ports on.
func (l *Listener) negotiate(ctx context.Context, removed bool) error {
	features := l.Options.Features
	if features == nil {
		var err error
		if features, err = l.ODL.Features(ctx); err != nil {
			return err
		}
	}
	if before := l.Features(); before == nil || !maps.Equal(before, features) {
		slog.InfoContext(ctx, "the controller's features", "features", features)
		l.features.Store(&features)
	}
	hosts, err := l.ODL.HostConfigs(ctx, l.HostConfigsPath)
	if err != nil {
		return err
	}
	patience := forget
	if removed {
		patience = 0
	}
	return l.Store.KeepHosts(ctx, l.agents(ctx, hosts), patience)
}

// agents are the hosts as agents that seem to run there. A controller speaks for no agents but its own.
func (l *Listener) agents(ctx context.Context, hosts []odl.HostConfig) []network.State {
	var agents []network.State
	for _, h := range hosts {
		configurations := map[string]any{}
		if json.Unmarshal(h.Config, &configurations) != nil || configurations == nil || unfit(h.ID) || unfit(h.Type) || !strings.HasPrefix(h.Type, "ODL ") {
			slog.WarnContext(ctx, "the controller's configuration of a host cannot be read", "host", h.ID, "type", h.Type)
			continue
		}
		configurations[network.ReportsKey] = l.reports()
		raw, err := json.Marshal(configurations)
		if err != nil || strings.Contains(string(raw), `\u0000`) {
			slog.WarnContext(ctx, "the controller's configuration of a host cannot be kept", "host", h.ID, "type", h.Type)
			continue
		}
		agents = append(agents, network.State{Type: h.Type, Host: h.ID, Binary: network.PseudoBinary, Topic: "N/A", Configurations: raw})
	}
	return agents
}

// unfit tells whether a name cannot be that of a host or of a type of agents.
func unfit(name string) bool { return len(name) > 255 || strings.ContainsRune(name, 0) }
