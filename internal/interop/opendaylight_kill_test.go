package interop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// instant is a moment at which the test kills a worker: when a request arrives at the controller, when the
// controller has answered the request, or some time after one of these.
type instant struct {
	request int           // number of requests since the last kill
	phase   requestPhase  // phase of this request after which the delay begins
	delay   time.Duration // time from the phase to the kill
}

// killer kills, at given instants, the worker that sends the journal entries to the controller.
type killer struct {
	story *openDaylightStory

	mu       sync.Mutex
	victim   *servertest.Worker
	instants []instant // instants that have not come yet
	requests int       // number of requests since the last kill
	killed   chan struct{}
}

// onRequest kills the worker if the instant has come.
func (k *killer) onRequest(phase requestPhase) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if phase == requestReceived {
		k.requests++
	}
	if k.victim == nil || len(k.instants) == 0 || k.requests < k.instants[0].request ||
		phase != k.instants[0].phase {
		return
	}
	victim, delay := k.victim, k.instants[0].delay
	k.victim, k.instants, k.requests = nil, k.instants[1:], 0
	kill := func() {
		victim.Kill()
		k.killed <- struct{}{}
	}
	if delay > 0 {
		time.AfterFunc(delay, kill)
		return
	}
	kill()
}

// replace starts another worker if the worker was killed.
func (k *killer) replace() {
	k.story.Helper()
	select {
	case <-k.killed:
		next := k.story.StartWorker("relay,temporal")
		k.mu.Lock()
		defer k.mu.Unlock()
		k.victim = next
	default:
	}
}

// isKilling reports whether the worker is killed or will be killed, and has not been replaced yet.
func (k *killer) isKilling() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.victim == nil
}

// left returns the number of instants that have not come yet.
func (k *killer) left() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.instants)
}

// TestOpenDaylight_EqualToRowsAfterKillsAtAnyInstant kills the worker at random instants while the worker
// sends journal entries to a real controller. An instant is the arrival of a request at the controller, the
// controller's answer to a request, or a moment up to 100 ms after one of these two. Afterwards an audit must
// find no difference.
func TestOpenDaylight_EqualToRowsAfterKillsAtAnyInstant(t *testing.T) {
	t.Parallel()
	s := startOpenDaylightStory(t, "api")
	kills := storetest.Rounds(t, 4)
	random := rand.New(rand.NewPCG(14, 2))
	k := &killer{story: s, victim: s.StartWorker("relay,temporal"), killed: make(chan struct{}, kills)}
	for range kills {
		i := instant{request: 1 + random.IntN(12), phase: requestPhase(random.IntN(2))}
		if random.IntN(3) == 0 {
			i.delay = time.Duration(1+random.IntN(100)) * time.Millisecond
		}
		k.instants = append(k.instants, i)
	}
	t.Logf("the worker is killed at %+v", k.instants)

	for round := 0; round == 0 || k.left() > 0; round++ {
		s.controller.observe(k.onRequest)
		s.tellKillStory(round, k.replace)
		s.Await("all entries are completed", func() string {
			k.replace()
			return strings.Join(s.Rows(servertest.UnfinishedEntries), "\n")
		})
		s.controller.observe(nil)
		s.Await("a worker runs", func() string {
			if k.replace(); k.isKilling() {
				return "it is being killed"
			}
			return ""
		})
		s.CheckAudit(s.api, fmt.Sprintf("round %d with %d kills left", round, k.left()))
	}
}

// tellKillStory creates, changes and deletes objects of a server's network, and calls the function `step`
// after each request.
func (s *openDaylightStory) tellKillStory(round int, step func()) {
	s.Helper()
	create := func(path, typ string, o servertest.Object) string {
		s.Helper()
		defer step()
		return s.create(path, typ, o)
	}
	network := create("networks", "network", servertest.Object{"name": fmt.Sprint("blue-", round)})
	gone := create("networks", "network", servertest.Object{"name": "gone"})
	subnet := create("subnets", "subnet", servertest.SubnetBody(network))
	group := create("security-groups", "security_group", servertest.Object{"name": "web"})
	rule := create("security-group-rules", "security_group_rule",
		servertest.Object{"security_group_id": group, "direction": "ingress", "protocol": "tcp"})
	var ports []string
	for range 3 {
		ports = append(ports, create(
			"ports",
			"port",
			servertest.Object{"network_id": network, "security_groups": []string{group}},
		))
	}
	for _, c := range []struct {
		path, typ string
		change    servertest.Object
	}{
		{"networks/" + network, "network", servertest.Object{"name": "red"}},
		{"subnets/" + subnet, "subnet", servertest.Object{"name": "green", "dns_nameservers": []string{"10.0.0.1"}}},
		{"ports/" + ports[0], "port", servertest.Object{"name": "first"}},
		{"ports/" + ports[0], "port", servertest.Object{"name": "first again"}},
		{"security-groups/" + group, "security_group", servertest.Object{"description": "of the web servers"}},
	} {
		s.change(c.path, c.typ, c.change)
		step()
	}
	for _, path := range []string{"ports/" + ports[1], "security-group-rules/" + rule, "networks/" + gone, "ports/" + ports[2]} {
		s.api.Must("DELETE", "/networking/v2.0/"+path, nil)
		step()
	}
}
