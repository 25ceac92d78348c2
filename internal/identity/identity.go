// Package identity authenticates requests: from the credentials of a request it determines the Caller, the
// user or service that sent the request. Package identity does not decide what a caller may do; each API
// decides that.
package identity

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

var (
	// ErrUnauthenticated means that the request has no valid credentials (401).
	ErrUnauthenticated = errors.New("authentication required")
	// ErrUnavailable means that the credentials cannot be checked now (503).
	ErrUnavailable = errors.New("identity service unavailable")
	// ErrTooManyAttempts means that too many credentials from the address of the client are invalid or not
	// yet checked (429).
	ErrTooManyAttempts = errors.New("too many invalid or unchecked credentials from one address")
)

// Caller is the authenticated user who sent a request, with a project and roles.
type Caller struct {
	User    string
	Project string
	Roles   []string
	System  bool // the token is scoped to the system, not to a project
	// AgentHost is the host of the agents whose token the request carries. AgentHost is empty for users and
	// services. A caller with an AgentHost has no role and acts for this host only.
	AgentHost string
}

// Has reports whether the caller has the role. As in policy rules, and as in Keystone, the case of its
// letters does not matter.
func (c Caller) Has(role string) bool {
	return slices.ContainsFunc(c.Roles, func(held string) bool { return strings.EqualFold(held, role) })
}

// Admin reports whether the caller may use the operators' APIs.
func (c Caller) Admin() bool { return c.Has("admin") }

// AdminOrService reports whether the caller is an administrator or another service, such as Nova. In
// OpenStack's APIs, policy rules decide what a service may do.
func (c Caller) AdminOrService() bool { return c.Admin() || c.Has("service") }

// Authenticator returns the caller of a request. Every error of an Authenticator wraps ErrUnauthenticated,
// ErrUnavailable or ErrTooManyAttempts.
type Authenticator interface {
	Authenticate(r *http.Request) (Caller, error)
}

// Challenger is an Authenticator whose method Challenge returns the value of the header WWW-Authenticate for
// a response with the status
// 401. The header WWW-Authenticate tells clients where to get credentials.
type Challenger interface {
	Challenge() string
}

type addressKey struct{}

// WithAddress returns a copy of the context that contains the address of the client that sent a request. The
// addresses that one client can have are the same address here; see osapi.
func WithAddress(ctx context.Context, client netip.Addr) context.Context {
	return context.WithValue(ctx, addressKey{}, client)
}

// AddressOf returns the address in the context, or the zero address if the client is not known.
func AddressOf(ctx context.Context) netip.Addr {
	client, _ := ctx.Value(addressKey{}).(netip.Addr)
	return client
}

type callerKey struct{}

// With returns a copy of the context that contains the caller.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// From returns the caller in the context, or the zero Caller if the context contains none.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
