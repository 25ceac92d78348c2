package operator

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"berth/internal/api/osapi"
	"berth/internal/contract"
	"berth/internal/identity"
	"berth/internal/store/agentstore"
	"berth/internal/store/db"
)

// maxHost is the maximum length of the name of a host, of a virtual host or of a type of agents, in bytes.
const maxHost = 255

// adminRoleOnly refuses callers without the role admin. The role service does not suffice: a service that
// could create credentials for any host could still report as any agent after the service's own credentials
// have been withdrawn.
func adminRoleOnly(next osapi.Handler) osapi.Handler {
	return func(r *http.Request) (int, any, error) {
		if !identity.From(r.Context()).Has("admin") {
			return 0, nil, osapi.Fault(http.StatusForbidden, "",
				"Only callers with the role admin may handle the credentials of agents.")
		}
		return next(r)
	}
}

// agentCredentials handles the requests about the credentials of one kind: tokens, with which the agents of a
// host use the HTTP gateway, or public keys, which verify the reports that the agents of a host send to
// workflows.
type agentCredentials struct {
	store *agentstore.Store
	kind  agentstore.Kind
}

// routes returns the routes below the path of the credentials.
func (a agentCredentials) routes(path string, create osapi.Handler) []osapi.Route {
	return []osapi.Route{
		{Method: http.MethodGet, Path: path, Handle: adminRoleOnly(a.list)},
		{Method: http.MethodPost, Path: path, Handle: adminRoleOnly(create)},
		{Method: http.MethodDelete, Path: path + "/{id}", Handle: adminRoleOnly(a.revoke)},
	}
}

// agentCredential is the JSON format of a credential. Token is empty except in the answer to the request that
// created the token.
type agentCredential struct {
	ID        string    `json:"id"`
	Host      string    `json:"host"`
	CreatedAt time.Time `json:"created_at"`
	// a day in UTC, such as 2030-01-31; only for tokens that were used
	LastUsedOn *string `json:"last_used_on,omitempty"`
	Token      string  `json:"token,omitempty"`
}

func viewCredential(c agentstore.Credential) agentCredential {
	v := agentCredential{ID: c.ID.String(), Host: c.Host, CreatedAt: c.CreatedAt}
	if c.UsedOn != nil {
		day := c.UsedOn.Format(time.DateOnly)
		v.LastUsedOn = &day
	}
	return v
}

// list lists the credentials. The query ?host=HOST selects the credentials of one host.
func (a agentCredentials) list(r *http.Request) (int, any, error) {
	host, err := hostQuery(r)
	if err != nil {
		return 0, nil, err
	}
	found, err := a.store.List(r.Context(), a.kind, host)
	if err != nil {
		return 0, nil, err
	}
	credentials := make([]agentCredential, len(found))
	for i, c := range found {
		credentials[i] = viewCredential(c)
	}
	return http.StatusOK, map[string]any{"agent_" + string(a.kind) + "s": credentials}, nil
}

// hostQuery returns the host of the query ?host=HOST, or "" without a query. hostQuery returns a 400 for any
// other query.
func hostQuery(r *http.Request) (string, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", osapi.Fault(http.StatusBadRequest, "", "The query string is malformed.")
	}
	for name, values := range query {
		if name != "host" || len(values) > 1 {
			return "", osapi.Fault(http.StatusBadRequest, "", "The query may only contain 'host', once.")
		}
	}
	return query.Get("host"), nil
}

// tokenBody is the JSON format of a request that creates a token.
type tokenBody struct {
	Host string `json:"host"`
}

// keyBody is the JSON format of a request that registers a public key.
type keyBody struct {
	Host      string `json:"host"`
	PublicKey string `json:"public_key"`
}

// createToken creates a token. Only the answer to this request contains the token.
func (a agentCredentials) createToken(r *http.Request) (int, any, error) {
	var body tokenBody
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	if err := checkHost(body.Host); err != nil {
		return 0, nil, err
	}
	c, token, err := a.store.CreateToken(r.Context(), body.Host)
	if err != nil {
		return 0, nil, err
	}
	a.logChange(r.Context(), "Agent credential created", c.ID.String(), c.Host)
	osapi.Header(r.Context()).Set("Cache-Control", "no-store")
	v := viewCredential(c)
	v.Token = token
	return http.StatusCreated, v, nil
}

// addKey registers a public key.
func (a agentCredentials) addKey(r *http.Request) (int, any, error) {
	var body keyBody
	if err := osapi.Decode(r, &body); err != nil {
		return 0, nil, err
	}
	if err := checkHost(body.Host); err != nil {
		return 0, nil, err
	}
	key, ok := parsePublicKey(body.PublicKey)
	if !ok {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "",
			"'public_key' must be an Ed25519 public key in the PEM format (BEGIN PUBLIC KEY).")
	}
	if contract.IsLowOrder(key) {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "",
			"'public_key' is a point of low order: no private key belongs to it, and berth accepts no report signed with it. Make a new pair of keys.")
	}
	c, err := a.store.AddKey(r.Context(), body.Host, key)
	if err != nil {
		return 0, nil, err
	}
	a.logChange(r.Context(), "Agent credential created", c.ID.String(), c.Host)
	return http.StatusCreated, viewCredential(c), nil
}

// parsePublicKey parses an Ed25519 public key as `openssl pkey -pubout` writes it.
func parsePublicKey(text string) (key ed25519.PublicKey, ok bool) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, false
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	key, ok = parsed.(ed25519.PublicKey)
	return key, ok && err == nil
}

func checkHost(host string) error { return checkName("host", host) }

// checkName returns a 400 for a text that is no name of a host, of a virtual host or of a type of agents.
func checkName(field, text string) error {
	if text == "" || len(text) > maxHost || strings.ContainsFunc(text, unicode.IsControl) {
		return osapi.Fault(http.StatusBadRequest, "",
			"'%s' must have 1 to %d bytes and no control characters.", field, maxHost)
	}
	return nil
}

// revoke deletes a credential.
func (a agentCredentials) revoke(r *http.Request) (int, any, error) {
	id, ok := osapi.UUID(r.PathValue("id"))
	if !ok {
		return 0, nil, osapi.Fault(http.StatusNotFound, "", "'%s' is not the ID of a %s of agents.",
			r.PathValue("id"), a.kind)
	}
	host, err := a.store.Revoke(r.Context(), a.kind, id)
	if err != nil {
		return 0, nil, err
	}
	a.logChange(r.Context(), "Agent credential revoked", id.String(), host)
	return http.StatusNoContent, nil, nil
}

func (a agentCredentials) logChange(ctx context.Context, event, id, host string) {
	slog.InfoContext(ctx, event, "kind", string(a.kind), "id", id, "host", host, "actor", db.Actor(ctx))
}
