package torture

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/server/servertest"
)

// TestRabbitMQOutage_NotificationsSentLater kills RabbitMQ under two processes that answer agents and one that tells them things.
func TestRabbitMQOutage_NotificationsSentLater(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "berth-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	broker, err := devstack.StartRabbitMQ(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Kill)
	s, temporal := servertest.SharedDeployment(t)
	s.Settings = append(s.Settings, "BERTH_RABBITMQ_URL="+broker.URL(0))
	c, answering := s.StartWorker("api,relay,temporal"), []*servertest.Worker{s.StartWorker("rpc"), s.StartWorker("rpc")}
	ready := func(what, rabbitmq string) {
		t.Helper()
		for _, a := range answering {
			s.Await(what, func() string {
				_, o, err := a.Do("GET", "/readyz", nil)
				checks, _ := o["checks"].(servertest.Object)
				if err == nil && checks["rabbitmq"] == rabbitmq && checks["database"] == "ok" {
					return ""
				}
				return fmt.Sprint(o, err)
			})
		}
	}
	connected := func(what, value string) {
		t.Helper()
		s.Await(what, func() string {
			said := metrics(t, c)
			if strings.Contains(said, `berth_rpc_connected{for="casts"} `+value) {
				return ""
			}
			return "no such metric"
		})
	}
	c.Must("POST", "/agent/v1/state", servertest.Object{"agent_type": "Open vSwitch agent", "host": "cmp-1", "binary": "x", "topic": "N/A", "configurations": servertest.Object{}})
	ready("both answer", "ok")
	connected("agents are told", "1")

	broker.Kill()
	ready("both say that RabbitMQ is away", "is not connected")
	connected("the loss is noticed", "0")
	network := c.CreateNetwork("blue")
	c.Create("port", servertest.PortBody(network))
	s.Await("the workflow says for whom it waits", func() string {
		var why contract.Why
		v, err := temporal.QueryWorkflow(t.Context(), contract.AnnounceID(network), "", contract.QueryWhy)
		if err == nil {
			err = v.Get(&why)
		}
		if err == nil && len(why.Waiting) == 1 && why.Waiting[0].For == "rabbitmq" {
			return ""
		}
		return fmt.Sprint(why, err)
	})
	if err := broker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	ready("both answer again", "ok")
	connected("agents are told again", "1")
	s.AwaitNone("agents are told everything", `select kind from announcement where told_at is null`)
	answering[0].Kill()
	if code, _, err := answering[1].Do("GET", "/readyz", nil); err != nil || code != http.StatusOK {
		t.Errorf("with one of two killed the other says %d, %v", code, err)
	}
}

func metrics(t *testing.T, c *servertest.Worker) string {
	t.Helper()
	res, err := http.Get(c.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	said, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}
