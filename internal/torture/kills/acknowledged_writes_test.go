package kills

import (
	"fmt"
	"net/http"
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
	"berth/internal/torture/harness"
)

func TestAcknowledgedWrites_SurvivePostgresCrash(t *testing.T) {
	t.Parallel()
	postgres := harness.StartOwnPostgres(t)
	_, settings := servertest.NewNamespace(t)
	s := servertest.NewDeployment(t, postgres.URL, settings...)
	restart := func(*clientLoad) {
		if err := postgres.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	checkSomeFailed(t, checkWritesSurvive(s.StartWorker("api,relay,temporal"), s, restart, restart))
}

func TestAcknowledgedWrites_SurviveKillOfProcess(t *testing.T) {
	t.Parallel()
	s, temporal := servertest.SharedDeployment(t)
	port, err := devstack.Port(0)
	if err != nil {
		t.Fatal(err)
	}
	// the TCP port of the killed process
	s.Settings = append(s.Settings, fmt.Sprintf("BERTH_LISTEN=127.0.0.1:%d", port))
	c := s.StartWorker("api,relay,temporal")
	kill := func(*clientLoad) {
		c.Kill()
		c = s.StartWorker("api,relay,temporal")
	}
	checkSomeFailed(t, checkWritesSurvive(c, s, kill, kill))
	checkStickyTakeover(s, temporal, c)
}

// checkStickyTakeover kills a process that has the workflow of a port in its cache, and then sends a signal
// to this workflow. checkStickyTakeover checks that the next process on the same address takes over the
// sticky task queue, so that no workflow task waits until its schedule-to-start timeout.
func checkStickyTakeover(s *servertest.Deployment, temporal client.Client, c *servertest.Worker) {
	s.Helper()
	c.RegisterAgents()
	network := c.CreateNetwork("sticky")
	c.CreateSubnet(network)
	port := contract.PortID(c.Create("port", servertest.PortBody(network)))
	awaitBlockers := func(want ...string) {
		s.Helper()
		s.Await(fmt.Sprintf("%s waits for %v", port, want), func() string {
			var why contract.Why
			v, err := temporal.QueryWorkflow(s.Context(), port, "", contract.QueryWhy)
			if err == nil {
				err = v.Get(&why)
			}
			waitsFor := func(w contract.Waiting, name string) bool { return w.For == name }
			if err == nil && slices.EqualFunc(why.Waiting, want, waitsFor) {
				return ""
			}
			return fmt.Sprintf("`why` is %+v, %v", why, err)
		})
	}
	awaitBlockers("DHCP", "L2")

	c.Kill()
	c = s.StartWorker("api,relay,temporal")
	s.Await("the next process is ready", func() string {
		if code, _, err := c.Do("GET", "/readyz", nil); code != http.StatusOK {
			return fmt.Sprint(code, err)
		}
		return ""
	})
	if err := temporal.SignalWorkflow(s.Context(), port, "", contract.SignalProvisioningComplete, contract.Report{Entity: "L2", Host: "cmp-1"}); err != nil {
		s.Fatal(err)
	}

	awaitBlockers("DHCP")
	for events := temporal.GetWorkflowHistory(s.Context(), port, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			s.Fatal(err)
		}
		if e.GetWorkflowTaskTimedOutEventAttributes().GetTimeoutType() ==
			enums.TIMEOUT_TYPE_SCHEDULE_TO_START {
			s.Errorf(
				"signal a workflow after its process was killed: a workflow task timed out on the sticky task queue of the killed process, want no timeout: %v",
				e,
			)
		}
	}
}

// checkSomeFailed checks that the crashes of a test hit requests.
func checkSomeFailed(t *testing.T, failed int64) {
	t.Helper()
	if failed == 0 {
		t.Error("no request failed during the crashes; want at least one, otherwise the crashes hit no request")
	}
}

// checkWritesSurvive runs clients that send writes, and calls the faults, one after the other, while they
// send. checkWritesSurvive checks that every acknowledged write is kept, that no write is partial, and that
// no work stays pending. It returns the number of failed requests.
func checkWritesSurvive(
	c *servertest.Worker,
	s *servertest.Deployment,
	faults ...func(*clientLoad),
) (failed int64) {
	s.Helper()
	c.RegisterAgents()
	l := &clientLoad{
		Worker:    c,
		names:     map[string]string{},
		deleted:   map[string]bool{},
		reported:  map[string]bool{},
		consumers: map[string]bool{},
	}
	l.createProvider()
	l.removeQuotas()
	stop := l.run(4)
	for _, fault := range faults {
		l.awaitRounds(s)
		fault(l)
	}
	l.awaitRounds(s)
	stop()

	s.AwaitMirroredAndAudited(c)
	s.AwaitNone("all notes are delivered", `select workflow_id from note`)
	s.AwaitNone("all Nova events are sent", `select name || ' ' || port_id from nova_event`)
	checkAcknowledgedKept(s, l)
	checkNothingPartial(s)
	checkAuditLogComplete(s)
	plugged := harness.CountNovaEvents(s, "network-vif-plugged")
	for p := range l.reported {
		if plugged[p] == 0 {
			s.Errorf(
				"port %s: Nova received no network-vif-plugged event, want one, because berth acknowledged the agent's report",
				p,
			)
		}
	}
	s.Logf(
		"clients ran %d rounds, and %d requests failed; berth acknowledged %d objects, reports for %d ports, and allocations of %d consumers",
		l.rounds.Load(), l.failed.Load(), len(l.names), len(l.reported), len(l.consumers),
	)
	return l.failed.Load()
}

// awaitRounds waits until the clients have completed 15 more rounds of requests.
func (l *clientLoad) awaitRounds(s *servertest.Deployment) {
	s.Helper()
	const enough = 15
	before := l.rounds.Load()
	s.Await("the clients complete rounds", func() string {
		if done := l.rounds.Load() - before; done < enough {
			return fmt.Sprintf("%d of %d rounds; last failure: %s", done, enough, l.failure())
		}
		return ""
	})
}

// checkAcknowledgedKept checks that the effect of every acknowledged request is in the database.
func checkAcknowledgedKept(s *servertest.Deployment, l *clientLoad) {
	s.Helper()
	found := map[string]string{}
	for _, line := range s.Rows(`
		select id || ' ' || name from network
		union all select id || ' ' || name from subnet
		union all select id || ' ' || name || status from port
		union all select uuid || ' ' from consumer`) {
		id, name, _ := strings.Cut(line, " ")
		found[id] = name
	}
	for id, name := range l.names {
		if value, ok := found[id]; !ok || !strings.HasPrefix(value, name) {
			s.Errorf(
				"object %s: berth acknowledged the name %q, but the database has the name %q (row found: %v); want the acknowledged name",
				id, name, value, ok,
			)
		}
	}
	for id := range l.reported {
		if found[id] != "" && !strings.HasSuffix(found[id], "ACTIVE") {
			s.Errorf("both reports for port %s were acknowledged: got name and status %s, want ACTIVE",
				id, found[id])
		}
	}
	for id := range l.deleted {
		if _, ok := found[id]; ok {
			s.Errorf("object %s still exists after berth acknowledged its deletion, want no row", id)
		}
	}
	for id := range l.consumers {
		if _, ok := found[id]; !ok {
			s.Errorf(
				"consumer %s has no allocations in the database, want some, because berth acknowledged them",
				id,
			)
		}
	}
}

// checkNothingPartial checks that no write is partial, acknowledged or not.
func checkNothingPartial(s *servertest.Deployment) {
	s.Helper()
	for what, sql := range map[string]string{
		"port with no address or with several": `
			select p.id::text from port p where (select count(*) from port_address a where a.port_id = p.id) <> 1`,
		"port whose status contradicts its blocks": `
			select p.id::text from port p
			where (p.status = 'ACTIVE') = exists (select from block b where b.object_id = p.id)`,
		"object without a journal entry of its creation": `
			select o.id::text from (select id from network union all select id from subnet union all select id from port union all select id from security_group union all select id from security_group_rule) as o
			where not exists (select from journal_entry e where e.object_id = o.id::text and e.operation = 'create')`,
		"journal entry of an object that does not exist": `
			select e.object_id from journal_entry e
			where not exists (select from journal_entry d where d.object_id = e.object_id and d.operation = 'delete')
				and not exists (select from (select id from network union all select id from subnet union all select id from port union all select id from security_group union all select id from security_group_rule) as o
					where o.id::text = e.object_id)`,
		"consumer without the two allocations of its one write": `
			select c.uuid from consumer c
			where (select count(*) from allocation a where a.consumer_id = c.id) <> 2 or c.generation <> 1`,
		"journal entry that waits for a completed entry": `select format('%s for %s', entry, waits_for) from journal_dep`,
	} {
		if found := s.Rows(sql); len(found) > 0 {
			s.Errorf("check the database after the crashes: want no %s, found %v", what, found)
		}
	}
}

// clientLoad sends requests from several clients, and records which requests berth acknowledged.
type clientLoad struct {
	*servertest.Worker
	provider       string
	rounds, failed atomic.Int64

	mu        sync.Mutex
	names     map[string]string // acknowledged names by ID
	deleted   map[string]bool   // IDs whose deletion was acknowledged
	reported  map[string]bool   // ports for which both reports were acknowledged
	consumers map[string]bool   // consumers whose allocations were acknowledged
	lastError string
}

// createProvider creates the resource provider that all allocations use.
func (l *clientLoad) createProvider() {
	l.T.Helper()
	p := l.Must("POST", "/placement/resource_providers", servertest.Object{"name": "shared"})
	l.provider = fmt.Sprint(p["uuid"])
	l.Must(
		"PUT",
		"/placement/resource_providers/"+l.provider+"/inventories",
		servertest.Object{"resource_provider_generation": p["generation"],
			"inventories": servertest.Object{
				"VCPU":      servertest.Object{"total": 1_000_000},
				"MEMORY_MB": servertest.Object{"total": 1_000_000},
			}},
	)
}

// removeQuotas lets the clients create as many objects as they can during the crashes.
func (l *clientLoad) removeQuotas() {
	l.T.Helper()
	unlimited := servertest.Object{"network": -1, "subnet": -1, "port": -1}
	l.Must("PUT", "/networking/v2.0/quotas/admin", servertest.Object{"quota": unlimited})
}

// run starts n clients, which send requests until the test calls `stop`. The returned function `stop` stops
// the clients and waits until the clients have ended.
func (l *clientLoad) run(n int) (stop func()) {
	var over atomic.Bool
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			for !over.Load() {
				if l.runRound() {
					l.rounds.Add(1)
					continue
				}
				l.failed.Add(1)
				time.Sleep(20 * time.Millisecond) // delay before the next attempt
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

// send sends a request and reports whether berth acknowledged the request. If berth acknowledged the request,
// send calls the function `record` with the answer.
func (l *clientLoad) send(method, path string, body any, record func(servertest.Object)) bool {
	code, o, err := l.Do(method, path, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || code >= http.StatusMultipleChoices {
		l.lastError = fmt.Sprint(method, " ", path, ": ", code, o, err)
		if err == nil && code != http.StatusServiceUnavailable {
			l.T.Errorf("send a request during a crash: got %s; want success or 503", l.lastError)
		}
		return false
	}
	record(o)
	return true
}

func (l *clientLoad) failure() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastError
}

// create creates an object of the Networking API with a unique name.
func (l *clientLoad) create(typ string, o servertest.Object) (id string, ok bool) {
	name := typ + "-" + uuid.NewString()
	o["name"] = name
	ok = l.send(
		"POST",
		"/networking/v2.0/"+typ+"s",
		servertest.Object{typ: o},
		func(answer servertest.Object) {
			id = answer[typ].(servertest.Object)["id"].(string)
			l.names[id] = name
		},
	)
	return id, ok
}

// runRound sends one sequence of requests. runRound stops at the first request that berth does not
// acknowledge, and returns false. In every second round, runRound also deletes the port that it created in
// this round.
func (l *clientLoad) runRound() bool {
	network, ok := l.create("network", servertest.Object{})
	if !ok {
		return false
	}
	if _, ok = l.create("subnet", servertest.SubnetBody(network)); !ok {
		return false
	}
	state := servertest.Object{"agent_type": "Open vSwitch agent", "host": "cmp-1"}
	if !l.send("POST", "/agent/v1/state", state, func(servertest.Object) {}) {
		return false
	}
	port, ok := l.create("port", servertest.PortBody(network))
	reported := func(servertest.Object) { l.reported[port] = true }
	return ok && l.renameNetwork(network) && l.allocate() &&
		l.send("POST", "/agent/v1/reports", servertest.ReportsBody(port), reported) &&
		(l.rounds.Load()%2 == 0 || l.deletePort(port))
}

func (l *clientLoad) renameNetwork(network string) bool {
	l.expectNamePrefix(network, "network-")
	name := "network-renamed-" + network
	return l.send(
		"PUT",
		"/networking/v2.0/networks/"+network,
		servertest.Object{"network": servertest.Object{"name": name}},
		func(servertest.Object) { l.names[network] = name },
	)
}

// expectNamePrefix records that the object's name must begin with the prefix. The rest of the name is
// uncertain until berth acknowledges the request that renames the object.
func (l *clientLoad) expectNamePrefix(id, prefix string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names[id] = prefix
}

func (l *clientLoad) allocate() bool {
	consumer := uuid.NewString()
	return l.send("PUT", "/placement/allocations/"+consumer, servertest.Object{
		"allocations": servertest.Object{
			l.provider: servertest.Object{"resources": servertest.Object{"VCPU": 1, "MEMORY_MB": 1}},
		},
		"project_id":          "p",
		"user_id":             "u",
		"consumer_generation": nil,
	}, func(servertest.Object) { l.consumers[consumer] = true })
}

func (l *clientLoad) deletePort(port string) bool {
	l.mu.Lock()
	delete(l.names, port)
	l.mu.Unlock()
	return l.send("DELETE", "/networking/v2.0/ports/"+port, nil,
		func(servertest.Object) { l.deleted[port] = true })
}
