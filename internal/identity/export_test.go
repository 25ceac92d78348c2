package identity

import (
	"crypto/sha256"
	"net/netip"
	"time"
)

// SetClock makes the authenticator use the clock of the test's Keystone.
func (k *Keystone) SetClock(now func() time.Time) { k.now = now }

// SetClock replaces the clock.
func (l *TokenLimit) SetClock(now func() time.Time) { l.now = now }

// Remembered returns the number of cached verdicts on tokens.
func (k *Keystone) Remembered() int { return k.valid.known.Len() + k.invalid.known.Len() }

// SetLimit replaces the caches of valid and of invalid tokens by empty ones with a limit.
func (k *Keystone) SetLimit(n int) { k.valid, k.invalid = newVerdicts(n), newVerdicts(n) }

// FailuresToOpen is the number of consecutive failures that open the circuit breaker.
const FailuresToOpen = failuresToOpen

// SetProbeInterval replaces the circuit breaker by a closed one with another interval between probes.
func (k *Keystone) SetProbeInterval(d time.Duration) { k.breaker = newBreaker(d) }

// SetTimeout limits the duration of each request to Keystone.
func (k *Keystone) SetTimeout(d time.Duration) { k.http.Timeout = d }

// SetWait limits how long a request waits for Keystone, instead of keystoneTimeout.
func (k *Keystone) SetWait(d time.Duration) {
	k.timeout = d
	for _, q := range []*validationQueue{k.queue, k.loginQueue} {
		q.timeout, q.runTimeout = d, d
	}
}

// SetLoginTime limits how long Keystone may work on each further login, instead of loginTimeout.
func (k *Keystone) SetLoginTime(d time.Duration) { k.loginQueue.runTimeout = d }

// SetQueue limits the number of running and of queued validations.
func (k *Keystone) SetQueue(running, queued int) {
	before := k.queue
	k.queue = newValidationQueue(running, queued)
	k.queue.timeout, k.queue.runTimeout = before.timeout, before.runTimeout
}

// Queued returns the number of validations that wait for their turn.
func (k *Keystone) Queued() int {
	k.queue.mu.Lock()
	defer k.queue.mu.Unlock()
	return k.queue.queued
}

// SetAddressLimit limits the validations of one address, and the addresses in the memory.
func (k *Keystone) SetAddressLimit(perAddress, size int) {
	k.clients = newAddressLimit(perAddress, size)
}

// KnownAddresses returns the number of addresses in the memory.
func (k *Keystone) KnownAddresses() int {
	k.clients.mu.Lock()
	defer k.clients.mu.Unlock()
	return len(k.clients.known)
}

// Validating returns the number of validations of an address that wait or run.
func (k *Keystone) Validating(address string) int {
	k.clients.mu.Lock()
	defer k.clients.mu.Unlock()
	if s := k.clients.known[netip.MustParseAddr(address)]; s != nil {
		return s.begun
	}
	return 0
}

// The limits of logins with a password: at the same time in a process and from one address, from one address
// with those that wait, and from one address without a delay.
const (
	MaxRunningLogins     = maxRunningLogins
	MaxRunningPerAddress = maxRunningPerAddress
	MaxLoginsPerAddress  = maxLoginsPerAddress
	FreeLogins           = freeLogins
)

// QueuedLogins returns the number of logins that wait for their turn.
func (k *Keystone) QueuedLogins() int {
	k.loginQueue.mu.Lock()
	defer k.loginQueue.mu.Unlock()
	return k.loginQueue.queued
}

// FreeBadTokens is the number of invalid tokens that an address may send without a delay.
const FreeBadTokens = freeBadTokens

// Waiting returns the number of requests that wait for the validation of a token.
func (k *Keystone) Waiting(token string) int {
	k.queue.mu.Lock()
	defer k.queue.mu.Unlock()
	if v := k.queue.byKey[sha256.Sum256([]byte(token))]; v != nil {
		return v.waiters
	}
	return 0
}
