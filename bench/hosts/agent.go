package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"berth/bench/harness"
)

const (
	l2Agent  = "Open vSwitch agent"
	l2Binary = "neutron-openvswitch-agent"
)

func hostName(n int) string { return fmt.Sprintf("compute-%06d", n) }

// configurations returns the configurations that the Open vSwitch agent of the n-th host reports, with the
// keys and about the length of those of Neutron's agent.
func configurations(n int) string {
	host := hostName(n)
	return fmt.Sprintf(`{"bridge_mappings":{"physnet1":"br-ex","physnet2":"br-provider"},"integration_bridge":"br-int",`+
		`"tunnel_types":["vxlan"],"tunneling_ip":"10.%d.%d.%d","l2_population":true,"arp_responder_enabled":true,`+
		`"enable_distributed_routing":false,"in_distributed_mode":false,"log_agent_heartbeats":false,`+
		`"extensions":["qos"],"devices":20,"datapath_type":"system","ovs_hybrid_plug":false,`+
		`"vhostuser_socket_dir":"/var/run/openvswitch","baremetal_smartnic":false,`+
		`"ovs_capabilities":{"datapath_types":["netdev","system"],"iface_types":["bareudp","erspan","geneve","gre",`+
		`"gtpu","internal","ip6erspan","ip6gre","lisp","patch","stt","system","tap","vxlan"]},`+
		`"resource_provider_bandwidths":{},"resource_provider_packet_processing_without_direction":{},`+
		`"resource_provider_packet_processing_with_direction":{},"resource_provider_hypervisors":{"br-ex":%q,"br-provider":%[4]q},`+
		`"resource_provider_inventory_defaults":{"allocation_ratio":1.0,"min_unit":1,"step_size":1,"reserved":0},`+
		`"resource_provider_packet_processing_inventory_defaults":{"allocation_ratio":1.0,"min_unit":1,"step_size":1,"reserved":0}}`,
		n>>16&255, n>>8&255, n&255, host)
}

// insertAgents inserts the L2 agents of all hosts. The last heartbeat of each agent is so old that the next
// one is due at the turn of the host in the interval.
func insertAgents(ctx context.Context, s *harness.Stack, hosts int, interval time.Duration) error {
	begin := time.Now().Add(-interval)
	turn := interval / time.Duration(hosts)
	columns := []string{"id", "agent_type", "host", "binary_name", "topic", "configurations", "heartbeat_at"}
	_, err := s.Rows.CopyFrom(ctx, pgx.Identifier{"agent"}, columns, pgx.CopyFromSlice(hosts, func(n int) ([]any, error) {
		return []any{uuid.New(), l2Agent, hostName(n), l2Binary, "N/A", configurations(n), begin.Add(time.Duration(n) * turn)}, nil
	}))
	if err != nil {
		return fmt.Errorf("insert the agents: %w", err)
	}
	_, err = s.Rows.Exec(ctx, `vacuum analyze agent`)
	return err
}

// heartbeats sends the heartbeats of the L2 agents of all hosts.
type heartbeats struct {
	connections *harness.HTTPConnections
	hosts       int
}

func newHeartbeats(ctx context.Context, s *harness.Stack, hosts, clients int) (*heartbeats, error) {
	h := &heartbeats{harness.NewHTTPConnections(s.API.Base, clients), hosts}
	s.OnClose(h.connections.Close)
	return h, h.connections.Open(ctx)
}

// send sends the n-th heartbeat: the hosts take turns.
func (h *heartbeats) send(_ context.Context, client, n int) error {
	host := n % h.hosts
	return h.connections.Send(client, http.MethodPost, "/agent/v1/state", fmt.Sprintf(
		`{"agent_type":%q,"host":%q,"binary":%q,"topic":"N/A","configurations":%s}`,
		l2Agent, hostName(host), l2Binary, configurations(host)))
}

// countSilent returns how many agents an administrator sees that are not alive.
func countSilent(ctx context.Context, a *harness.API) (int, error) {
	var answer struct{ Agents []struct{ ID string } }
	err := a.Send(ctx, http.MethodGet, "/networking/v2.0/agents?alive=False&fields=id", nil, &answer)
	return len(answer.Agents), err
}
