package portstore

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"berth/internal/contract"
	"berth/internal/network"
	"berth/internal/store/db"
	"berth/internal/store/networkstore"
	"berth/internal/store/outbox"
)

// UpdateAgent changes the fields that an operator may set: admin state and description. When an operator
// enables an L2 agent, UpdateAgent binds the ports on the agent's host whose binding had failed. When an
// operator enables a DHCP agent, UpdateAgent assigns to it the networks that have no DHCP agent.
func (s *Store) UpdateAgent(ctx context.Context, id uuid.UUID, c network.AgentChange) (network.Agent, error) {
	var a network.Agent
	err := s.inTx(ctx, func(tx *transaction) (err error) {
		if a, err = networkstore.UpdateAgent(ctx, tx.Transaction, id, c); err != nil || c.AdminUp == nil {
			return err
		}
		if a.Type == network.DHCPAgent {
			if err := nudgePorts(ctx, tx, portsAwaitingDHCPAgent, a.ID); err != nil {
				return err
			}
		}
		if !*c.AdminUp {
			return nil
		}
		if a.Type == network.DHCPAgent {
			return networkstore.AssignUnhostedNetworks(ctx, tx.Transaction, a.Host)
		}
		return retryFailedBindings(ctx, tx, a.Type, a.Host)
	})
	return a, err
}

// retryFailedBindings binds the ports on the host whose binding failed earlier because no L2 agent was alive.
// retryFailedBindings does nothing if the agent on the host is disabled, or if the agent's type does not wire
// ports.
func retryFailedBindings(ctx context.Context, tx *transaction, kind, host string) error {
	return recheckPorts(ctx, tx, `
		select port.id
		from agent
		join port on `+networkstore.FailedBinding+`
		where agent.agent_type = $1 and agent.host = $2
		order by port.id`, kind, host)
}

// ReportState records an agent heartbeat and returns AgentNew, AgentAlive or AgentRevived. The first
// heartbeat of an agent registers the agent. If the agent wires ports, ReportState binds the ports on the
// agent's host whose binding failed because no L2 agent was alive. If the agent is a DHCP agent, ReportState
// assigns to it a share of the networks whose DHCP agents are all down. A new or revived DHCP agent also gets
// the networks that have no DHCP agent. ReportState returns a fault for an agent that exceeds the limits of
// AgentState.Check or network.MaxAgentsOfHost. Nearly all heartbeats only write the row of the agent;
// ReportState does this with one statement.
func (s *Store) ReportState(ctx context.Context, st network.AgentState) (string, error) {
	if err := st.Check(); err != nil {
		return "", err
	}
	result, err := s.RenewHeartbeat(ctx, st)
	if result != "" || err != nil {
		return result, err
	}
	err = s.inTx(ctx, func(tx *transaction) error {
		var err error
		if result, err = networkstore.RecordHeartbeat(ctx, tx.Transaction, st); err != nil {
			return err
		}
		if st.Type == network.DHCPAgent {
			return recheckNonReportingAgentPorts(ctx, tx, st.Host)
		}
		return retryFailedBindings(ctx, tx, st.Type, st.Host)
	})
	return result, err
}

// DeleteAgent deletes an agent. DeleteAgent reschedules the networks of a deleted DHCP agent to other DHCP
// agents. If there is no other DHCP agent, the ports of the deleted agent's networks no longer wait for DHCP.
// A port that waits for a deleted L2 agent keeps waiting, and the port's status names the missing agent.
func (s *Store) DeleteAgent(ctx context.Context, id uuid.UUID) error {
	return s.inTx(ctx, func(tx *transaction) error {
		a, hosted, err := networkstore.DeleteAgent(ctx, tx.Transaction, id)
		if err != nil {
			return err
		}
		for _, n := range hosted {
			if err := networkstore.RescheduleNetwork(ctx, tx.Transaction, n, id); err != nil {
				return err
			}
			if err := recheckDHCPPorts(ctx, tx, n); err != nil {
				return err
			}
		}
		return nudgePorts(
			ctx,
			tx,
			`exists (select from block b where b.object_id = port.id and b.host = $1) and host = $1`,
			a.Host,
		)
	})
}

// portsAwaitingDHCPAgent is the condition for ports with a DHCP block on the networks of agent $1.
const portsAwaitingDHCPAgent = `
	network_id in (select network_id from dhcp_binding where agent_id = $1)
		and exists (select from block b where b.object_id = port.id and b.entity = '` + network.DHCP + `')`

// nudgePorts enqueues a nudge for each port that matches the condition. Callers use nudgePorts after a change
// of an agent that does not change the rows of the ports: the status that each port's workflow shows changes,
// because it names the agent for which the port waits.
func nudgePorts(ctx context.Context, tx *transaction, condition string, args ...any) error {
	ports, err := db.QueryAll(ctx, tx, scanPort, portSelect+portFrom+` where `+condition, args...)
	if err != nil {
		return fmt.Errorf("find ports: %w", err)
	}
	nudges := make([]contract.Nudge, len(ports))
	for i, p := range ports {
		nudges[i] = portNudge(p, false)
	}
	return outbox.Enqueue(ctx, tx, nudges...)
}
