package neutron

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/store/db"
)

// access decides what the caller of one request may do.
type access struct {
	rules  *policy.Rules
	caller identity.Caller
	early  map[string]policy.Decision // the decisions for an unknown object, by rule
	// pending has, for each object in the request's body, the rules of its attributes that depend on the
	// object.
	pending [][]string
}

func newAccess(p *policy.Policy, c identity.Caller) *access {
	return &access{rules: p.Rules(), caller: c, early: map[string]policy.Decision{}}
}

type accessKey struct{}

// accessOf returns the access of a request to a route that guard has wrapped.
func accessOf(r *http.Request) *access { return accessFrom(r.Context()) }

func accessFrom(ctx context.Context) *access { return ctx.Value(accessKey{}).(*access) }

// routeRules maps each route, as method and path, to the name of its rule.
var routeRules = func() map[string]string {
	rules := map[string]string{}
	for _, d := range Policy {
		for _, g := range d.Guards {
			if _, path, _ := strings.Cut(g, " "); strings.HasPrefix(path, "/v2.0/") &&
				!strings.Contains(path, " ") {
				rules[g] = d.Name
			}
		}
	}
	return rules
}()

// objectRoutes are the beginnings of the paths of objects that the handlers hide from a caller who may not
// see them.
var objectRoutes = []string{
	"/v2.0/networks",
	"/v2.0/subnets",
	"/v2.0/ports",
	"/v2.0/trunks",
	"/v2.0/security-group",
	"/v2.0/agents",
	"/v2.0/network-ip-availabilities",
}

// hides reports whether the handler of the route answers a caller whom the rule denies: with an empty list,
// with 404 for an object that the caller does not see, and with 403 for another object.
func hides(r osapi.Route) bool {
	scheduling := strings.Contains(r.Path, "/dhcp-")
	binding := strings.Contains(r.Path, "/bindings/") ||
		strings.HasSuffix(r.Path, "/bindings") && r.Method != http.MethodGet
	create := r.Method == http.MethodPost && !strings.Contains(r.Path, "/tags")
	return !scheduling && !binding && !create &&
		slices.ContainsFunc(objectRoutes, func(p string) bool { return strings.HasPrefix(r.Path, p) })
}

// guard returns the handler of a route with the check of the route's rule. The object of the request is
// unknown at this time; guard refuses only a caller whom the rule denies for every object.
func guard(r osapi.Route, p *policy.Policy) osapi.Handler {
	rule, hidden := routeRules[r.Method+" "+r.Path], hides(r)
	return func(req *http.Request) (int, any, error) {
		if !r.Open {
			a := newAccess(p, caller(req))
			req = req.WithContext(context.WithValue(req.Context(), accessKey{}, a))
			if a.forSome(rule) == policy.Denied && !(hidden && roleAllows(a.caller, r.Method)) {
				return 0, nil, forbidden(rule)
			}
		}
		status, body, err := r.Handle(req)
		return status, body, toAPIError(err)
	}
}

// forSome decides a rule for an unknown object: Allowed for every object, Denied for every object, or
// Depends.
func (a *access) forSome(rule string) policy.Decision {
	d, known := a.early[rule]
	if !known {
		d = a.rules.DecideEarly(rule, a.caller, nil)
		a.early[rule] = d
	}
	return d
}

// forAll reports whether the rule allows the caller every object.
func (a *access) forAll(rule string) bool { return a.forSome(rule) == policy.Allowed }

// mayChooseProject reports whether the caller may create objects of other projects.
func (a *access) mayChooseProject() bool { return a.forAll(contextIsAdmin) || a.forAll(serviceRule) }

// memberProject returns the project of a caller who is neither an administrator nor a service, and nil for
// others.
func (a *access) memberProject() *string {
	if a.mayChooseProject() {
		return nil
	}
	return &a.caller.Project
}

// require refuses the request unless all rules allow it for the target. The function addParent, if it is not
// nil, adds the attributes of the object to which the target belongs; require calls it at most once, and only
// if a decision depends on these attributes.
func (a *access) require(rules []string, target policy.Target, addParent func(policy.Target) error) error {
	for _, rule := range rules {
		decision := a.rules.DecideEarly(rule, a.caller, target)
		if decision == policy.Depends {
			if addParent != nil {
				if err := addParent(target); err != nil {
					return err
				}
				addParent = nil
			}
			decision = a.rules.Decide(rule, a.caller, target)
		}
		if decision != policy.Allowed {
			return forbidden(rule)
		}
	}
	return nil
}

// visible reports whether the caller sees an attribute of an object, according to the rule of the attribute.
func (a *access) visible(rule string, target func() policy.Target) bool {
	if d := a.forSome(rule); d != policy.Depends {
		return d == policy.Allowed
	}
	return a.rules.Decide(rule, a.caller, target()) == policy.Allowed
}

// owned returns the target for an object of the project.
func owned(project string) policy.Target {
	return policy.Target{"project_id": project, "tenant_id": project}
}

// outside returns the target for an object outside the SQL filter of the caller's project: an object whose
// attributes with these names have another project.
func outside(project string, names ...string) policy.Target {
	t := policy.Target{}
	for _, name := range append(names, "project_id", "tenant_id") {
		t[name] = policy.Unlike(project)
	}
	return t
}

func targetOfNetwork(n network.Network) policy.Target {
	t := owned(n.Project)
	t["shared"], t["router:external"] = n.Shared, n.External
	return t
}

// addNetwork adds the attributes of the network to which the object of the target belongs.
func addNetwork(t policy.Target, n network.Network) {
	t["network:project_id"], t["network:tenant_id"], t["network:shared"], t["network:router:external"] = n.Project, n.Project, n.Shared, n.External
}

// targetRule is the part of a resource that decides about its objects.
type targetRule[N any] struct {
	of func(N) policy.Target
	// an object that the SQL filter of the project does not select; nil: the store has no such filter
	outside func(project string) policy.Target
	// parent returns the ID of the object to which an object belongs, such as the network of a port; nil if
	// the rules compare nothing of it.
	parent    func(N) uuid.UUID
	addParent func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]func(policy.Target), error)
}

// complete adds the attributes of the parents to the targets of the objects.
func (t targetRule[N]) complete(ctx context.Context, objects []N, targets []policy.Target) error {
	if t.parent == nil || len(objects) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, len(objects))
	for i, n := range objects {
		ids[i] = t.parent(n)
	}
	add, err := t.addParent(ctx, ids)
	for i := range targets {
		if f := add[ids[i]]; f != nil {
			f(targets[i])
		}
	}
	return err
}

// require refuses the request unless all rules allow it for the object.
func (res resource[N, C]) require(r *http.Request, n N, rules ...string) error {
	return accessOf(r).require(rules, res.target.of(n), func(t policy.Target) error {
		return res.target.complete(r.Context(), []N{n}, []policy.Target{t})
	})
}

// permits reports whether the rule allows the request for the object.
func (res resource[N, C]) permits(r *http.Request, n N, rule string) (bool, error) {
	kept, err := res.allowed(r.Context(), rule, []N{n})
	return len(kept) == 1, err
}

// listVisible lists the objects that the caller may see. With the default rules, the SQL filter of the store
// selects them; with rules of the operator's file, listVisible decides for each object, and reads further
// objects until the page is full.
func (res resource[N, C]) listVisible(ctx context.Context, l db.Listing) ([]N, error) {
	l, each, some := res.inScope(ctx, l)
	switch {
	case !some:
		return nil, nil
	case !each:
		return res.list(ctx, l)
	default:
		return collectAllowed(ctx, res, l, func(n N) N { return n })
	}
}

// visibleIDs lists the IDs of the objects that listVisible returns, in the same order.
func (res resource[N, C]) visibleIDs(ctx context.Context, l db.Listing) ([]uuid.UUID, error) {
	l, each, some := res.inScope(ctx, l)
	switch {
	case !some:
		return nil, nil
	case !each:
		return res.ids(ctx, l)
	default:
		return collectAllowed(ctx, res, l, res.id)
	}
}

// inScope sets the project of a list request, so that the store lists only objects that the caller may see.
// If `each` is true, the rule has to decide for each of these objects in addition; if `some` is false, the
// caller may see no object.
func (res resource[N, C]) inScope(ctx context.Context, l db.Listing) (_ db.Listing, each, some bool) {
	a, rule := accessFrom(ctx), "get_"+res.singular
	switch a.forSome(rule) {
	case policy.Denied:
		return l, false, false
	case policy.Depends:
		l.Project = ownProject(a.caller)
		each = a.rules.Overridden(rule)
		outside := res.target.outside
		mayBeOutside := func() bool {
			return outside == nil || a.rules.DecideEarly(rule, a.caller, outside(a.caller.Project)) != policy.Denied
		}
		if each && mayBeOutside() {
			l.Project = ""
		}
	}
	return l, each, true
}

// collectAllowed lists the objects for which the rule allows the request, and returns the result of `pick`
// for each object. It keeps only these results, and at most maxBatch objects, whatever the limit of the
// request is.
func collectAllowed[N, C, T any](
	ctx context.Context,
	res resource[N, C],
	l db.Listing,
	pick func(N) T,
) ([]T, error) {
	limit, all := l.Limit, []T{}
	l.Limit = maxBatch
	for {
		found, err := res.list(ctx, l)
		if err != nil {
			return nil, err
		}
		allowed, err := res.allowed(ctx, "get_"+res.singular, found)
		if err != nil {
			return nil, err
		}
		kept := make([]T, len(allowed))
		for i, n := range allowed {
			kept[i] = pick(n)
		}
		if l.Reverse {
			all = append(kept, all...)
		} else {
			all = append(all, kept...)
		}
		if len(found) < l.Limit || limit > 0 && len(all) >= limit {
			return page(all, limit, l.Reverse), nil
		}
		if l.Marker = res.id(found[len(found)-1]); l.Reverse {
			l.Marker = res.id(found[0])
		}
	}
}

// maxBatch is the number of objects that collectAllowed reads at once. A port can have 200 kB.
var maxBatch = 50

// page returns the items next to the marker: the first items, or the last items of a reverse page.
func page[N any](all []N, limit int, reverse bool) []N {
	switch {
	case limit == 0 || len(all) <= limit:
		return all
	case reverse:
		return all[len(all)-limit:]
	default:
		return all[:limit]
	}
}

// allowed returns those objects for which the rule allows the request.
func (res resource[N, C]) allowed(ctx context.Context, rule string, found []N) ([]N, error) {
	a, kept, targets := accessFrom(ctx), []N{}, make([]policy.Target, len(found))
	if a.forAll(rule) {
		return found, nil
	}
	for i, n := range found {
		targets[i] = res.target.of(n)
	}
	if err := res.target.complete(ctx, found, targets); err != nil {
		return nil, err
	}
	for i, n := range found {
		if a.rules.Decide(rule, a.caller, targets[i]) == policy.Allowed {
			kept = append(kept, n)
		}
	}
	return kept, nil
}
