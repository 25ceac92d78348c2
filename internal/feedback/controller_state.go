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

// refreshController reads the OpenDaylight controller's features and host configurations. refreshController
// stores each host configuration of the controller as a pseudo agent.
func (l *Listener) refreshController(ctx context.Context, removed bool) error {
	features := l.Options.Features
	if features == nil {
		var err error
		if features, err = l.ODL.Features(ctx); err != nil {
			return err
		}
	}
	if before := l.Features(); before == nil || !maps.Equal(before, features) {
		slog.InfoContext(ctx, "features of the OpenDaylight controller changed", "features", features)
		l.features.Store(&features)
	}
	hosts, err := l.ODL.HostConfigs(ctx, l.HostConfigsPath)
	if err != nil {
		return err
	}
	expiry := hostExpiry
	if removed {
		expiry = 0
	}
	return l.Store.SyncPseudoAgents(ctx, l.agentStates(ctx, hosts), expiry)
}

// agentStates returns the host configurations as states of pseudo agents. agentStates skips host
// configurations that are invalid or whose type does not begin with "ODL ".
func (l *Listener) agentStates(ctx context.Context, hosts []odl.HostConfig) []network.AgentState {
	var agents []network.AgentState
	for _, h := range hosts {
		configurations := map[string]any{}
		if json.Unmarshal(h.Config, &configurations) != nil || configurations == nil || isInvalidName(h.ID) ||
			isInvalidName(h.Type) ||
			!strings.HasPrefix(h.Type, "ODL ") {
			slog.WarnContext(ctx, "OpenDaylight host configuration is invalid; skipped",
				"host", h.ID, "type", h.Type)
			continue
		}
		configurations[network.ReportsPortStatusKey] = l.reportsPortStatus()
		raw, err := json.Marshal(configurations)
		if err != nil || strings.Contains(string(raw), `\u0000`) {
			slog.WarnContext(ctx, "OpenDaylight host configuration cannot be stored; skipped",
				"host", h.ID, "type", h.Type)
			continue
		}
		agents = append(agents, network.AgentState{
			Type:           h.Type,
			Host:           h.ID,
			Binary:         network.ODLAgentBinary,
			Topic:          "N/A",
			Configurations: raw,
		})
	}
	return agents
}

// isInvalidName reports whether a name cannot be stored as a host or agent type.
func isInvalidName(name string) bool { return len(name) > 255 || strings.ContainsRune(name, 0) }
