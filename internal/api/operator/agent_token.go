package operator

import (
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/store/agentstore"
	"berth/internal/store/db"
)

// maxHost is the maximum length of a host's name, in bytes.
const maxHost = 255

// adminRoleOnly refuses callers without the role admin. The role service does not suffice, because with the tokens of other hosts a service
// could report as every agent after its own credentials have been withdrawn.
func adminRoleOnly(next osapi.Handler) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		if !identity.From(r.Context()).Has("admin") {
			return 0, nil, osapi.Fault(http.StatusForbidden, "", "Only callers with the role admin may handle the tokens of agents.")
		}
		return next(r)
	}
}

// agentTokens handles the requests about the tokens with which the agents of a host use the agents' HTTP gateway.
type agentTokens struct{ store *agentstore.Store }

// agentToken is the JSON format of a token. Token is empty except in the answer to the request that created the token.
type agentToken struct {
	ID         string    `json:"id"`
	Host       string    `json:"host"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedOn *string   `json:"last_used_on"` // a day in UTC, such as 2030-01-31
	Token      string    `json:"token,omitempty"`
}

func viewToken(c agentstore.Credential) agentToken {
	v := agentToken{ID: c.ID.String(), Host: c.Host, CreatedAt: c.CreatedAt}
	if c.UsedOn != nil {
		day := c.UsedOn.Format(time.DateOnly)
		v.LastUsedOn = &day
	}
	return v
}

// list lists the tokens, with ?host=HOST only those of one host.
func (a agentTokens) list(r *http.Request) (int, any, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "The query string is malformed.")
	}
	for name, values := range query {
		if name != "host" || len(values) > 1 {
			return 0, nil, osapi.Fault(http.StatusBadRequest, "", "The query may only contain 'host', once.")
		}
	}
	found, err := a.store.Tokens(r.Context(), query.Get("host"))
	if err != nil {
		return 0, nil, err
	}
	tokens := make([]agentToken, len(found))
	for i, c := range found {
		tokens[i] = viewToken(c)
	}
	return http.StatusOK, map[string]any{"agent_tokens": tokens}, nil
}

// create creates a token. Only the answer to this request contains the token.
func (a agentTokens) create(r *http.Request) (int, any, error) {
	var body struct {
		Host string `json:"host"`
	}
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	if body.Host == "" || len(body.Host) > maxHost {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "", "'host' must have 1 to %d bytes.", maxHost)
	}
	c, token, err := a.store.CreateToken(r.Context(), body.Host)
	if err != nil {
		return 0, nil, err
	}
	osapi.Header(r.Context()).Set("Cache-Control", "no-store")
	slog.InfoContext(r.Context(), "Agent token created", "host", c.Host, "token_id", c.ID, "actor", db.Actor(r.Context()), "request_id", osapi.RequestID(r.Context()))
	v := viewToken(c)
	v.Token = token
	return http.StatusCreated, v, nil
}

// revoke deletes a token.
func (a agentTokens) revoke(r *http.Request) (int, any, error) {
	id, ok := osapi.UUID(r.PathValue("id"))
	if !ok {
		return 0, nil, osapi.Fault(http.StatusNotFound, "", "'%s' is not the ID of an agent token.", r.PathValue("id"))
	}
	host, err := a.store.RevokeToken(r.Context(), id)
	if err != nil {
		return 0, nil, err
	}
	slog.InfoContext(r.Context(), "Agent token revoked", "host", host, "token_id", id, "actor", db.Actor(r.Context()), "request_id", osapi.RequestID(r.Context()))
	return http.StatusNoContent, nil, nil
}
