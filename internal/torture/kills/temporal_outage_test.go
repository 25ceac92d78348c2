package kills

import (
	"fmt"
	"net/http"
	"testing"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
)

// TestWrites_SurviveTemporalOutage creates ports and sends agents' reports while Temporal is down. Nova must
// receive the events of the ports during the outage, exactly once. After the restart of Temporal, all ports
// must become ACTIVE.
func TestWrites_SurviveTemporalOutage(t *testing.T) {
	t.Parallel()
	temporal, temporalClient := harness.StartOwnTemporal(t)
	servertest.PauseSweep(t, temporalClient)
	s := servertest.NewDeployment(t, storetest.URL(t), "TEMPORAL_ADDRESS="+temporal.Address)
	c := s.StartWorker("api,relay,temporal")
	s.Await("berth is ready", func() string {
		_, o, err := c.Do("GET", "/readyz", nil)
		if err == nil && o["status"] == "ready" {
			return ""
		}
		return fmt.Sprint(o, err)
	})
	c.RegisterAgents()
	var ports []string
	plug := func(n int) {
		for range n {
			network := c.CreateNetwork("blue")
			c.CreateSubnet(network)
			ports = append(ports, c.Create("port", servertest.PortBody(network)))
		}
	}

	plug(10)
	temporal.Kill() // while some notes and journal entries are still pending
	plug(10)
	for _, p := range ports {
		c.Must("POST", "/agent/v1/reports", servertest.ReportsBody(p))
	}

	s.Await("readyz names Temporal as the only failed check", func() string {
		code, o, err := c.Do("GET", "/readyz", nil)
		checks, _ := o["checks"].(servertest.Object)
		if err == nil && code == http.StatusServiceUnavailable && checks["temporal"] != "ok" &&
			checks["database"] == "ok" {
			return ""
		}
		return fmt.Sprint(code, o, err)
	})
	s.AwaitNone("a delivery has failed",
		`select workflow_id from note where not exists (select from note where last_error <> '')`)
	s.Await("Nova receives the events of all ports although Temporal is down", func() string {
		if n := len(harness.CountNovaEvents(s, "network-vif-plugged")); n < len(ports) {
			return fmt.Sprintf("the events of %d of %d ports", n, len(ports))
		}
		return ""
	})
	if err := temporal.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.AwaitMirroredAndAudited(c)
	s.AwaitActive(c, ports)
	s.AwaitNone("all Nova events are sent", `select name || ' ' || port_id from nova_event`)
	plugged := harness.CountNovaEvents(s, "network-vif-plugged")
	for _, p := range ports {
		if plugged[p] != 1 {
			t.Errorf(
				"count the network-vif-plugged events that Nova received: got %d for port %s, want 1",
				plugged[p],
				p,
			)
		}
	}
	s.AwaitNone("all notes are delivered", `select workflow_id from note`)
}
