// Package operator is the API for administrators at /operator/v1. It has functions that the other APIs do not
// have: the history of generations (who changed the generation of a provider or consumer), the migration of
// consumers without a project and user, the results of comparing the rows of the database with Temporal and
// with the controller, what waits and for whom, the objects that are overdue, the notes of the outbox that
// berth has not delivered to Temporal, the provisioning blocks of ports and trunks, the tokens and public
// keys of agents, the virtual hosts of RabbitMQ that agents use, the decisions of policy rules, and the audit
// log.
package operator

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/inventory"
	"berth/internal/store/agentstore"
	"berth/internal/store/auditstore"
	"berth/internal/store/inventorystore"
	"berth/internal/store/mirrorstore"
	"berth/internal/store/outbox"
	"berth/internal/store/portstore"
	"berth/internal/store/reportstore"
)

// Options contains the dependencies of the API.
type Options struct {
	Inventory *inventorystore.Store
	Network   *portstore.Store
	Agents    *agentstore.Store
	Outbox    *outbox.Store
	Mirror    *mirrorstore.Store
	Audit     *auditstore.Store
	Report    *reportstore.Store
	Identity  identity.Authenticator
	// the rules of each API that decides with rules, by the name of the API
	Policies map[string]*policy.Policy
	// Incomplete is the project and user that consumers without a project and user get from the migration of
	// consumers.
	Incomplete inventory.Owner
}

// New returns the API.
func New(o Options) *osapi.API {
	s, c, undelivered := o.Inventory, consumers{o.Inventory, o.Incomplete}, notes{o.Outbox}
	access := policies{o.Policies, o.Identity}
	b, tokens, keys := blocks{
		o.Network,
	}, agentCredentials{
		o.Agents,
		agentstore.Token,
	}, agentCredentials{
		o.Agents,
		agentstore.Key,
	}
	return &osapi.API{
		Prefix:   "/operator/v1",
		Identity: o.Identity,
		Reserved: true,
		Fail:     osapi.WriteError,
		Before:   osapi.RequireJSON,
		Routes: slices.Concat([]osapi.Route{
			{
				Method: http.MethodGet,
				Path:   "/consumers/{uuid}/history",
				Handle: osapi.AdminOnly(history(s.ConsumerHistory)),
			},
			{
				Method: http.MethodGet,
				Path:   "/providers/{uuid}/history",
				Handle: osapi.AdminOnly(history(s.ProviderHistory)),
			},
			{
				Method:     http.MethodPost,
				Path:       "/consumers/migrate",
				Handle:     osapi.AdminOnly(c.migrate),
				Repeatable: true,
			},
			{
				Method: http.MethodGet,
				Path:   "/projections",
				Handle: osapi.AdminOnly(projections(o.Outbox, o.Mirror)),
			},
			{Method: http.MethodGet, Path: "/overdue", Handle: osapi.AdminOnly(overdue(o.Report))},
			{Method: http.MethodGet, Path: "/waiting", Handle: osapi.AdminOnly(waiting{o.Report}.groups)},
			{
				Method: http.MethodGet,
				Path:   "/waiting/{party}",
				Handle: osapi.AdminOnly(waiting{o.Report}.objects),
			},
			{Method: http.MethodGet, Path: "/notes", Handle: osapi.AdminOnly(undelivered.list)},
			{Method: http.MethodPost, Path: "/notes/retry", Handle: osapi.AdminOnly(undelivered.retry)},
			{Method: http.MethodGet, Path: "/blocks/{type}/{id}", Handle: osapi.AdminOnly(b.list)},
			{
				Method:     http.MethodPut,
				Path:       "/blocks/{type}/{id}/{entity}",
				Handle:     osapi.AdminOnly(b.add),
				Repeatable: true,
			},
			{
				Method: http.MethodDelete,
				Path:   "/blocks/{type}/{id}/{entity}",
				Handle: osapi.AdminOnly(b.remove),
			},
			{
				Method:     http.MethodPost,
				Path:       "/blocks/{type}/{id}/{entity}/complete",
				Handle:     osapi.AdminOnly(b.complete),
				Repeatable: true,
			},
			{Method: http.MethodGet, Path: "/policy/rules", Handle: osapi.AdminOnly(access.list)},
			{
				Method:     http.MethodPost,
				Path:       "/policy/check",
				Handle:     osapi.AdminOnly(access.check),
				Repeatable: true,
			},
		},
			tokens.routes("/agent-tokens", tokens.createToken),
			keys.routes("/agent-keys", keys.addKey),
			agentVirtualHosts{o.Agents}.routes("/agent-vhosts"),
			auditRecords{o.Audit}.routes(),
		),
	}
}

// positiveNumbers reads query parameters that must be positive integers. positiveNumbers returns an error if
// the query contains a parameter whose name is not in `defaults`.
func positiveNumbers(query string, defaults map[string]int64) (map[string]int64, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, osapi.Fault(http.StatusBadRequest, "", "The query string is malformed.")
	}
	for name, given := range values {
		_, known := defaults[name]
		n, err := strconv.ParseUint(given[0], 10, 63)
		switch {
		case !known:
			return nil, osapi.Fault(http.StatusBadRequest, "", "Unknown query parameter '%s'.", name)
		case len(given) > 1:
			return nil, osapi.Fault(http.StatusBadRequest, "", "The query names '%s' more than once.", name)
		case err != nil || n == 0:
			return nil, osapi.Fault(http.StatusBadRequest, "", "'%s' is not a valid value of '%s'.",
				given[0], name)
		}
		defaults[name] = int64(n)
	}
	return defaults, nil
}
