// Package neutron implements the OpenStack Networking API v2.0: the paths, the JSON formats and the errors of
// the API. Package neutron does not contain the rules for networks, ports and other resources, because these
// rules are in internal/network and internal/store.
package neutron

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/portstore"
)

const prefix = "/networking"

// New returns the Networking API, which reads and writes the given store, with the default policy rules.
func New(s *portstore.Store, id identity.Authenticator) *osapi.API {
	return NewWithPolicy(s, id, policy.MustOpen(Policy...))
}

// NewWithPolicy returns the Networking API with the given policy rules, which must have the defaults in
// Policy.
func NewWithPolicy(s *portstore.Store, id identity.Authenticator, rules *policy.Policy) *osapi.API {
	a := agents{s}
	routes := slices.Concat(
		discovery(),
		networks(s).routes(),
		subnets(s).routes(),
		ports(s).routes(),
		trunks(s).routes(),
		securityGroups(s).routes(),
		securityRules(s).routes(),
		quotas{s}.routes(),
		networks(s).tagRoutes(),
		subnets(s).tagRoutes(),
		ports(s).tagRoutes(),
		trunks(s).tagRoutes(),
		securityGroups(s).tagRoutes(),
		trunkSubports{s}.routes(),
		ipAvailability{s}.routes(),
		availabilityZones{s}.routes(),
		bindings{s}.routes(),
		a.routes(),
	)
	for i, r := range routes {
		routes[i].Handle = guard(r, rules)
	}
	return &osapi.API{
		Prefix:   prefix,
		Identity: id,
		Routes:   withSuffix(routes),
		Fail:     fail,
	}
}

// withSuffix supports the suffix ".json", which old clients send. If the path of a route does not end in a
// parameter, withSuffix adds the route a second time with the suffix ".json". A path that ends in a parameter
// needs no second route, because pathValue removes the suffix ".json" from the parameter's value.
func withSuffix(routes []osapi.Route) (all []osapi.Route) {
	for _, r := range routes {
		all = append(all, r)
		if last := r.Path[strings.LastIndex(r.Path, "/")+1:]; last != "" && !strings.HasPrefix(last, "{") {
			r.Path += ".json"
			all = append(all, r)
		}
	}
	return all
}

// pathValue returns a parameter of the request's path without the suffix ".json".
func pathValue(r *http.Request, name string) string {
	return strings.TrimSuffix(r.PathValue(name), ".json")
}

// toAPIError converts each fault of internal/network to the HTTP error that Neutron returns in the same case.
func toAPIError(err error) error {
	var complete attribute.CompleteError
	if errors.As(err, &complete) {
		return badRequest("%s", string(complete))
	}
	var f *network.Fault
	if !errors.As(err, &f) {
		return err
	}
	status := http.StatusConflict
	switch f.Kind {
	case network.InvalidInput,
		network.BadRequest,
		network.OutOfBoundsPool,
		network.InvalidPool,
		network.TooManyDNS,
		network.TooManyRoutes,
		network.InvalidIPForNetwork,
		network.InvalidIPForSubnet,
		network.AllocationOnAutoAddressSubnet,
		network.AddressPairWithoutIP,
		network.AddressPairsExhausted,
		network.DuplicateAddressPair,
		network.SegmentsAndProvider,
		network.GroupsNeedPortSecurity,
		network.RuleProtocol,
		network.RuleEtherType,
		network.RuleNoEtherType,
		network.RuleCIDR,
		network.RuleRemotes,
		network.RuleConflict,
		network.RuleNeedsProtocol,
		network.RuleNoPorts,
		network.RulePorts,
		network.RulePort,
		network.RuleICMPType,
		network.RuleICMPValue,
		network.QuotaTooLow,
		network.InvalidServiceType,
		network.ServiceTypeNoText:
		status = http.StatusBadRequest
	case network.NetworkNotFound,
		network.SubnetNotFound,
		network.PortNotFound,
		network.AgentNotFound,
		network.InvalidDHCPAgent,
		network.QuotaNotFound,
		network.SecurityGroupNotFound,
		network.RuleNotFound,
		network.BindingNotFound,
		network.TrunkNotFound,
		network.SubportNotFound,
		network.AvailabilityZoneNotFound:
		status = http.StatusNotFound
	case network.NoNetworkAvailable:
		status = http.StatusServiceUnavailable
	case network.RevisionMismatch:
		status = http.StatusPreconditionFailed
	}
	return osapi.Fault(status, string(f.Kind), "%s", f.Message)
}

// defaultErrorTypes maps an HTTP status to the error type that a response gets if the error itself has no
// type.
var defaultErrorTypes = map[int]string{
	http.StatusBadRequest:            "HTTPBadRequest",
	http.StatusUnauthorized:          "HTTPUnauthorized",
	http.StatusForbidden:             "PolicyNotAuthorized",
	http.StatusNotFound:              "HTTPNotFound",
	http.StatusMethodNotAllowed:      "HTTPMethodNotAllowed",
	http.StatusConflict:              "HTTPConflict",
	http.StatusPreconditionFailed:    "HTTPPreconditionFailed",
	http.StatusRequestEntityTooLarge: "HTTPRequestEntityTooLarge",
	http.StatusTooManyRequests:       "HTTPTooManyRequests",
	http.StatusServiceUnavailable:    "HTTPServiceUnavailable",
}

type failure struct {
	Error failureDetail `json:"NeutronError"`
}

type failureDetail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Detail  string `json:"detail"`
}

func fail(w http.ResponseWriter, _ *http.Request, e *osapi.Error) {
	typ := e.Type
	if typ == "" {
		typ = defaultErrorTypes[e.Status]
	}
	if typ == "" {
		typ = "HTTPInternalServerError"
	}
	osapi.WriteJSON(w, e.Status, failure{failureDetail{Type: typ, Message: e.Message}})
}

// badRequest returns the error for a request that cannot be read.
func badRequest(format string, args ...any) error {
	return osapi.Fault(http.StatusBadRequest, "", format, args...)
}

// forbidden returns the error for a request that the policy rule denies to the caller.
func forbidden(rule string) error {
	return osapi.Fault(http.StatusForbidden, "", "rule:%s is disallowed by policy", rule)
}

// roleAllows reports whether the caller gets 404, or an empty list, for an object that the caller does not
// see. Other callers get 403, because their roles allow no request with the HTTP method.
func roleAllows(c identity.Caller, method string) bool {
	return c.Admin() || c.Has("member") || c.Has("reader") && method == http.MethodGet
}

// caller returns the authenticated sender of the request.
func caller(r *http.Request) identity.Caller { return identity.From(r.Context()) }

// ownProject returns the project of the caller for the SQL filter of a list.
func ownProject(c identity.Caller) string {
	if c.Project == "" {
		return "\x01" // a value that no project has: the caller sees nothing
	}
	return c.Project
}
