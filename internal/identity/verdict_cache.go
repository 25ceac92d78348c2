package identity

import (
	"crypto/sha256"
	"sync"
	"time"
)

// verdicts caches the results of validations by the hash of the token. verdicts keeps at most `limit`
// verdicts, and does not return a verdict after the verdict has expired.
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

// find returns the caller to whom a cached token belongs. The result ok is false if the token is not cached
// or if its verdict has expired.
func (v *verdicts) find(key [sha256.Size]byte, now time.Time) (c Caller, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, ok := v.known[key]
	if ok && !now.Before(found.until) {
		delete(v.known, key)
		ok = false
	}
	return found.caller, ok
}

// keep stores a verdict. If the cache is full, keep deletes an arbitrary other verdict; the token of the
// deleted verdict is validated again when it is next used.
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

// forget deletes the verdict about a token.
func (v *verdicts) forget(key [sha256.Size]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, key)
}
