package identity

import (
	"fmt"
	"math"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxPerAddress is the maximum number of tokens of one address that wait for their validation or are
	// being validated. It is a small part of the queue, so that one address leaves places for the others.
	maxPerAddress = 100
	// freeBadTokens is the number of invalid tokens that an address may send at once without a delay:
	// programs that share an address may all have tokens that have just expired.
	freeBadTokens = 20
	// forgiveAfter is the time after which one invalid token of an address is forgotten. It is shorter than
	// the time for which the cache answers for an invalid token, so a few programs that repeat invalid tokens
	// are never delayed.
	forgiveAfter = time.Second
	// firstDelay is the delay after the first invalid token that is too many. Each further invalid token
	// doubles the delay.
	firstDelay = 250 * time.Millisecond
	// maxDoublings limits the delay, to 32 seconds, and the time until an address is forgiven.
	maxDoublings = 7
	// fullRetry is how long a client should wait whose address has maxPerAddress tokens in validation.
	fullRetry = time.Second
)

// addressLimit limits the work that unknown tokens of one client address cause at Keystone. An address has a
// limited number of validations at a time. After too many invalid tokens, each further one delays the next
// validation for the address longer, and the address has only one validation at a time. addressLimit does not
// concern tokens whose verdict is cached.
type addressLimit struct {
	perAddress int // validations of one address at a time
	size       int // addresses in the memory

	mu      sync.Mutex
	known   map[netip.Addr]*addressState
	refused uint64
}

// addressState is what addressLimit knows about an address.
type addressState struct {
	running int       // validations
	bad     float64   // invalid tokens that are not forgotten, at the time `at`
	at      time.Time // of the last invalid token
	until   time.Time // no validation before
}

func newAddressLimit(perAddress, size int) *addressLimit {
	return &addressLimit{perAddress: perAddress, size: size, known: map[netip.Addr]*addressState{}}
}

// begin counts a validation of a token that an address has sent. If the address has too many, begin returns
// an error with the time after which the client may try again. Clients without a known address have no limit.
func (l *addressLimit) begin(client netip.Addr, now time.Time) error {
	if !client.IsValid() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state(client)
	limit := l.perAddress
	if s.badAt(now) > freeBadTokens {
		limit = 1
	}
	switch wait := s.until.Sub(now); {
	case wait > 0:
		l.refused++
		return &retryError{
			error: fmt.Errorf("%w: %s has sent too many invalid tokens", ErrTooManyAttempts, client),
			after: wait,
		}
	case s.running >= limit:
		l.refused++
		return &retryError{
			error: fmt.Errorf(
				"%w: %d tokens of %s wait for their validation", ErrTooManyAttempts, s.running, client,
			),
			after: fullRetry,
		}
	}
	s.running++
	return nil
}

// end ends what begin has counted. The parameter `invalid` says that the token was invalid.
func (l *addressLimit) end(client netip.Addr, now time.Time, invalid bool) {
	if !client.IsValid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.known[client]
	s.running--
	if !invalid {
		return
	}
	s.bad, s.at = min(s.badAt(now)+1, freeBadTokens+1+maxDoublings), now
	if over := math.Ceil(s.bad - freeBadTokens); over > 0 {
		s.until = now.Add(firstDelay << (int(over) - 1))
	}
}

// badAt returns how many invalid tokens still count against the address at the time `now`.
func (s *addressState) badAt(now time.Time) float64 {
	return max(s.bad-float64(now.Sub(s.at))/float64(forgiveAfter), 0)
}

// state returns the state of an address. If the memory is full, state forgets an arbitrary other address
// without a validation.
func (l *addressLimit) state(client netip.Addr) *addressState {
	if s, ok := l.known[client]; ok {
		return s
	}
	if len(l.known) >= l.size {
		for other, s := range l.known {
			if s.running == 0 {
				delete(l.known, other)
				break
			}
		}
	}
	s := &addressState{}
	l.known[client] = s
	return s
}

// count returns the number of validations that the limit has refused.
func (l *addressLimit) count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}
