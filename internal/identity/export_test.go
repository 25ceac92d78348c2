package identity

import "time"

// SetClock makes the authenticator use the clock of the test's Keystone.
func (k *Keystone) SetClock(now func() time.Time) { k.now = now }

// Remembered returns the number of cached verdicts on tokens.
func (k *Keystone) Remembered() int { return len(k.valid.known) + len(k.invalid.known) }

// SetLimit limits the caches of valid and of invalid tokens.
func (k *Keystone) SetLimit(n int) { k.valid.limit, k.invalid.limit = n, n }

// FailuresToOpen is the number of consecutive failures that open the circuit breaker.
const FailuresToOpen = failuresToOpen

// SetProbeInterval replaces the circuit breaker by a closed one with another interval between probes.
func (k *Keystone) SetProbeInterval(d time.Duration) { k.breaker = newBreaker(d) }

// SetTimeout limits the duration of each request to Keystone, instead of keystoneTimeout.
func (k *Keystone) SetTimeout(d time.Duration) { k.http.Timeout = d }
