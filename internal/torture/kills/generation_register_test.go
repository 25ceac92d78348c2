package kills

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
)

// TestGeneration_OneWriterThroughKills runs clients that write the same consumers and provider through two
// berth processes. While the clients run, the test kills the berth processes and PostgreSQL with SIGKILL.
// TestGeneration_OneWriterThroughKills checks that the history of the requests is linearizable: of the writes
// with the same generation, at most one succeeds.
func TestGeneration_OneWriterThroughKills(t *testing.T) {
	t.Parallel()
	postgres := harness.StartOwnPostgres(t)
	s := servertest.NewDeployment(t, postgres.URL)
	replicas := []*replica{startReplica(s), startReplica(s)}
	c := newRegisterClients(s, replicas)

	stop := c.run(8)
	for range max(1, storetest.Rounds(t, 100)/100) {
		for _, kill := range []func(){
			replicas[0].restart,
			func() {
				if err := postgres.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			replicas[1].restart,
		} {
			c.awaitWrites()
			kill()
		}
	}
	c.awaitWrites()
	stop()

	if c.Unanswered == 0 {
		t.Error("no request failed during the kills; want at least one, otherwise the kills hit no request")
	}
	c.CheckLinearizable(t)
	for what, sql := range map[string]string{
		"consumer without allocations":                `select uuid from consumer c where not exists (select from allocation where consumer_id = c.id)`,
		"consumer with the allocations of two writes": `select consumer_id::text from allocation group by consumer_id having count(*) > 1`,
	} {
		if found := s.Rows(sql); len(found) > 0 {
			t.Errorf("check the database after the kills: want no %s, found %v", what, found)
		}
	}
	t.Logf("clients sent %d requests: berth acknowledged %d writes, and %d writes got no answer",
		len(c.Ops), c.Acknowledged, c.Unanswered)
}

// replica is a berth process with the role api. After a kill, the test restarts the process of a replica on
// the same TCP port.
type replica struct {
	deployment *servertest.Deployment
	port       int
	worker     atomic.Pointer[servertest.Worker]
}

func startReplica(s *servertest.Deployment) *replica {
	s.Helper()
	port, err := devstack.Port(0)
	if err != nil {
		s.Fatal(err)
	}
	r := &replica{deployment: s, port: port}
	r.start()
	return r
}

func (r *replica) start() {
	r.deployment.Helper()
	r.deployment.Settings = append(r.deployment.Settings, fmt.Sprintf("BERTH_LISTEN=127.0.0.1:%d", r.port))
	r.worker.Store(r.deployment.StartWorker("api"))
}

func (r *replica) restart() {
	r.deployment.Helper()
	r.worker.Load().Kill()
	r.start()
}

// registerClients are clients that read and write a few registers through any replica. A register is the data
// that one Placement generation protects. The registerClients record the history of their requests.
type registerClients struct {
	harness.RegisterSet
	deployment *servertest.Deployment
	replicas   []*replica
}

func newRegisterClients(s *servertest.Deployment, replicas []*replica) *registerClients {
	s.Helper()
	c := &registerClients{
		deployment: s,
		replicas:   replicas,
	}
	c.Start, c.Consumers = time.Now(), []string{uuid.NewString(), uuid.NewString()}
	api := replicas[0].worker.Load()
	c.AllocationProvider = fmt.Sprint(
		api.Must("POST", "/placement/resource_providers", servertest.Object{"name": "allocations"})["uuid"],
	)
	c.Provider = fmt.Sprint(
		api.Must("POST", "/placement/resource_providers", servertest.Object{"name": "register"})["uuid"],
	)
	api.Must(
		"PUT",
		"/placement/resource_providers/"+c.AllocationProvider+"/inventories",
		servertest.Object{"resource_provider_generation": 0,
			"inventories": servertest.Object{"VCPU": servertest.Object{"total": 1_000_000_000}}},
	)
	return c
}

// run starts n clients, which send requests until the test calls `stop`. The returned function `stop` stops
// the clients and waits until the clients have ended.
func (c *registerClients) run(n int) (stop func()) {
	var over atomic.Bool
	var clients sync.WaitGroup
	for i := range n {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		clients.Go(func() {
			for !over.Load() {
				if !c.readThenWrite(i, r) {
					time.Sleep(20 * time.Millisecond) // delay before the next attempt
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		over.Store(true)
		clients.Wait()
	})
	c.deployment.Cleanup(stop)
	return stop
}

// awaitWrites waits for 60 more acknowledged writes.
func (c *registerClients) awaitWrites() {
	c.deployment.Helper()
	const enough = 60
	before := c.AcknowledgedWrites()
	c.deployment.Await("the clients write", func() string {
		if done := c.AcknowledgedWrites() - before; done < enough {
			return fmt.Sprintf("%d of %d writes", done, enough)
		}
		return ""
	})
}

// readThenWrite reads a register, and then writes the register with the generation that it has read or with
// an earlier generation. readThenWrite writes only after a successful read, so that each client has at most
// one unanswered write per outage.
func (c *registerClients) readThenWrite(client int, r *rand.Rand) bool {
	a := harness.Access{Kind: harness.Read, Register: c.Provider, Slot: r.IntN(harness.SlotCount)}
	if r.IntN(2) == 0 {
		a.Register, a.Slot = c.Consumers[r.IntN(len(c.Consumers))], 0
	}
	seen, ok := c.access(client, r, a)
	if !ok {
		return false
	}
	a.Kind, a.Expect, a.Value = harness.Write, seen.Generation, c.DrawValue(r, a)
	if a.Register != c.Provider && seen.Generation > 0 && r.IntN(8) == 0 {
		a.Kind, a.Value = harness.Remove, ""
	}
	if r.IntN(4) == 0 && a.Expect > 0 {
		a.Expect--
	}
	_, ok = c.access(client, r, a)
	return ok
}

// access sends a request to a random replica and records the outcome of the request in the history. access
// does not record a read without an answer, and does not record a request if the connection was refused.
// access returns false if no answer arrived.
func (c *registerClients) access(client int, r *rand.Rand, a harness.Access) (harness.Outcome, bool) {
	method, path, body := c.Request(a)
	began := time.Now()
	status, answer, err := c.replicas[r.IntN(len(c.replicas))].worker.Load().Do(method, path, body)
	o := harness.Outcome{Known: err == nil && status < http.StatusInternalServerError}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), !o.Known && a.Kind == harness.Read:
		return o, false
	case status == http.StatusConflict:
		if o.Refused = true; !strings.Contains(fmt.Sprint(answer), "placement.concurrent_update") {
			c.deployment.Errorf(
				"access %+v: got status 409 with the body %v, want the error code placement.concurrent_update in it",
				a,
				answer,
			)
		}
	case o.Known && status >= http.StatusBadRequest:
		c.deployment.Errorf("access %+v: got status %d, body %v; want success or 409", a, status, answer)
	case o.Known:
		o.Generation, o.Value = c.ParseAnswer(a, answer)
	}
	c.Add(client, began, a, o)
	return o, o.Known
}
