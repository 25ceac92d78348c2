package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"berth/internal/api/rpc/oslomsg"
	"berth/internal/network"
	"berth/internal/store/agentstore"
	"berth/internal/store/db"
)

// sender is the host that has sent every message in a virtual host of RabbitMQ, because only the agents of
// this host can reach the virtual host. In the virtual host of BERTH_RABBITMQ_URL the sender is nil: every
// message there may come from any host.
type sender struct {
	agentstore.VirtualHost
	refusals         *prometheus.CounterVec
	synchronizations *synchronizationLimit
	tunnelChanges    *rate.Limiter
	messages         *rate.Limiter // of the messages in the virtual host
}

// Reasons why a call of a sender is refused. Each reason is a label value of the metric
// berth_rpc_refused_total.
const (
	refusedHost      = "host"       // the call names another host
	refusedAgentType = "agent_type" // the host may not report an agent of this type
	refusedOwner     = "owner"      // the call changes what another host owns
	refusedRead      = "read"       // the call reads an object that the host does not serve
)

func newRefusals() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "berth_rpc_refused_total",
		Help: "RPC calls refused because the host of the virtual host may not make them, by reason."}, []string{"reason"})
}

// recordRefusal logs and counts that a call is refused.
func (s *sender) recordRefusal(ctx context.Context, reason, message string) {
	s.refusals.WithLabelValues(reason).Inc()
	slog.WarnContext(ctx, "RPC call refused", "virtual_host", s.Name, "host", s.Host, "reason", message)
}

// refuse logs and counts that a call is refused, and returns the exception that the caller gets.
func (s *sender) refuse(ctx context.Context, reason, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	s.recordRefusal(ctx, reason, message)
	return oslomsg.NewFailure(neutronExceptions, "NotAuthorized",
		"The agents of the host %s may not do this: %s", s.Host, message)
}

// senderArgs are the arguments in which an agent names itself.
type senderArgs struct {
	Host    string `json:"host"`
	AgentID string `json:"agent_id"`
	State   struct {
		State struct {
			Type string `json:"agent_type"`
			Host string `json:"host"`
		} `json:"agent_state"`
	} `json:"agent_state"`
}

// ovsAgentID is the beginning of the agent_id of an Open vSwitch agent, before the agent's host. The agent_id
// of other agents does not contain the host under which the agent reports.
const ovsAgentID = "ovs-agent-"

// guard returns a method that refuses every call that names another host than the sender, or an agent that
// the sender may not report. The calls of a sender share the connections to the database with those of
// others, as the requests of a client over HTTP do.
func (s *sender) guard(name string, m oslomsg.Method) oslomsg.Method {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		ctx = db.WithClient(ctx, "host "+s.Host)
		check := oslomsg.WithArgs(func(ctx context.Context, a senderArgs) (any, error) {
			return nil, s.check(ctx, name, a)
		})
		if _, err := check(ctx, raw); err != nil {
			return nil, err
		}
		return m(ctx, raw)
	}
}

func (s *sender) check(ctx context.Context, method string, a senderArgs) error {
	state := a.State.State
	named := []string{a.Host, state.Host}
	if host, ok := strings.CutPrefix(a.AgentID, ovsAgentID); ok {
		named = append(named, host)
	}
	for _, host := range named {
		if host != "" && host != s.Host {
			return s.refuse(ctx, refusedHost, "%s names the host %s", method, oslomsg.Excerpt(host))
		}
	}
	if state.Type != "" && len(s.AgentTypes) > 0 && !slices.Contains(s.AgentTypes, state.Type) {
		return s.refuse(ctx, refusedAgentType,
			"%s names the agent type %s", method, oslomsg.Excerpt(state.Type))
	}
	return nil
}

// guarded returns the endpoints with every method guarded. If s is nil, guarded returns the endpoints
// unchanged.
func (s *sender) guarded(endpoints []oslomsg.Endpoint) []oslomsg.Endpoint {
	if s == nil {
		return endpoints
	}
	for _, e := range endpoints {
		for name, m := range e.Methods {
			e.Methods[name] = s.guard(name, m)
		}
	}
	return endpoints
}

// host returns the host for which a call acts: the sender, or without a sender the host that the call names.
func (s *sender) host(named string) string {
	if s == nil {
		return named
	}
	return s.Host
}

// wires reports whether the sender may wire the port: the port has a binding to this host, or is wired on any
// host that asks for it.
func (s *sender) wires(p network.Port) bool {
	return s == nil || p.Distributed() || slices.Contains(hostsOf(p), s.Host)
}

// hostsOf returns the hosts to which the port has a binding.
func hostsOf(p network.Port) (hosts []string) {
	for _, b := range p.AllBindings() {
		if b.Host != "" {
			hosts = append(hosts, b.Host)
		}
	}
	return hosts
}

// charge counts a message with several items, which are reports or values of filters, as one message for each
// network.ReportsPerRequest items. The call itself does not wait, and its caller gets no exception, but the
// next messages wait longer in their queue.
func (s *sender) charge(items int) {
	if further := network.FurtherRequests(items); s != nil && further > 0 {
		s.messages.ReserveN(time.Now(), min(further, s.messages.Burst()))
	}
}
