package feedback

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"

	"berth/internal/network"
	"berth/internal/odl"
	"berth/internal/text"
)

// maxLogged is the maximum number of characters of a text of the controller in the log.
const maxLogged = 500

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
		slog.InfoContext(ctx, "features of the OpenDaylight controller changed",
			"features", text.Excerpt(fmt.Sprint(features), maxLogged))
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
// configurations that are invalid or whose type does not begin with "ODL ", and logs one of them.
func (l *Listener) agentStates(ctx context.Context, hosts []odl.HostConfig) []network.AgentState {
	var agents []network.AgentState
	var skipped odl.HostConfig
	for _, h := range hosts {
		raw, ok := l.configurations(h)
		if !ok {
			skipped = h
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
	if count := len(hosts) - len(agents); count > 0 {
		slog.WarnContext(ctx, "OpenDaylight host configurations are invalid; skipped", "count", count,
			"host", text.Excerpt(skipped.ID, maxLogged), "type", text.Excerpt(skipped.Type, maxLogged))
	}
	return agents
}

// configurations returns the configurations of the pseudo agent of a host configuration. The result ok is
// false if the host configuration is invalid or cannot be stored.
func (l *Listener) configurations(h odl.HostConfig) (raw json.RawMessage, ok bool) {
	configurations := map[string]any{}
	if len(h.Config) > network.MaxConfigurations ||
		json.Unmarshal(h.Config, &configurations) != nil || configurations == nil || isInvalidName(h.ID) ||
		isInvalidName(h.Type) || !strings.HasPrefix(h.Type, "ODL ") {
		return nil, false
	}
	configurations[network.ReportsPortStatusKey] = l.reportsPortStatus()
	raw, err := json.Marshal(configurations)
	return raw, err == nil && !strings.Contains(string(raw), `\u0000`)
}

// isInvalidName reports whether a name cannot be the host or the type of an agent.
func isInvalidName(name string) bool { return len(name) > 255 || !network.IsSingleLine(name) }
