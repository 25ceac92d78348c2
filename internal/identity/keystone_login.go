package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
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

// IssueToken lets Keystone issue a token. It waits for its turn among the validations of tokens, and a login
// that Keystone refuses counts as an invalid token of the client's address. Keystone keeps the password; the
// Keystone here keeps neither the password nor the token.
func (k *Keystone) IssueToken(ctx context.Context, l Login) (string, error) {
	var turn [sha256.Size]byte // no other request shares the token
	_, _ = rand.Read(turn[:])
	client, issued := AddressOf(ctx), make(chan string, 1)
	_, err := k.queue.await(ctx, turn, validationTask{
		admit: func() error { return k.clients.begin(client, k.now()) },
		validate: func(ctx context.Context) (Caller, error) {
			token, err := k.issue(ctx, l)
			issued <- token
			return Caller{}, err
		},
		ended: func(err error) { k.clients.end(client, k.now(), errors.Is(err, ErrUnauthenticated)) },
	})
	if err != nil {
		return "", err
	}
	return <-issued, nil
}

// issue requests a token for a user with a password.
func (k *Keystone) issue(ctx context.Context, l Login) (string, error) {
	token, err := k.createToken(ctx, l)
	switch {
	case gophercloud.ResponseCodeIs(err, http.StatusUnauthorized),
		gophercloud.ResponseCodeIs(err, http.StatusBadRequest): // for example a name that is too long
		return "", fmt.Errorf("%w: Keystone refuses the login", ErrUnauthenticated)
	case err != nil:
		return "", k.unavailable("log in a user", err)
	default:
		return token.ID, nil
	}
}

// errNoToken means that the answer to a login has no token that a request can contain.
var errNoToken = errors.New(
	"the answer has no valid token, so it does not come from Keystone: check OS_AUTH_URL")

// createToken requests a token with a password.
func (k *Keystone) createToken(ctx context.Context, l Login) (token *tokens.Token, err error) {
	err = k.request(func() (err error) {
		token, err = tokens.Create(ctx, k.client(""), &tokens.AuthOptions{
			Username:   l.User,
			Password:   l.Password,
			DomainName: l.UserDomain,
			Scope:      tokens.Scope{ProjectName: l.Project, DomainName: l.ProjectDomain},
		}).ExtractToken()
		return err
	})
	if err == nil && checkFormat(token.ID) != nil {
		return nil, errNoToken
	}
	return token, err
}
