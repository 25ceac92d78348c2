package identity

import (
	"crypto/sha256"
	"sync"
	"time"
)

// verdicts caches callers by the hash of their token, each until its expiry, at most limit of them.
type verdicts struct {
	limit int
	mu    sync.Mutex
	known map[[sha256.Size]byte]verdict
}

type verdict struct {
	caller Caller
	until  time.Time
}

func newVerdicts(limit int) *verdicts {
	return &verdicts{limit: limit, known: map[[sha256.Size]byte]verdict{}}
}

func (v *verdicts) find(key [sha256.Size]byte, now time.Time) (Caller, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.known[key]
	if ok && !now.Before(found.until) {
		delete(v.known, key)
		ok = false
	}
	return found.caller, ok
}

// keep stores a verdict. If the cache is full, it drops any other one, whose token is then validated again.
func (v *verdicts) keep(key [sha256.Size]byte, c Caller, until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.known[key]; !ok && len(v.known) >= v.limit {
		for other := range v.known {
			delete(v.known, other)
			break
		}
	}
	v.known[key] = verdict{caller: c, until: until}
}
