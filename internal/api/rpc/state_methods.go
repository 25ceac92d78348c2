package rpc

import (
	"context"
	"encoding/json"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
)

// stateMethods are the methods that every agent calls on q-reports-plugin.
func (h *handlers) stateMethods() map[string]oslomsg.Method {
	return map[string]oslomsg.Method{
		"has_alive_neutron_server": oslomsg.WithArgs(func(context.Context, struct{}) (any, error) {
			return true, nil
		}),
		"report_state": oslomsg.WithArgs(h.reportState),
	}
}

type reportStateArgs struct {
	State struct {
		State struct {
			Type           string            `json:"agent_type"`
			Host           string            `json:"host"`
			Binary         string            `json:"binary"`
			Topic          string            `json:"topic"`
			Zone           string            `json:"availability_zone"`
			Configurations map[string]any    `json:"configurations"`
			Versions       map[string]string `json:"resource_versions"`
		} `json:"agent_state"`
	} `json:"agent_state"`
}

const (
	maxObjectVersions = 100 // object types in resource_versions
	maxVersionLength  = 64  // bytes of a type name or version in resource_versions
)

func (h *handlers) reportState(ctx context.Context, a reportStateArgs) (any, error) {
	s := a.State.State
	if s.Type == "" || s.Host == "" {
		return nil, oslomsg.NewTypeError("an agent's state must have an agent_type and a host")
	}
	if err := checkNames(s.Type, s.Host, s.Binary, s.Topic, s.Zone); err != nil {
		return nil, err
	}
	if s.Configurations == nil {
		s.Configurations = map[string]any{}
	}
	for name, version := range s.Versions {
		if _, _, ok := oslomsg.ParseVersion(version); !ok || len(s.Versions) > maxObjectVersions ||
			len(name) > maxVersionLength ||
			len(version) > maxVersionLength {
			return nil, oslomsg.NewTypeError(
				"resource_versions is invalid: want at most %d types with versions like 1.5",
				maxObjectVersions,
			)
		}
	}
	configurations, err := json.Marshal(s.Configurations)
	if err != nil {
		return nil, oslomsg.NewTypeError("the configurations cannot be stored: %s", err)
	}
	return h.Store.ReportState(ctx, network.AgentState{
		Type:             s.Type,
		Host:             s.Host,
		Binary:           s.Binary,
		Topic:            s.Topic,
		Zone:             s.Zone,
		Configurations:   configurations,
		ResourceVersions: s.Versions,
	})
}
