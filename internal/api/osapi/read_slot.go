package osapi

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"berth/internal/identity"
)

// Numbers of answers to GET requests that are read from the database and encoded at the same time, without
// the requests of administrators and services. The objects of an answer need several times the memory of the
// encoded answer, and only the encoded answer counts against maxAnswerBytes.
const (
	maxReads       = 16
	maxClientReads = 4 // of a project, or of the agents of one host
)

// ClientSlots limits how many requests do costly work at the same time, in all and of one client: a project,
// or the agents of one host. Administrators and services need no slot.
type ClientSlots struct {
	perClient int64
	all       *semaphore.Weighted
	mutex     sync.Mutex
	clients   map[string]*clientSlots // without the clients that have no slot and wait for none
}

// NewClientSlots returns a ClientSlots with the given numbers of slots.
func NewClientSlots(all, perClient int64) *ClientSlots {
	return &ClientSlots{
		perClient: perClient,
		all:       semaphore.NewWeighted(all),
		clients:   map[string]*clientSlots{},
	}
}

// clientSlots has the slots of one client.
type clientSlots struct {
	slots    *semaphore.Weighted
	requests int // that have a slot or wait for one
}

// reads has the slots for reading answers. A request must release its slot when the answer is encoded; it
// must not wait for the client before.
var reads = NewClientSlots(maxReads, maxClientReads)

// Acquire waits for a slot of the caller in the context. The caller of Acquire must call release.
func (s *ClientSlots) Acquire(ctx context.Context) (release func(), err error) {
	name := clientName(identity.From(ctx))
	if name == "" {
		return func() {}, nil
	}
	client := s.join(name)
	if err := client.slots.Acquire(ctx, 1); err != nil {
		s.leave(name)
		return nil, err
	}
	if err := s.all.Acquire(ctx, 1); err != nil {
		client.slots.Release(1)
		s.leave(name)
		return nil, err
	}
	return sync.OnceFunc(func() {
		s.all.Release(1)
		client.slots.Release(1)
		s.leave(name)
	}), nil
}

func (s *ClientSlots) join(name string) *clientSlots {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	client := s.clients[name]
	if client == nil {
		client = &clientSlots{slots: semaphore.NewWeighted(s.perClient)}
		s.clients[name] = client
	}
	client.requests++
	return client
}

func (s *ClientSlots) leave(name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	client := s.clients[name]
	if client.requests--; client.requests == 0 {
		delete(s.clients, name)
	}
}
