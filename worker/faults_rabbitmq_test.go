package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"berth/internal/contract"
	"berth/internal/devstack"
)

// TestWorkOutlastsARabbitMQThatIsAway kills RabbitMQ under two processes that answer agents and one that tells them things.
func TestWorkOutlastsARabbitMQThatIsAway(t *testing.T) {
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
	s, temporal := sharedSite(t)
	s.settings = append(s.settings, "BERTH_RABBITMQ_URL="+broker.URL(0))
	c, answering := s.start("api,relay,temporal"), []*child{s.start("rpc"), s.start("rpc")}
	ready := func(what, rabbitmq string) {
		t.Helper()
		for _, a := range answering {
			s.until(what, func() string {
				_, o, err := a.do("GET", "/readyz", nil)
				checks, _ := o["checks"].(object)
				if err == nil && checks["rabbitmq"] == rabbitmq && checks["database"] == "ok" {
					return ""
				}
				return fmt.Sprint(o, err)
			})
		}
	}
	connected := func(what, value string) {
		t.Helper()
		s.until(what, func() string {
			said := metrics(t, c)
			if strings.Contains(said, `berth_rpc_connected{for="casts"} `+value) {
				return ""
			}
			return "no such metric"
		})
	}
	c.must("POST", "/agent/v1/state", object{"agent_type": "Open vSwitch agent", "host": "cmp-1", "binary": "x", "topic": "N/A", "configurations": object{}})
	ready("both answer", "ok")
	connected("agents are told", "1")

	broker.Kill()
	ready("both say that RabbitMQ is away", "is away")
	connected("the loss is noticed", "0")
	network := c.network("blue")
	c.create("port", portOf(network))
	s.until("the workflow says for whom it waits", func() string {
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
	s.none("agents are told everything", `select kind from announcement where told_at is null`)
	answering[0].kill()
	if code, _, err := answering[1].do("GET", "/readyz", nil); err != nil || code != http.StatusOK {
		t.Errorf("with one of two killed the other says %d, %v", code, err)
	}
}

func metrics(t *testing.T, c *child) string {
	t.Helper()
	res, err := http.Get(c.url + "/metrics")
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
