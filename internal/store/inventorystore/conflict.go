package inventorystore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"berth/internal/inventory"
)

// Conflicts says how many writes this process has refused because another writer had changed the generation
// of a provider or of a consumer that allocates from the provider.
type Conflicts struct {
	Provider string // UUID
	Name     string // of the provider; empty: the provider does not exist
	Count    int64
	LastAt   time.Time
	Cause    inventory.Cause // kind of the last refused write
}

const (
	// maxConflictProviders is the maximum number of providers whose conflicts a process counts. A further
	// provider replaces the one whose last conflict is the oldest.
	maxConflictProviders = 1000
	// maxProvidersOfWrite is the maximum number of providers for which one refused write counts.
	maxProvidersOfWrite = 16
)

// conflictCounter counts the conflicts of this process. A refused write changes no row, so the count is not
// in the database.
type conflictCounter struct {
	mutex     sync.Mutex
	providers map[string]*Conflicts
}

// record counts a write that was refused with an error. It ignores all errors except faults of the kind
// ConcurrentUpdate.
func (c *conflictCounter) record(err error, cause inventory.Cause, providers ...string) {
	var fault *inventory.Fault
	if err == nil || !errors.As(err, &fault) || fault.Kind != inventory.ConcurrentUpdate {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, p := range providers[:min(len(providers), maxProvidersOfWrite)] {
		found := c.providers[p]
		if found == nil {
			found = &Conflicts{Provider: p}
			c.makeRoom()
			c.providers[p] = found
		}
		found.Count++
		found.LastAt, found.Cause = time.Now(), cause
	}
}

// makeRoom forgets the provider whose last conflict is the oldest, if the process counts for as many
// providers as it can.
func (c *conflictCounter) makeRoom() {
	if len(c.providers) < maxConflictProviders {
		return
	}
	var oldest *Conflicts
	for _, p := range c.providers {
		if oldest == nil || p.LastAt.Before(oldest.LastAt) {
			oldest = p
		}
	}
	delete(c.providers, oldest.Provider)
}

// recordAllocations counts a refused write of allocations for each provider from which it allocates.
func (c *conflictCounter) recordAllocations(err error, writes []inventory.ConsumerWrite) {
	if err == nil {
		return
	}
	var providers []string
	for _, w := range writes {
		for p := range w.Allocations {
			if len(providers) < maxProvidersOfWrite && !slices.Contains(providers, p) {
				providers = append(providers, p)
			}
		}
	}
	c.record(err, inventory.CauseAllocations, providers...)
}

// Conflicts returns the providers with the most conflicts since the start of this process, at most `limit` of
// them.
func (s *Store) Conflicts(ctx context.Context, limit int) ([]Conflicts, error) {
	s.conflicts.mutex.Lock()
	all := make([]Conflicts, 0, len(s.conflicts.providers))
	for _, p := range s.conflicts.providers {
		all = append(all, *p)
	}
	s.conflicts.mutex.Unlock()
	slices.SortFunc(all, func(a, b Conflicts) int {
		return cmp.Or(
			cmp.Compare(b.Count, a.Count),
			b.LastAt.Compare(a.LastAt),
			cmp.Compare(a.Provider, b.Provider),
		)
	})
	all = all[:min(len(all), limit)]
	uuids := make([]string, len(all))
	for i, p := range all {
		uuids[i] = p.Provider
	}
	names, err := s.ProviderNames(ctx, uuids)
	if err != nil {
		return nil, err
	}
	for i, p := range all {
		all[i].Name = names[p.Provider]
	}
	return all, nil
}
