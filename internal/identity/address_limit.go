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
	// fullRetry is how long a client should wait whose address has as many tokens in validation, or as many
	// logins, as an address may have.
	fullRetry = time.Second
	// maxLoginsPerAddress is the maximum number of logins of one address that wait or run.
	maxLoginsPerAddress = 10
	// maxRunningPerAddress is the maximum number of logins of one address on which Keystone works at the same
	// time. It is a part of maxRunningLogins, so that one address leaves places for the others.
	maxRunningPerAddress = 2
	// freeLogins is the number of logins that an address may send one after the other without a delay.
	// Successful ones count too, because each password costs Keystone much CPU time.
	freeLogins = 30
	// forgiveLoginAfter is the time after which one login of an address is forgotten.
	forgiveLoginAfter = 2 * time.Second
)

// addressLimit limits the work that unknown tokens of one client address cause at Keystone. An address has a
// limited number of validations at a time. After too many invalid tokens, each further one delays the next
// validation for the address longer, and the address has only one validation at a time. addressLimit does not
// concern tokens whose verdict is cached.
//
// A second addressLimit limits the logins of an address in the same way. For it, every login counts as an
// invalid token does for the first one.
type addressLimit struct {
	perAddress   int           // validations of one address that wait or run
	running      int           // validations of one address that run; 0: all
	size         int           // addresses in the memory
	free         float64       // invalid tokens without a delay
	forgiveAfter time.Duration // the time after which one invalid token is forgotten

	mu      sync.Mutex
	known   map[netip.Addr]*addressState
	refused uint64
}

// addressState is what addressLimit knows about an address.
type addressState struct {
	begun int           // validations that wait or run
	turns chan struct{} // contains one element for each validation that runs
	bad   float64       // invalid tokens that are not forgotten, at the time `at`
	at    time.Time     // of the last invalid token
	until time.Time     // no validation before
}

func newAddressLimit(perAddress, size int) *addressLimit {
	return &addressLimit{
		perAddress:   perAddress,
		size:         size,
		free:         freeBadTokens,
		forgiveAfter: forgiveAfter,
		known:        map[netip.Addr]*addressState{},
	}
}

// newLoginLimit returns an addressLimit for logins with a password.
func newLoginLimit() *addressLimit {
	l := newAddressLimit(maxLoginsPerAddress, maxVerdicts)
	l.running, l.free, l.forgiveAfter = maxRunningPerAddress, freeLogins, forgiveLoginAfter
	return l
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
	if l.badAt(s, now) > l.free {
		limit = 1
	}
	switch wait := s.until.Sub(now); {
	case wait > 0:
		l.refused++
		return &retryError{
			error: fmt.Errorf("%w: %s has sent too many invalid tokens or too many logins", ErrTooManyAttempts, client),
			after: wait,
		}
	case s.begun >= limit:
		l.refused++
		return &retryError{
			error: fmt.Errorf(
				"%w: %d tokens or logins of %s wait for Keystone", ErrTooManyAttempts, s.begun, client,
			),
			after: fullRetry,
		}
	}
	s.begun++
	return nil
}

// turns returns a channel that contains one element for each validation of an address that runs. The caller
// has counted a validation with begin. The result is nil if all validations of the client may run.
func (l *addressLimit) turns(client netip.Addr) chan struct{} {
	if !client.IsValid() || l.running == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.known[client]
	if s.turns == nil {
		s.turns = make(chan struct{}, l.running)
	}
	return s.turns
}

// end ends what begin has counted. The parameter `counts` says that the token was invalid, or that there was
// a login.
func (l *addressLimit) end(client netip.Addr, now time.Time, counts bool) {
	if !client.IsValid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.known[client]
	s.begun--
	if !counts {
		return
	}
	s.bad, s.at = min(l.badAt(s, now)+1, l.free+1+maxDoublings), now
	if over := math.Ceil(s.bad - l.free); over > 0 {
		s.until = now.Add(firstDelay << (int(over) - 1))
	}
}

// badAt returns how many invalid tokens still count against the address at the time `now`.
func (l *addressLimit) badAt(s *addressState, now time.Time) float64 {
	return max(s.bad-float64(now.Sub(s.at))/float64(l.forgiveAfter), 0)
}

// state returns the state of an address. If the memory is full, state forgets an arbitrary other address
// without a validation.
func (l *addressLimit) state(client netip.Addr) *addressState {
	if s, ok := l.known[client]; ok {
		return s
	}
	if len(l.known) >= l.size {
		for other, s := range l.known {
			if s.begun == 0 {
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
