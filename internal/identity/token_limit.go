package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"
)

// TokenLimit limits the checks of tokens that are not known to be valid, by the address of the client: the
// number of checks at the same time, and, after too many invalid tokens, their rate. The limits are those of
// the tokens that Keystone validates. TokenLimit caches no verdict: each token is checked each time, but a
// token that was valid lately has no limit.
type TokenLimit struct {
	clients *addressLimit
	valid   *verdicts
	now     func() time.Time
}

// NewTokenLimit returns a TokenLimit that knows no token yet.
func NewTokenLimit() *TokenLimit {
	return &TokenLimit{
		clients: newAddressLimit(maxPerAddress, maxVerdicts),
		valid:   newVerdicts(maxVerdicts),
		now:     time.Now,
	}
}

// Check returns the result of the function `check`, which checks the token. If the address of the client has
// too many unknown tokens, Check returns an error that wraps ErrTooManyAttempts and does not call `check`.
func (l *TokenLimit) Check(
	ctx context.Context,
	token string,
	check func() (Caller, error),
) (c Caller, err error) {
	key := sha256.Sum256([]byte(token))
	if _, known := l.valid.find(key, l.now()); !known {
		client := AddressOf(ctx)
		if err := l.clients.begin(client, l.now()); err != nil {
			return Caller{}, err
		}
		defer func() { l.clients.end(client, l.now(), errors.Is(err, ErrUnauthenticated)) }()
	}
	c, err = check()
	switch {
	case err == nil:
		l.valid.keep(key, Caller{}, l.now().Add(validFor))
	case errors.Is(err, ErrUnauthenticated):
		l.valid.forget(key)
	}
	return c, err
}
