// Package identity tells who calls: it turns a request's credentials into a Caller.
// It knows no API and no object; what a caller may do is decided by the rooms that own the objects.
package identity

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

var (
	// ErrUnauthenticated means that the request carries no valid credentials (401).
	ErrUnauthenticated = errors.New("authentication required")
	// ErrUnavailable means that the credentials cannot be judged now (503).
	ErrUnavailable = errors.New("identity service unavailable")
)

// Caller is who sends a request, as the authenticator found it.
type Caller struct {
	User    string
	Project string
	Roles   []string
	System  bool // the token is scoped to the system, not to a project
}

// Has tells whether the caller holds the role.
func (c Caller) Has(role string) bool { return slices.Contains(c.Roles, role) }

// Admin tells whether the caller may act on every project's objects.
func (c Caller) Admin() bool { return c.Has("admin") || c.Has("service") }

// Authenticator finds the caller of a request. Its errors wrap ErrUnauthenticated or ErrUnavailable.
type Authenticator interface {
	Authenticate(r *http.Request) (Caller, error)
}

// Challenger is an Authenticator that tells a client without credentials where to get some, in the form of a
// WWW-Authenticate header.
type Challenger interface {
	Challenge() string
}

type callerKey struct{}

// With puts the caller into the context.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// From takes the caller out of the context; the zero Caller if there is none.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
