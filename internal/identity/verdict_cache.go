package identity

import (
	"crypto/sha256"
	"time"

	"berth/internal/cache"
)

// verdicts caches the results of validations by the hash of the token. verdicts does not return a verdict
// after the verdict has expired. The token of a verdict that is not kept is validated again when it is next
// used.
type verdicts struct {
	known *cache.Cache[[sha256.Size]byte, verdict]
}

type verdict struct {
	caller Caller
	until  time.Time
}

func newVerdicts(limit int) *verdicts {
	return &verdicts{known: cache.New[[sha256.Size]byte, verdict](limit)}
}

// find returns the caller to whom a cached token belongs. The result ok is false if the token is not cached
// or if its verdict has expired.
func (v *verdicts) find(key [sha256.Size]byte, now time.Time) (c Caller, ok bool) {
	found, ok := v.known.Get(key)
	if ok && !now.Before(found.until) {
		v.known.Delete(key)
		ok = false
	}
	return found.caller, ok
}

// keep stores a verdict.
func (v *verdicts) keep(key [sha256.Size]byte, c Caller, until time.Time) {
	v.known.Put(key, verdict{caller: c, until: until})
}

// forget deletes the verdict about a token.
func (v *verdicts) forget(key [sha256.Size]byte) { v.known.Delete(key) }
