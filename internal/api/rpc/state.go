package rpc

import (
	"context"
	"encoding/json"

	"berth/internal/network"
)

// stateMethods are what every agent calls on q-reports-plugin.
var stateMethods = map[string]method{
	"has_alive_neutron_server": with(func(context.Context, *Desk, struct{}) (any, error) { return true, nil }),
	"report_state":             with(reportState),
}

type stateArgs struct {
	State struct {
		State struct {
			Type           string            `json:"agent_type"`
			Host           string            `json:"host"`
			Binary         string            `json:"binary"`
			Topic          string            `json:"topic"`
			Configurations map[string]any    `json:"configurations"`
			Versions       map[string]string `json:"resource_versions"`
		} `json:"agent_state"`
	} `json:"agent_state"`
}

// How many versions of objects an agent may tell, and how long a name or a version may be.
const (
	maxVersions = 100
	maxVersion  = 64
)

func reportState(ctx context.Context, d *Desk, a stateArgs) (any, error) {
	s := a.State.State
	if s.Type == "" || s.Host == "" {
		return nil, badArgument("an agent's state has an agent_type and a host")
	}
	for _, text := range []string{s.Type, s.Host, s.Binary, s.Topic} {
		if len(text) > maxName {
			return nil, badArgument("'%s' is longer than %d bytes", short(text), maxName)
		}
	}
	if s.Configurations == nil {
		s.Configurations = map[string]any{}
	}
	for name, version := range s.Versions {
		if _, _, ok := versionOf(version); !ok || len(s.Versions) > maxVersions || len(name) > maxVersion || len(version) > maxVersion {
			return nil, badArgument("these are no resource_versions")
		}
	}
	configurations, err := json.Marshal(s.Configurations)
	if err != nil {
		return nil, badArgument("the configurations are not what can be kept: %s", err)
	}
	return d.Store.ReportState(ctx, network.State{Type: s.Type, Host: s.Host, Binary: s.Binary, Topic: s.Topic,
		Configurations: configurations, Versions: s.Versions})
}
