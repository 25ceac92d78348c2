package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/sony/gobreaker/v2"
)

// Login contains what a user enters to get a token: names, not IDs.
type Login struct {
	User, UserDomain       string
	Password               string
	Project, ProjectDomain string // scope of the token
}

// Issuer is an Authenticator that issues tokens to users.
type Issuer interface {
	// IssueToken returns a token for the user. Every error wraps ErrUnauthenticated, ErrUnavailable or
	// ErrTooManyAttempts, and contains nothing of the login.
	IssueToken(ctx context.Context, l Login) (token string, err error)
}

// IssueToken lets Keystone issue a token. A login waits for its turn among the logins, and never takes the
// place of a validation. Each login counts against the client's address, and a login that Keystone refuses
// also counts as an invalid token of the address. Keystone keeps the password; the Keystone here keeps
// neither the password nor the token.
func (k *Keystone) IssueToken(ctx context.Context, l Login) (string, error) {
	if k.breaker.State() == gobreaker.StateOpen {
		return "", k.unavailable("log in a user", errNoAnswer)
	}
	var turn [sha256.Size]byte // no other request shares the token
	_, _ = rand.Read(turn[:])
	client, issued, sent := AddressOf(ctx), make(chan string, 1), false
	_, err := k.loginQueue.await(ctx, turn, validationTask{
		admit: func() error { return k.beginLogin(client) },
		turns: func() chan struct{} { return k.loginLimit.turns(client) },
		validate: func(ctx context.Context) (Caller, error) {
			sent = true
			token, err := k.issue(ctx, l)
			issued <- token
			return Caller{}, err
		},
		ended: func(err error) {
			k.clients.end(client, k.now(), errors.Is(err, ErrUnauthenticated))
			k.loginLimit.end(client, k.now(), sent)
		},
	})
	if err != nil {
		return "", err
	}
	return <-issued, nil
}

// beginLogin counts a login of an address, unless the address has too many logins or invalid tokens.
func (k *Keystone) beginLogin(client netip.Addr) error {
	if err := k.loginLimit.begin(client, k.now()); err != nil {
		return err
	}
	err := k.clients.begin(client, k.now())
	if err != nil {
		k.loginLimit.end(client, k.now(), false)
	}
	return err
}

// issue requests a token for a user with a password. A login without an answer does not count for the circuit
// breaker, and its header Retry-After does not concern others: one domain of users may have a backend that
// does not answer, and a proxy may refuse logins only.
func (k *Keystone) issue(ctx context.Context, l Login) (string, error) {
	token, err := k.createToken(ctx, l)
	switch {
	case gophercloud.ResponseCodeIs(err, http.StatusUnauthorized),
		gophercloud.ResponseCodeIs(err, http.StatusBadRequest): // for example a name that is too long
		return "", fmt.Errorf("%w: Keystone refuses the login", ErrUnauthenticated)
	case err != nil:
		return "", delayed(unavailable("log in a user", err), retryAfter(err, k.now()))
	default:
		return token.ID, nil
	}
}

// errNoToken means that the answer to a login has no token that a request can contain.
var errNoToken = errors.New(
	"the answer has no valid token, so it does not come from Keystone: check OS_AUTH_URL")

// createToken requests a token with a password.
func (k *Keystone) createToken(ctx context.Context, l Login) (*tokens.Token, error) {
	token, err := tokens.Create(ctx, k.client(""), &tokens.AuthOptions{
		Username:   l.User,
		Password:   l.Password,
		DomainName: l.UserDomain,
		Scope:      tokens.Scope{ProjectName: l.Project, DomainName: l.ProjectDomain},
	}).ExtractToken()
	if err == nil && checkFormat(token.ID) != nil {
		return nil, errNoToken
	}
	return token, err
}
