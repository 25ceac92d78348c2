package torture

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/server/servertest"
	"berth/internal/store/db"
)

// mortalPostgres is a database server of the test's own, which it may kill.
func mortalPostgres(t *testing.T) *devstack.Postgres {
	t.Helper()
	postgres, err := devstack.StartPostgres(t.Context(), devstack.PostgresOptions{Dir: filepath.Join(filepath.Dir(servertest.DataFolder(t)), "postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(postgres.Stop)
	if _, err := db.Migrate(t.Context(), postgres.URL); err != nil {
		t.Fatal(err)
	}
	return postgres
}

func TestAcknowledgedWrites_SurvivePostgresCrash(t *testing.T) {
	t.Parallel()
	postgres := mortalPostgres(t)
	_, settings := servertest.NewNamespace(t)
	s := servertest.NewDeployment(t, postgres.URL, settings...)
	checkWritesSurvive(s.StartWorker("api,relay,temporal"), s, func() {
		if err := postgres.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAcknowledgedWrites_SurviveKillOfProcess(t *testing.T) {
	t.Parallel()
	s, temporal := servertest.SharedDeployment(t)
	port, err := devstack.Port(0)
	if err != nil {
		t.Fatal(err)
	}
	s.Settings = append(s.Settings, fmt.Sprintf("BERTH_LISTEN=127.0.0.1:%d", port)) // the clients find it again
	c := s.StartWorker("api,relay,temporal")
	checkWritesSurvive(c, s, func() {
		c.Kill()
		c = s.StartWorker("api,relay,temporal")
	})
	checkStickyTakeover(s, temporal, c)
}

// checkStickyTakeover kills a process that has a port's workflow in memory, and checks that what is signalled then does not wait out the time that
// Temporal gives the dead: it is asked of the one that follows in its seat.
func checkStickyTakeover(s *servertest.Deployment, temporal client.Client, c *servertest.Worker) {
	s.Helper()
	c.RegisterAgents()
	network := c.CreateNetwork("inherited")
	c.CreateSubnet(network)
	port := contract.PortID(c.Create("port", servertest.PortBody(network)))
	says := func(want ...string) {
		s.Helper()
		s.Await(fmt.Sprintf("%s waits for %v", port, want), func() string {
			var why contract.Why
			v, err := temporal.QueryWorkflow(s.Context(), port, "", contract.QueryWhy)
			if err == nil {
				err = v.Get(&why)
			}
			if err == nil && slices.EqualFunc(why.Waiting, want, func(w contract.Waiting, name string) bool { return w.For == name }) {
				return ""
			}
			return fmt.Sprintf("%+v, %v", why, err)
		})
	}
	says("DHCP", "L2")

	c.Kill()
	c = s.StartWorker("api,relay,temporal")
	s.Await("the one that follows is ready", func() string {
		if code, _, err := c.Do("GET", "/readyz", nil); code != http.StatusOK {
			return fmt.Sprint(code, err)
		}
		return ""
	})
	if err := temporal.SignalWorkflow(s.Context(), port, "", contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"}); err != nil {
		s.Fatal(err)
	}

	says("DHCP")
	for events := temporal.GetWorkflowHistory(s.Context(), port, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			s.Fatal(err)
		}
		if e.GetWorkflowTaskTimedOutEventAttributes().GetTimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_START {
			s.Errorf("the signal waited for the dead: %v", e)
		}
	}
}

// checkWritesSurvive lets clients work on the process through crashes, and checks that what it acknowledged is kept, that
// nothing is there by halves, and that everything is brought to its end.
func checkWritesSurvive(c *servertest.Worker, s *servertest.Deployment, crash func()) {
	s.Helper()
	c.RegisterAgents()
	l := &load{Worker: c, names: map[string]string{}, gone: map[string]bool{}, reported: map[string]bool{}, holds: map[string]bool{}}
	l.stock()
	stop := l.run(4)
	for range 2 {
		l.progress(s)
		crash()
	}
	l.progress(s)
	stop()

	if l.failed.Load() == 0 {
		s.Error("no client noticed the crashes")
	}
	s.AwaitMirrored()
	s.AwaitNone("no note is left", `select workflow_id from note`)
	s.AwaitNone("Nova is told of everything", `select name || ' ' || port_id from nova_event`)
	checkAcknowledgedKept(s, l)
	checkNothingPartial(s)
	told := countNovaEvents(s, "network-vif-plugged")
	for p := range l.reported {
		if told[p] == 0 {
			s.Errorf("Nova was not told that port %s is plugged", p)
		}
	}
	s.Logf("%d rounds, %d requests failed; acknowledged: %d objects, %d ports reported for, %d consumers", l.rounds.Load(), l.failed.Load(),
		len(l.names), len(l.reported), len(l.holds))
}

// progress waits until the clients have done some rounds more.
func (l *load) progress(s *servertest.Deployment) {
	s.Helper()
	const enough = 15
	before := l.rounds.Load()
	s.Await("the clients get on", func() string {
		if done := l.rounds.Load() - before; done < enough {
			return fmt.Sprintf("%d of %d rounds; the last trouble: %s", done, enough, l.last())
		}
		return ""
	})
}

// checkAcknowledgedKept checks that what was acknowledged is there.
func checkAcknowledgedKept(s *servertest.Deployment, l *load) {
	s.Helper()
	there := map[string]string{}
	for _, line := range s.Rows(`
		select id || ' ' || name from network
		union all select id || ' ' || name from subnet
		union all select id || ' ' || name || status from port
		union all select uuid || ' ' from consumer`) {
		id, name, _ := strings.Cut(line, " ")
		there[id] = name
	}
	for id, name := range l.names {
		if found, ok := there[id]; !ok || !strings.HasPrefix(found, name) {
			s.Errorf("acknowledged: %s %q; found: %q, %v", id, name, found, ok)
		}
	}
	for id := range l.reported {
		if there[id] != "" && !strings.HasSuffix(there[id], "ACTIVE") {
			s.Errorf("both reports on port %s were acknowledged, and it is %s", id, there[id])
		}
	}
	for id := range l.gone {
		if _, ok := there[id]; ok {
			s.Errorf("%s is there although its deletion was acknowledged", id)
		}
	}
	for id := range l.holds {
		if _, ok := there[id]; !ok {
			s.Errorf("what was allocated for %s is lost", id)
		}
	}
}

// checkNothingPartial checks that nothing is there by halves, acknowledged or not.
func checkNothingPartial(s *servertest.Deployment) {
	s.Helper()
	for what, sql := range map[string]string{
		"a port without its one address": `
			select p.id::text from port p where (select count(*) from port_address a where a.port_id = p.id) <> 1`,
		"a port whose status is not what its blocks say": `
			select p.id::text from port p
			where (p.status = 'ACTIVE') = exists (select from block b where b.object_id = p.id)`,
		"an object that the journal does not know": `
			select o.id::text from (select id from network union all select id from subnet union all select id from port union all select id from security_group union all select id from security_group_rule) as o
			where not exists (select from journal_entry e where e.object_id = o.id::text and e.operation = 'create')`,
		"an entry for an object that never was": `
			select e.object_id from journal_entry e
			where not exists (select from journal_entry d where d.object_id = e.object_id and d.operation = 'delete')
				and not exists (select from (select id from network union all select id from subnet union all select id from port union all select id from security_group union all select id from security_group_rule) as o
					where o.id::text = e.object_id)`,
		"a consumer that does not hold all that it asked for in one write": `
			select c.uuid from consumer c
			where (select count(*) from allocation a where a.consumer_id = c.id) <> 2 or c.generation <> 1`,
		"an entry that waits for a completed one": `select format('%s for %s', entry, waits_for) from journal_dep`,
	} {
		if found := s.Rows(sql); len(found) > 0 {
			s.Errorf("%s: %v", what, found)
		}
	}
}

// load is clients at work, who remember what was acknowledged.
type load struct {
	*servertest.Worker
	provider       string
	rounds, failed atomic.Int64

	mu       sync.Mutex
	names    map[string]string // by ID; as far as acknowledged
	gone     map[string]bool   // deletion acknowledged
	reported map[string]bool   // ports: both reports acknowledged
	holds    map[string]bool   // consumers
	trouble  string
}

// stock makes a provider from which everybody allocates.
func (l *load) stock() {
	l.T.Helper()
	p := l.Must("POST", "/placement/resource_providers", servertest.Object{"name": "shared"})
	l.provider = fmt.Sprint(p["uuid"])
	l.Must("PUT", "/placement/resource_providers/"+l.provider+"/inventories", servertest.Object{"resource_provider_generation": p["generation"],
		"inventories": servertest.Object{"VCPU": servertest.Object{"total": 1_000_000}, "MEMORY_MB": servertest.Object{"total": 1_000_000}}})
}

// run lets n clients work until stop is called.
func (l *load) run(n int) (stop func()) {
	var over atomic.Bool
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			for !over.Load() {
				if l.round() {
					l.rounds.Add(1)
					continue
				}
				l.failed.Add(1)
				time.Sleep(20 * time.Millisecond) // as clients do after a failure
			}
		})
	}
	stop = sync.OnceFunc(func() {
		over.Store(true)
		clients.Wait()
	})
	l.T.Cleanup(stop)
	return stop
}

// ack sends a request and tells whether it was acknowledged; then note says what that means.
func (l *load) ack(method, path string, body any, note func(servertest.Object)) bool {
	code, o, err := l.Do(method, path, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || code >= http.StatusMultipleChoices {
		l.trouble = fmt.Sprint(method, " ", path, ": ", code, o, err)
		if err == nil && code < http.StatusInternalServerError {
			l.T.Errorf("a client is blamed for the crash: %s", l.trouble)
		}
		return false
	}
	note(o)
	return true
}

func (l *load) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble
}

// create is ack for an object of the Networking API. Every fresh object has a name of its own.
func (l *load) create(typ string, o servertest.Object) (id string, ok bool) {
	name := typ + "-" + uuid.NewString()
	o["name"] = name
	ok = l.ack("POST", "/networking/v2.0/"+typ+"s", servertest.Object{typ: o}, func(answer servertest.Object) {
		id = answer[typ].(servertest.Object)["id"].(string)
		l.names[id] = name
	})
	return id, ok
}

// round is what a client does once; it ends early when something is not acknowledged. It deletes every other
// port that it made.
func (l *load) round() bool {
	network, ok := l.create("network", servertest.Object{})
	if !ok {
		return false
	}
	if _, ok = l.create("subnet", servertest.SubnetBody(network)); !ok {
		return false
	}
	if !l.ack("POST", "/agent/v1/state", servertest.Object{"agent_type": "Open vSwitch agent", "host": "cmp-1"}, func(servertest.Object) {}) {
		return false
	}
	port, ok := l.create("port", servertest.PortBody(network))
	return ok && l.rename(network) && l.allocate() &&
		l.ack("POST", "/agent/v1/reports", servertest.ReportsBody(port), func(servertest.Object) { l.reported[port] = true }) &&
		(l.rounds.Load()%2 == 0 || l.remove(port))
}

func (l *load) rename(network string) bool {
	l.forget(network, "network-")
	name := "network-renamed-" + network
	return l.ack("PUT", "/networking/v2.0/networks/"+network, servertest.Object{"network": servertest.Object{"name": name}}, func(servertest.Object) { l.names[network] = name })
}

// forget says that no more than that beginning of an object's name is known until the next answer.
func (l *load) forget(id, beginning string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names[id] = beginning
}

func (l *load) allocate() bool {
	consumer := uuid.NewString()
	return l.ack("PUT", "/placement/allocations/"+consumer, servertest.Object{"allocations": servertest.Object{l.provider: servertest.Object{"resources": servertest.Object{"VCPU": 1, "MEMORY_MB": 1}}},
		"project_id": "p", "user_id": "u", "consumer_generation": nil}, func(servertest.Object) { l.holds[consumer] = true })
}

func (l *load) remove(port string) bool {
	l.mu.Lock()
	delete(l.names, port)
	l.mu.Unlock()
	return l.ack("DELETE", "/networking/v2.0/ports/"+port, nil, func(servertest.Object) { l.gone[port] = true })
}
