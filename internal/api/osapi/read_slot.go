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
	held, err := s.acquire(ctx)
	return held.release, err
}

// heldSlot is a slot that a request has. It counts among the slots of the client until its release, and among
// all slots if `inAll` is true.
type heldSlot struct {
	of     *ClientSlots
	name   string
	client *clientSlots
	inAll  bool
	once   sync.Once // for the release
}

// acquire does the same as Acquire. It returns nil for a caller who needs no slot.
func (s *ClientSlots) acquire(ctx context.Context) (*heldSlot, error) {
	name := clientName(identity.From(ctx))
	if name == "" {
		return nil, nil
	}
	held := &heldSlot{of: s, name: name, client: s.join(name)}
	if err := held.client.slots.Acquire(ctx, 1); err != nil {
		s.leave(name)
		return nil, err
	}
	if err := held.joinAll(ctx); err != nil {
		held.release()
		return nil, err
	}
	return held, nil
}

// joinAll waits until the slot counts among all slots.
func (h *heldSlot) joinAll(ctx context.Context) error {
	err := h.of.all.Acquire(ctx, 1)
	h.inAll = err == nil
	return err
}

// leaveAll leaves the place among all slots to other clients.
func (h *heldSlot) leaveAll() {
	if h.inAll {
		h.of.all.Release(1)
		h.inAll = false
	}
}

// release gives the slot back; further calls do nothing. A nil slot has nothing to give back.
func (h *heldSlot) release() {
	if h == nil {
		return
	}
	h.once.Do(func() {
		h.leaveAll()
		h.client.slots.Release(1)
		h.of.leave(h.name)
	})
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
