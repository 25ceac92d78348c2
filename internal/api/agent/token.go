package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/network"
	"berth/internal/store/agentstore"
	"berth/internal/store/db"
)

// tokenAuthenticator authenticates the agents of a host by their token in X-Auth-Token, and other callers by
// the Authenticator `others`. The limit bounds the work of the database for unknown tokens, which any client
// can send.
type tokenAuthenticator struct {
	tokens *agentstore.Store
	others identity.Authenticator
	limit  *identity.TokenLimit
}

// Authenticate implements identity.Authenticator.
func (a tokenAuthenticator) Authenticate(r *http.Request) (identity.Caller, error) {
	token := r.Header.Get("X-Auth-Token")
	if !strings.HasPrefix(token, agentstore.TokenPrefix) {
		return a.others.Authenticate(r)
	}
	return a.limit.Check(r.Context(), token,
		func() (identity.Caller, error) { return a.lookUp(r.Context(), token) })
}

// lookUp returns the caller to whom an agent token belongs.
func (a tokenAuthenticator) lookUp(ctx context.Context, token string) (identity.Caller, error) {
	host, err := a.tokens.TokenHost(db.WithClass(ctx, "agent tokens"), token)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return identity.Caller{}, fmt.Errorf("%w: the agent token does not exist",
			identity.ErrUnauthenticated)
	case err != nil:
		return identity.Caller{}, fmt.Errorf("%w: %w", identity.ErrUnavailable, err)
	}
	return identity.Caller{User: host, AgentHost: host}, nil
}

// Challenge implements identity.Challenger.
func (a tokenAuthenticator) Challenge() string {
	if c, ok := a.others.(identity.Challenger); ok {
		return c.Challenge()
	}
	return ""
}

// checkHost returns a 403 if the caller is an agent with a token of another host than `host`.
func checkHost(ctx context.Context, host string) error {
	if agent := identity.From(ctx).AgentHost; agent != "" && agent != host {
		return osapi.Fault(
			http.StatusForbidden, "",
			"The token belongs to the host '%s', so its agents may not report for the host '%s'.",
			agent, host,
		)
	}
	return nil
}

// checkReport returns a 403 for a report that an agent with a token of its host may not send: a report for
// another host, or a report that changes what a port waits for.
func checkReport(ctx context.Context, r report) error {
	for _, f := range []struct{ name, value string }{{"entity", r.Entity}, {"host", r.Host}, {"owner", r.Owner}} {
		if !network.IsSingleLine(f.value) {
			return badRequest("Invalid input: the '%s' of a report contains a control character.", f.name)
		}
	}
	if err := checkHost(ctx, r.Host); err != nil {
		return err
	}
	if identity.From(ctx).AgentHost != "" &&
		(r.Event == network.ReportBlock || r.Event == network.ReportUnblock) {
		return osapi.Fault(http.StatusForbidden, "",
			"An agent with a token of its host may not send the event '%s'.", r.Event)
	}
	return nil
}
