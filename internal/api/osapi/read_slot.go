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

// readSlots hands out the slots for reading answers. A client without a slot is not in the map.
type readSlots struct {
	all     *semaphore.Weighted
	mutex   sync.Mutex
	clients map[string]*clientReads
}

// clientReads has the slots of one client.
type clientReads struct {
	slots    *semaphore.Weighted
	requests int // that have a slot or wait for one
}

var reads = readSlots{all: semaphore.NewWeighted(maxReads), clients: map[string]*clientReads{}}

// acquire waits for a slot of the caller in the context. The caller of acquire must call release when the
// answer is encoded; it must not wait for the client before.
func (s *readSlots) acquire(ctx context.Context) (release func(), err error) {
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

func (s *readSlots) join(name string) *clientReads {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	client := s.clients[name]
	if client == nil {
		client = &clientReads{slots: semaphore.NewWeighted(maxClientReads)}
		s.clients[name] = client
	}
	client.requests++
	return client
}

func (s *readSlots) leave(name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	client := s.clients[name]
	if client.requests--; client.requests == 0 {
		delete(s.clients, name)
	}
}
