package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"berth/bench/harness"
)

// load sends requests at a constant rate and notes what became of each of them: half of them allocate
// resources to a new consumer, a quarter create a network, and a quarter read what is allocated to a
// consumer.
type load struct {
	connections *harness.HTTPConnections
	provider    string
	began       time.Time
	mu          sync.Mutex
	answers     []answer
	consumers   []string // acknowledged consumers
	networks    []string // IDs of acknowledged networks
}

// answer is what became of a request.
type answer struct {
	sent   time.Duration // since the begin of the load
	took   time.Duration
	kind   kind
	status int // of HTTP; 0: no answer
}

// kind is the kind of a request.
type kind string

const (
	allocation kind = "PUT /allocations/{consumer}"
	network    kind = "POST /networks"
	read       kind = "GET /allocations/{consumer}"
)

// order is the order of the kinds of requests that each client sends.
var order = []kind{allocation, network, allocation, read}

func newLoad(ctx context.Context, s *harness.Stack) (*load, error) {
	providers, err := s.API.CreateProviders(ctx, 1)
	if err != nil {
		return nil, err
	}
	l := &load{connections: harness.NewHTTPConnections(s.API.Base, s.Clients), provider: providers[0]}
	s.OnClose(l.connections.Close)
	return l, l.connections.Open(ctx)
}

// run sends requests until ctx ends. A client whose request takes longer than its interval sends the next one
// at once, and does not send the ones that it has missed.
func (l *load) run(ctx context.Context, clients int, rate float64) {
	interval := time.Duration(float64(clients) / rate * float64(time.Second))
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			next := l.began.Add(interval * time.Duration(client) / time.Duration(clients))
			for n := client; ; n++ {
				harness.Pause(ctx, time.Until(next))
				if ctx.Err() != nil {
					return
				}
				l.send(client, order[n%len(order)])
				if next = next.Add(interval); next.Before(time.Now()) {
					next = time.Now()
				}
			}
		})
	}
	running.Wait()
}

// send sends one request and notes the answer.
func (l *load) send(client int, of kind) {
	consumer := uuid.NewString()
	path := "/placement/allocations/" + consumer
	a := answer{sent: time.Since(l.began), kind: of}
	var body []byte
	switch of {
	case allocation:
		a.status, _, _ = l.connections.Exchange(client, http.MethodPut, path, fmt.Sprintf(
			`{"allocations":{"%s":{"resources":{"VCPU":1}}},"project_id":"bench","user_id":"bench","consumer_type":"INSTANCE","consumer_generation":null}`,
			l.provider))
	case network:
		a.status, body, _ = l.connections.Exchange(client, http.MethodPost, "/networking/v2.0/networks", `{"network":{}}`)
	case read:
		a.status, _, _ = l.connections.Exchange(client, http.MethodGet, path, "")
	}
	a.took = time.Since(l.began) - a.sent
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, a)
	if !a.acknowledged() {
		return
	}
	switch of {
	case allocation:
		l.consumers = append(l.consumers, consumer)
	case network:
		var created struct{ Network struct{ ID string } }
		_ = json.Unmarshal(body, &created) // without an ID, the network counts as lost
		l.networks = append(l.networks, created.Network.ID)
	}
}

// awaitWrite waits until a write is acknowledged that was sent at least so many seconds after the begin of
// the load.
func (l *load) awaitWrite(ctx context.Context, sent float64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, harness.WaitTimeout, harness.ErrTimeout)
	defer cancel()
	for !l.hasWrite(sent) {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for a write to the promoted server: %w", context.Cause(ctx))
		}
		harness.Pause(ctx, harness.PollInterval)
	}
	return nil
}

func (l *load) hasWrite(sent float64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.answers, func(a answer) bool {
		return a.acknowledged() && a.isWrite() && a.sent.Seconds() >= sent
	})
}

func (a answer) acknowledged() bool { return a.status/100 == 2 }

// refused reports whether berth has told the client to send the request again later.
func (a answer) refused() bool { return a.status == http.StatusServiceUnavailable }

func (a answer) isWrite() bool { return a.kind != read }
