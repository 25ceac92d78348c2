package harness

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/server/servertest"
)

// computeHosts is the number of hosts with an L2 agent. The only DHCP agent is on host net-1.
const computeHosts = 3

// agentInterfaces sends each report of an agent through one of berth's interfaces for reports, chosen at
// random.
type agentInterfaces struct{ rpc *rpcAgents }

// report sends a report about the port, if the ledger knows the host of the port for certain and does not
// contain this report yet.
func (a *agentInterfaces) report(ctx context.Context, c *randomClient, p *promise) {
	host := p.values["host"].acknowledged
	if !p.isCertain("host") || host == "" {
		return
	}
	entity, reports := "L2", c.ledger.reportsOf(p)
	if reports["L2"] == host || reports["DHCP"] == "" && c.random.IntN(2) == 0 {
		entity, host = "DHCP", "net-1"
	}
	send := map[string]func(context.Context, *randomClient, string, contract.Report) bool{
		"HTTP":   reportByHTTP,
		"signal": reportBySignal,
		"update": reportByUpdate,
		"RPC":    a.rpc.report,
	}
	through := pick(c.random, []string{"HTTP", "signal", "signal", "update", "RPC"})
	if send[through](ctx, c, p.id, contract.Report{Entity: entity, Host: host}) {
		c.ledger.reported(p, entity, p.values["host"].acknowledged, through)
	} else {
		c.ledger.mu.Lock()
		c.ledger.unanswered++
		c.ledger.mu.Unlock()
	}
}

func reportByHTTP(ctx context.Context, c *randomClient, port string, r contract.Report) bool {
	a := c.send(ctx, http.MethodPost, "/agent/v1/reports", servertest.Object{"reports": []servertest.Object{
		{"port": port, "entity": r.Entity, "host": r.Host}}}, 0)
	return a.verdict == acknowledged
}

func reportBySignal(ctx context.Context, c *randomClient, port string, r contract.Report) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	signal := contract.SignalProvisioningComplete
	return c.deployment.client.SignalWorkflow(ctx, contract.PortID(port), "", signal, r) == nil
}

func reportByUpdate(ctx context.Context, c *randomClient, port string, r contract.Report) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	h, err := c.deployment.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID:   contract.PortID(port),
		UpdateName:   contract.UpdateProvisioningComplete,
		Args:         []any{r},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	var result contract.ReportResult
	return err == nil && h.Get(ctx, &result) == nil
}

// sendHeartbeats sends the heartbeats of all agents every five seconds.
func sendHeartbeats(ctx context.Context, c *randomClient) {
	agents := []servertest.Object{{"agent_type": "DHCP agent", "host": "net-1"}}
	for n := range computeHosts {
		agents = append(agents,
			servertest.Object{"agent_type": "Open vSwitch agent", "host": fmt.Sprintf("cmp-%d", n+1)})
	}
	for ctx.Err() == nil {
		for _, a := range agents {
			c.sendUntilAcknowledged(ctx, http.MethodPost, "/agent/v1/state", a)
			c.ledger.count("heartbeat")
		}
		pause(ctx, 5*time.Second)
	}
}
