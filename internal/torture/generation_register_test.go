package torture

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
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
)

// TestGeneration_OneWriterThroughKills runs clients that write the same consumers and provider through two
// berth processes. While the clients run, the test kills the berth processes and PostgreSQL with SIGKILL.
// TestGeneration_OneWriterThroughKills checks that the history of the requests is linearizable: of the writes
// with the same generation, at most one succeeds.
func TestGeneration_OneWriterThroughKills(t *testing.T) {
	t.Parallel()
	postgres := startOwnPostgres(t)
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

	if c.unanswered == 0 {
		t.Error("no request failed during the kills; want at least one, otherwise the kills hit no request")
	}
	c.checkLinearizable(t)
	for what, sql := range map[string]string{
		"consumer without allocations":                `select uuid from consumer c where not exists (select from allocation where consumer_id = c.id)`,
		"consumer with the allocations of two writes": `select consumer_id::text from allocation group by consumer_id having count(*) > 1`,
	} {
		if found := s.Rows(sql); len(found) > 0 {
			t.Errorf("check the database after the kills: want no %s, found %v", what, found)
		}
	}
	t.Logf("clients sent %d requests: berth acknowledged %d writes, and %d writes got no answer",
		len(c.ops), c.acknowledged, c.unanswered)
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
	history
	deployment         *servertest.Deployment
	replicas           []*replica
	consumers          []string
	provider           string // the provider that is a register
	allocationProvider string // the provider of all allocations
	values             atomic.Int64
}

func newRegisterClients(s *servertest.Deployment, replicas []*replica) *registerClients {
	s.Helper()
	c := &registerClients{
		history:    history{start: time.Now()},
		deployment: s,
		replicas:   replicas,
		consumers:  []string{uuid.NewString(), uuid.NewString()},
	}
	api := replicas[0].worker.Load()
	c.allocationProvider = fmt.Sprint(
		api.Must("POST", "/placement/resource_providers", servertest.Object{"name": "allocations"})["uuid"],
	)
	c.provider = fmt.Sprint(
		api.Must("POST", "/placement/resource_providers", servertest.Object{"name": "register"})["uuid"],
	)
	api.Must(
		"PUT",
		"/placement/resource_providers/"+c.allocationProvider+"/inventories",
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
	before := c.acknowledgedWrites()
	c.deployment.Await("the clients write", func() string {
		if done := c.acknowledgedWrites() - before; done < enough {
			return fmt.Sprintf("%d of %d writes", done, enough)
		}
		return ""
	})
}

// readThenWrite reads a register, and then writes the register with the generation that it has read or with
// an earlier generation. readThenWrite writes only after a successful read, so that each client has at most
// one unanswered write per outage.
func (c *registerClients) readThenWrite(client int, r *rand.Rand) bool {
	a := access{kind: read, register: c.provider, slot: r.IntN(slotCount)}
	if r.IntN(2) == 0 {
		a.register, a.slot = c.consumers[r.IntN(len(c.consumers))], 0
	}
	seen, ok := c.access(client, r, a)
	if !ok {
		return false
	}
	a.kind, a.expect, a.value = write, seen.generation, fmt.Sprint(c.values.Add(1))
	switch {
	case a.register != c.provider && seen.generation > 0 && r.IntN(8) == 0:
		a.kind, a.value = remove, ""
	case a.register == c.provider && a.slot == aggregateSlot:
		a.value = uuid.NewString()
	case a.register == c.provider && a.slot == traitSlot:
		a.value = registerTraits[r.IntN(len(registerTraits))]
	}
	if r.IntN(4) == 0 && a.expect > 0 {
		a.expect--
	}
	_, ok = c.access(client, r, a)
	return ok
}

var registerTraits = []string{"COMPUTE_NODE", "HW_CPU_X86_AVX", "HW_CPU_X86_SSE"}

// access sends a request to a random replica and records the outcome of the request in the history. access
// does not record a read without an answer, and does not record a request if the connection was refused.
// access returns false if no answer arrived.
func (c *registerClients) access(client int, r *rand.Rand, a access) (outcome, bool) {
	method, path, body := c.request(a)
	began := time.Now()
	status, answer, err := c.replicas[r.IntN(len(c.replicas))].worker.Load().Do(method, path, body)
	o := outcome{known: err == nil && status < http.StatusInternalServerError}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), !o.known && a.kind == read:
		return o, false
	case status == http.StatusConflict:
		if o.refused = true; !strings.Contains(fmt.Sprint(answer), "placement.concurrent_update") {
			c.deployment.Errorf(
				"access %+v: got status 409 with the body %v, want the error code placement.concurrent_update in it",
				a,
				answer,
			)
		}
	case o.known && status >= http.StatusBadRequest:
		c.deployment.Errorf("access %+v: got status %d, body %v; want success or 409", a, status, answer)
	case o.known:
		o.generation, o.value = c.parseAnswer(a, answer)
	}
	c.add(client, began, a, o)
	return o, o.known
}

// request translates an access to a register into an HTTP request.
func (c *registerClients) request(a access) (method, path string, body any) {
	if a.register != c.provider {
		path = "/placement/allocations/" + a.register
	} else {
		path = "/placement/resource_providers/" + a.register + [slotCount]string{"/aggregates", "/traits", "/inventories"}[a.slot]
	}
	if a.kind == read {
		return http.MethodGet, path, nil
	}
	if a.register == c.provider {
		name := [slotCount]string{"aggregates", "traits", "inventories"}[a.slot]
		var value any = []string{a.value}
		if a.slot == inventorySlot {
			total, _ := strconv.Atoi(a.value)
			value = servertest.Object{"VCPU": servertest.Object{"total": total}}
		}
		return http.MethodPut, path, servertest.Object{name: value, "resource_provider_generation": a.expect}
	}
	o := servertest.Object{
		"allocations":         servertest.Object{},
		"project_id":          "p",
		"user_id":             "u",
		"consumer_generation": nil,
	}
	if a.expect > 0 {
		o["consumer_generation"] = a.expect
	}
	if amount, err := strconv.Atoi(a.value); err == nil {
		o["allocations"] = servertest.Object{
			c.allocationProvider: servertest.Object{"resources": servertest.Object{"VCPU": amount}},
		}
	}
	return http.MethodPut, path, o
}

// parseAnswer returns the generation and the value of the register in an answer. For a write of a consumer,
// parseAnswer returns the generation that the write must produce, because the answer to this write has no
// body.
func (c *registerClients) parseAnswer(a access, answer servertest.Object) (generation int64, value string) {
	if a.register != c.provider {
		switch a.kind {
		case write:
			return a.expect + 1, ""
		case remove:
			return 0, ""
		}
		g, _ := answer["consumer_generation"].(float64)
		held, _ := answer["allocations"].(servertest.Object)[c.allocationProvider].(servertest.Object)
		resources, _ := held["resources"].(servertest.Object)
		return int64(g), formatNumber(resources["VCPU"])
	}
	if g, ok := answer["resource_provider_generation"].(float64); ok {
		generation = int64(g)
	}
	if a.kind != read {
		return generation, ""
	}
	switch a.slot {
	case inventorySlot:
		all, _ := answer["inventories"].(servertest.Object)
		vcpu, _ := all["VCPU"].(servertest.Object)
		return generation, formatNumber(vcpu["total"])
	default:
		var names []string
		for _, name := range answer[[slotCount]string{"aggregates", "traits"}[a.slot]].([]any) {
			names = append(names, fmt.Sprint(name))
		}
		slices.Sort(names)
		return generation, strings.Join(names, " ")
	}
}

func formatNumber(v any) string {
	if n, ok := v.(float64); ok {
		return strconv.FormatInt(int64(n), 10)
	}
	return ""
}
