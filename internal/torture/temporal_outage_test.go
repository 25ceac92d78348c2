package torture

import (
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

func TestWrites_SurviveTemporalOutage(t *testing.T) {
	t.Parallel()
	temporal, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{Dir: filepath.Dir(servertest.DataFolder(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(temporal.Kill)
	dialled, err := client.DialContext(t.Context(), client.Options{HostPort: temporal.Address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	servertest.PauseSweep(t, dialled)
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
	temporal.Kill() // while their notes and entries are under way
	plug(10)
	for _, p := range ports {
		c.Must("POST", "/agent/v1/reports", servertest.ReportsBody(p))
	}

	s.Await("readyz says that Temporal alone is away", func() string {
		code, o, err := c.Do("GET", "/readyz", nil)
		checks, _ := o["checks"].(servertest.Object)
		if err == nil && code == http.StatusServiceUnavailable && checks["temporal"] != "ok" && checks["database"] == "ok" {
			return ""
		}
		return fmt.Sprint(code, o, err)
	})
	s.AwaitNone("a relay has tried in vain", `select workflow_id from note where not exists (select from note where last_error <> '')`)
	if err := temporal.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.AwaitMirrored()
	s.AwaitActive(c, ports)
	s.AwaitNone("Nova is told of everything", `select name || ' ' || port_id from nova_event`)
	told := countNovaEvents(s, "network-vif-plugged")
	for _, p := range ports {
		if told[p] != 1 {
			t.Errorf("Nova was told %d times that port %s is plugged", told[p], p)
		}
	}
	s.AwaitNone("no note is left", `select workflow_id from note`)
}

// countNovaEvents counts by port how often Nova took the event of that name.
func countNovaEvents(s *servertest.Deployment, event string) map[string]int {
	n := map[string]int{}
	for _, e := range s.Nova.Events() {
		if e.Name == event {
			n[e.Tag]++
		}
	}
	return n
}
