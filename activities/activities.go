// Package activities is where workflows touch the world: PostgreSQL, the controller, Nova. An activity is one
// effect, idempotent, short and fenced; it does not know who called it.
package activities

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"berth/internal/journal"
	"berth/internal/notify"
	"berth/internal/store"
)

// Options are what activities reach.
type Options struct {
	Store *store.Store
	ODL   Mirror
	Nova  Compute
	// Enforcement, if set, is told of the ends of leases.
	Enforcement *notify.Enforcement
	// Hypervisors, if set, knows which hosts are up.
	Hypervisors Hypervisors
	Healing     time.Duration // reservations that are needed so soon are healed; 0: all
	Cloud       Cloud         // nil: nobody is told about reservations
	Patience    time.Duration // the cloud is asked again about a reservation for so long; 0: as workflows see fit
	Snapshot    bool          // what reservations leave to the operator before their end is a snapshot of their servers
	// Webhook hears about leases.
	Webhook Listener
	Agents  Agents
	Keep    store.Retention // of the generation history
	// KeepJournal is how long completed journal entries are kept; 0 means for ever.
	KeepJournal time.Duration
	// SyncEvery is how long after the last full sync the next one is begun, though nothing seems to be missing; 0: never.
	SyncEvery time.Duration
	// Attempted, if set, hears of every attempt to mirror an entry.
	Attempted func(journal.Entry, journal.Outcome)
}

// Activities are the activities of every task queue.
type Activities struct {
	Options
	sweeps   sweeps     // of leases that are due
	looks    looks      // at leases
	bringing sync.Mutex // of what has gathered while the controller was away
}

// New makes the activities.
func New(o Options) *Activities { return &Activities{Options: o} }

// Heartbeat is how often a regular activity says that its process lives.
const Heartbeat = time.Second

// alive makes the activity heartbeat until the function that it returns is called, so that the death of the process
// is noticed within seconds.
func alive(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		ticker := time.NewTicker(Heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return func() { close(ended) }
}

// uuidOf reads a key that must be a UUID. Another key belongs to no row and never will.
func uuidOf(key string) (uuid.UUID, error) {
	id, err := uuid.Parse(key)
	if err != nil {
		return id, invalid(fmt.Errorf("key %q is not a UUID", key))
	}
	return id, nil
}

// seqOf reads a key that must be a sequence number.
func seqOf(key string) (int64, error) {
	n, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		return 0, invalid(fmt.Errorf("key %q is not a sequence number", key))
	}
	return n, nil
}
