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

// TestGenerationsAreRegistersThroughKills lets clients of two processes contend for a few generations while processes and PostgreSQL
// are killed with -9, and looks for an order of all that they saw in which every generation had one writer.
func TestGenerationsAreRegistersThroughKills(t *testing.T) {
	t.Parallel()
	postgres := mortalPostgres(t)
	s := servertest.NewDeployment(t, postgres.URL)
	replicas := []*replica{startReplica(s), startReplica(s)}
	c := newContest(s, replicas)

	stop := c.run(8)
	for range max(1, storetest.Rounds(t, 100)/100) {
		for _, kill := range []func(){
			replicas[0].replace,
			func() {
				if err := postgres.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			replicas[1].replace,
		} {
			c.goOn()
			kill()
		}
	}
	c.goOn()
	stop()

	if c.lost == 0 {
		t.Error("no client noticed the kills")
	}
	c.judge(t)
	for what, sql := range map[string]string{
		"a consumer without allocations": `select uuid from consumer c where not exists (select from allocation where consumer_id = c.id)`,
		"allocations of two writes":      `select consumer_id::text from allocation group by consumer_id having count(*) > 1`,
	} {
		if found := s.Rows(sql); len(found) > 0 {
			t.Errorf("%s: %v", what, found)
		}
	}
	t.Logf("%d accesses, %d of them writes that won, %d without an answer", len(c.ops), c.done, c.lost)
}

// replica is one of the processes that serve the same rows, always at the same address.
type replica struct {
	site *servertest.Deployment
	port int
	now  atomic.Pointer[servertest.Worker]
}

func startReplica(s *servertest.Deployment) *replica {
	s.Helper()
	port, err := devstack.Port(0)
	if err != nil {
		s.Fatal(err)
	}
	r := &replica{site: s, port: port}
	r.start()
	return r
}

func (r *replica) start() {
	r.site.Helper()
	r.site.Settings = append(r.site.Settings, fmt.Sprintf("BERTH_LISTEN=127.0.0.1:%d", r.port))
	r.now.Store(r.site.StartWorker("api"))
}

func (r *replica) replace() {
	r.site.Helper()
	r.now.Load().Kill()
	r.start()
}

// contest is clients that write and read a few registers through any replica.
type contest struct {
	history
	site      *servertest.Deployment
	replicas  []*replica
	consumers []string
	provider  string // a register
	stock     string // a provider from which everybody allocates
	values    atomic.Int64
}

func newContest(s *servertest.Deployment, replicas []*replica) *contest {
	s.Helper()
	c := &contest{history: history{zero: time.Now()}, site: s, replicas: replicas, consumers: []string{uuid.NewString(), uuid.NewString()}}
	api := replicas[0].now.Load()
	c.stock = fmt.Sprint(api.Must("POST", "/placement/resource_providers", servertest.Object{"name": "stock"})["uuid"])
	c.provider = fmt.Sprint(api.Must("POST", "/placement/resource_providers", servertest.Object{"name": "register"})["uuid"])
	api.Must("PUT", "/placement/resource_providers/"+c.stock+"/inventories", servertest.Object{"resource_provider_generation": 0,
		"inventories": servertest.Object{"VCPU": servertest.Object{"total": 1_000_000_000}}})
	return c
}

// run lets n clients work until stop is called.
func (c *contest) run(n int) (stop func()) {
	var over atomic.Bool
	var clients sync.WaitGroup
	for i := range n {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		clients.Go(func() {
			for !over.Load() {
				if !c.round(i, r) {
					time.Sleep(20 * time.Millisecond) // as clients do after a failure
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		over.Store(true)
		clients.Wait()
	})
	c.site.Cleanup(stop)
	return stop
}

// goOn waits until some more writes have won.
func (c *contest) goOn() {
	c.site.Helper()
	const enough = 60
	before := c.progress()
	c.site.Await("the clients get on", func() string {
		if won := c.progress() - before; won < enough {
			return fmt.Sprintf("%d of %d writes", won, enough)
		}
		return ""
	})
}

// round reads a register and writes it at the generation that was seen, or at one that was there before. Only
// what is seen tells that the servers are there again, so a client has at most one write without an answer each time they go away.
func (c *contest) round(client int, r *rand.Rand) bool {
	a := access{kind: look, register: c.provider, slot: r.IntN(slots)}
	if r.IntN(2) == 0 {
		a.register, a.slot = c.consumers[r.IntN(len(c.consumers))], 0
	}
	seen, ok := c.try(client, r, a)
	if !ok {
		return false
	}
	a.kind, a.expect, a.value = write, seen.generation, fmt.Sprint(c.values.Add(1))
	switch {
	case a.register != c.provider && seen.generation > 0 && r.IntN(8) == 0:
		a.kind, a.value = remove, ""
	case a.register == c.provider && a.slot == ofAggregates:
		a.value = uuid.NewString()
	case a.register == c.provider && a.slot == ofTraits:
		a.value = someTraits[r.IntN(len(someTraits))]
	}
	if r.IntN(4) == 0 && a.expect > 0 {
		a.expect--
	}
	_, ok = c.try(client, r, a)
	return ok
}

var someTraits = []string{"COMPUTE_NODE", "HW_CPU_X86_AVX", "HW_CPU_X86_SSE"}

// try does an access at any replica and takes down what came of it, unless that tells nothing. It returns false if there was no answer.
func (c *contest) try(client int, r *rand.Rand, a access) (outcome, bool) {
	method, path, body := c.request(a)
	began := time.Now()
	status, answer, err := c.replicas[r.IntN(len(c.replicas))].now.Load().Do(method, path, body)
	o := outcome{known: err == nil && status < http.StatusInternalServerError}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), !o.known && a.kind == look:
		return o, false
	case status == http.StatusConflict:
		if o.refused = true; !strings.Contains(fmt.Sprint(answer), "placement.concurrent_update") {
			c.site.Errorf("%+v: %v", a, answer)
		}
	case o.known && status >= http.StatusBadRequest:
		c.site.Errorf("%+v: %d %v", a, status, answer)
	case o.known:
		o.generation, o.value = c.read(a, answer)
	}
	c.add(client, began, a, o)
	return o, o.known
}

// request is the access in HTTP.
func (c *contest) request(a access) (method, path string, body any) {
	if a.register != c.provider {
		path = "/placement/allocations/" + a.register
	} else {
		path = "/placement/resource_providers/" + a.register + [slots]string{"/aggregates", "/traits", "/inventories"}[a.slot]
	}
	if a.kind == look {
		return http.MethodGet, path, nil
	}
	if a.register == c.provider {
		name, value := [slots]string{"aggregates", "traits", "inventories"}[a.slot], any([]string{a.value})
		if a.slot == ofInventory {
			total, _ := strconv.Atoi(a.value)
			value = servertest.Object{"VCPU": servertest.Object{"total": total}}
		}
		return http.MethodPut, path, servertest.Object{name: value, "resource_provider_generation": a.expect}
	}
	o := servertest.Object{"allocations": servertest.Object{}, "project_id": "p", "user_id": "u", "consumer_generation": nil}
	if a.expect > 0 {
		o["consumer_generation"] = a.expect
	}
	if amount, err := strconv.Atoi(a.value); err == nil {
		o["allocations"] = servertest.Object{c.stock: servertest.Object{"resources": servertest.Object{"VCPU": amount}}}
	}
	return http.MethodPut, path, o
}

// read takes generation and value from an answer. A write of a consumer is answered by nothing, so what it must have made is assumed.
func (c *contest) read(a access, answer servertest.Object) (generation int64, value string) {
	if a.register != c.provider {
		switch a.kind {
		case write:
			return a.expect + 1, ""
		case remove:
			return 0, ""
		}
		g, _ := answer["consumer_generation"].(float64)
		held, _ := answer["allocations"].(servertest.Object)[c.stock].(servertest.Object)
		resources, _ := held["resources"].(servertest.Object)
		return int64(g), number(resources["VCPU"])
	}
	if g, ok := answer["resource_provider_generation"].(float64); ok {
		generation = int64(g)
	}
	if a.kind != look {
		return generation, ""
	}
	switch a.slot {
	case ofInventory:
		all, _ := answer["inventories"].(servertest.Object)
		vcpu, _ := all["VCPU"].(servertest.Object)
		return generation, number(vcpu["total"])
	default:
		var names []string
		for _, name := range answer[[slots]string{"aggregates", "traits"}[a.slot]].([]any) {
			names = append(names, fmt.Sprint(name))
		}
		slices.Sort(names)
		return generation, strings.Join(names, " ")
	}
}

func number(v any) string {
	if n, ok := v.(float64); ok {
		return strconv.FormatInt(int64(n), 10)
	}
	return ""
}
