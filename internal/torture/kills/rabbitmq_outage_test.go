package kills

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/server/servertest"
)

// TestRabbitMQOutage_NotificationsSentLater kills RabbitMQ while two processes serve RPC and one process
// publishes notifications for agents.
func TestRabbitMQOutage_NotificationsSentLater(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "berth-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	broker, err := devstack.StartRabbitMQ(t.Context(), dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Kill)
	s, temporal := servertest.SharedDeployment(t)
	s.Settings = append(s.Settings, "BERTH_RABBITMQ_URL="+broker.URL(0))
	c, rpcWorkers := s.StartWorker("api,relay,temporal"), []*servertest.Worker{
		s.StartWorker("rpc"),
		s.StartWorker("rpc"),
	}
	awaitReadiness := func(what, rabbitmq string) {
		t.Helper()
		for _, a := range rpcWorkers {
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
	awaitConnectedMetric := func(what, value string) {
		t.Helper()
		s.Await(what, func() string {
			text := metrics(t, c)
			if strings.Contains(text, `berth_rpc_connected{for="casts"} `+value) {
				return ""
			}
			return "no such metric"
		})
	}
	c.Must("POST", "/agent/v1/state", servertest.Object{
		"agent_type":     "Open vSwitch agent",
		"host":           "cmp-1",
		"binary":         "x",
		"topic":          "N/A",
		"configurations": servertest.Object{},
	})
	awaitReadiness("both processes are connected", "ok")
	awaitConnectedMetric("the publisher is connected", "1")
	checkMissingVirtualHost(s, c, broker.URL(0), append(rpcWorkers, c))

	broker.Kill()
	awaitReadiness("readiness of both processes shows the outage", "is not connected")
	awaitConnectedMetric("the metric of the publisher shows the outage", "0")
	network := c.CreateNetwork("blue")
	c.Create("port", servertest.PortBody(network))
	s.Await("the workflow waits for rabbitmq", func() string {
		var why contract.Why
		v, err := temporal.QueryWorkflow(t.Context(),
			contract.AgentNotificationsID(network), "", contract.QueryWhy)
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

	awaitReadiness("both processes are connected again", "ok")
	awaitConnectedMetric("the publisher is connected again", "1")
	s.AwaitNone("all notifications are published",
		`select kind from agent_notification where sent_at is null`)
	rpcWorkers[0].Kill()
	if code, _, err := rpcWorkers[1].Do("GET", "/readyz", nil); err != nil || code != http.StatusOK {
		t.Errorf(
			"GET /readyz of a process after the other process was killed: got status %d, error %v; want 200",
			code,
			err,
		)
	}
}

// checkMissingVirtualHost registers a virtual host that RabbitMQ does not have, checks that each process and
// the command doctor name it, and removes the registration.
func checkMissingVirtualHost(
	s *servertest.Deployment,
	api *servertest.Worker,
	broker string,
	processes []*servertest.Worker,
) {
	s.Helper()
	doctor := func() string {
		cmd := exec.CommandContext(s.Context(), servertest.Program(s.T, "starter"), "doctor")
		cmd.Env = append(os.Environ(),
			"BERTH_URL="+api.URL, "BERTH_TOKEN="+api.Token, "BERTH_RABBITMQ_URL="+broker)
		out, _ := cmd.Output() // doctor fails, also because not every setting is given
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "  virtual hosts  ") {
				return line
			}
		}
		return string(out)
	}
	if found := doctor(); !strings.HasPrefix(found, "-") {
		s.Errorf(
			"starter doctor without a registered virtual host: got %s, want a check that is not possible",
			found,
		)
	}
	api.Must("POST", "/operator/v1/agent-vhosts", servertest.Object{"host": "cmp-1", "name": "v1"})
	if found := doctor(); !strings.HasPrefix(found, "ok") {
		s.Errorf("starter doctor with a virtual host: got %s, want ok", found)
	}
	missing := api.Must("POST", "/operator/v1/agent-vhosts", servertest.Object{"host": "cmp-9", "name": "missing"})["id"].(string)
	const want = "cannot use the virtual hosts missing of RabbitMQ"
	for _, process := range processes {
		s.Await("/readyz names the missing virtual host", func() string {
			code, o, err := process.Do("GET", "/readyz", nil)
			checks, _ := o["checks"].(servertest.Object)
			if err == nil && code == http.StatusOK && checks["virtual_hosts"] == want {
				return ""
			}
			return fmt.Sprint(code, o, err)
		})
	}
	if found := doctor(); !strings.HasPrefix(found, "FAIL") || !strings.Contains(found, "missing") {
		s.Errorf(
			"starter doctor with a missing virtual host: got %s, want FAIL and the name of the virtual host",
			found,
		)
	}
	api.Must("DELETE", "/operator/v1/agent-vhosts/"+missing, nil)
}

// metrics returns the text that a process serves at /metrics.
func metrics(t *testing.T, c *servertest.Worker) string {
	t.Helper()
	res, err := http.Get(c.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
