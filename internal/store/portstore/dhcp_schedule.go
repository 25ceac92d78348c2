package portstore

import (
	"context"

	"github.com/google/uuid"

	"berth/internal/network"
	"berth/internal/store/networkstore"
)

// UnscheduleNetwork removes a network from a DHCP agent and assigns the network to another DHCP agent. If no
// other DHCP agent can serve the network, the ports of the network no longer wait for DHCP.
func (s *Store) UnscheduleNetwork(ctx context.Context, agent, id uuid.UUID) error {
	return s.inTx(ctx, func(tx *transaction) error {
		if err := networkstore.UnscheduleNetwork(ctx, tx.Transaction, agent, id); err != nil {
			return err
		}
		return recheckDHCPPorts(ctx, tx, id)
	})
}

// recheckDHCPPorts rechecks every port of a network that waits for DHCP. The caller of recheckDHCPPorts must
// hold the network's row lock, so that no other transaction adds a port to the network meanwhile.
func recheckDHCPPorts(ctx context.Context, tx *transaction, id uuid.UUID) error {
	return recheckPorts(ctx, tx, `
		select p.id
		from port p
		join block b on b.object_id = p.id
		where p.network_id = $1 and b.entity = $2
		order by p.id`, id, network.DHCP)
}

// recheckNonReportingAgentPorts does nothing if the DHCP agent on the host reports ready ports. If the agent
// is configured not to report ready ports, recheckNonReportingAgentPorts rechecks the ports that wait for
// this agent. Ports wait for an agent that does not report if the agent has changed its configuration, or has
// taken over the network of the ports. A port that is created during the recheck is rechecked with the
// agent's next heartbeat.
func recheckNonReportingAgentPorts(ctx context.Context, tx *transaction, host string) error {
	return recheckPorts(ctx, tx, `
		select p.id
		from agent a
		join dhcp_binding d on d.agent_id = a.id
		join port p on p.network_id = d.network_id
		join block b on b.object_id = p.id and b.entity = $3
		where a.agent_type = $1 and a.host = $2 and not `+networkstore.ReportsPortReady("a.configurations")+`
		order by p.id`, network.DHCPAgent, host, network.DHCP)
}
