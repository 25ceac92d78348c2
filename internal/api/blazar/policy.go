package blazar

import (
	"context"
	"net/http"
	"slices"

	"berth/internal/identity"
	"berth/internal/identity/policy"
	"berth/internal/lease"
)

// Policy contains the policy rules of Blazar's operations with their defaults. By default a reader reads the
// leases of the reader's project, a member writes them, and only administrators manage the resources. The
// role service allows nothing.
var Policy = rules()

const (
	projectReader = "rule:project_reader_or_admin"
	projectMember = "rule:project_member_or_admin"
)

// exceptions maps each operation that is not only for administrators to its default rule.
var exceptions = map[string]string{
	"leases:get":      projectReader,
	"leases:post":     projectMember,
	"leases:put":      projectMember,
	"leases:delete":   projectMember,
	"floatingips:get": projectReader,
}

func rules() []policy.Default {
	all := []policy.Default{
		{Name: "admin", Check: "role:admin"},
		{Name: "project_reader_api", Check: "(role:reader or role:member) and project_id:%(project_id)s"},
		{Name: "project_member_api", Check: "role:member and project_id:%(project_id)s"},
		{Name: "project_reader_or_admin", Check: "rule:project_reader_api or rule:admin"},
		{Name: "project_member_or_admin", Check: "rule:project_member_api or rule:admin"},
	}
	position := map[string]int{}
	for _, e := range (&handler{}).endpoints() {
		name, operation := ruleName(e.rule), e.method+" "+e.path
		if i, known := position[name]; known {
			all[i].Guards = append(all[i].Guards, operation)
			continue
		}
		position[name] = len(all)
		check := "rule:admin"
		if other, ok := exceptions[e.rule]; ok {
			check = other
		}
		all = append(all, policy.Default{
			Name:       name,
			Check:      check,
			Guards:     []string{operation},
			Attributes: []string{"project_id", "user_id"},
		})
	}
	return all
}

func ruleName(rule string) string { return "blazar:" + rule }

// access decides what the caller of one request may do.
type access struct {
	rules  *policy.Rules
	caller identity.Caller
}

type accessKey struct{}

// withAccess returns the request with the rules that decide it.
func (b *handler) withAccess(r *http.Request) (*http.Request, access) {
	a := access{b.Policy.Rules(), identity.From(r.Context())}
	return r.WithContext(context.WithValue(r.Context(), accessKey{}, a)), a
}

// accessOf returns the access of a request of withAccess.
func accessOf(r *http.Request) access { return r.Context().Value(accessKey{}).(access) }

// mayCall decides a rule before the handler runs. The target of an operation on leases is unknown at this
// time; mayCall refuses only those callers whom the rule refuses for every lease. The target of all other
// operations is the caller's own project.
func (a access) mayCall(e endpoint) bool {
	target := policy.Target{"project_id": a.caller.Project, "user_id": a.caller.User}
	if e.onLease {
		target = nil
	}
	return a.rules.DecideEarly(ruleName(e.rule), a.caller, target) != policy.Denied
}

// allows decides a rule for a lease.
func (a access) allows(rule string, l lease.Lease) bool {
	target := policy.Target{"project_id": l.Project, "user_id": l.User}
	return a.rules.Decide(ruleName(rule), a.caller, target) == policy.Allowed
}

// seesHosts reports whether the caller may see hosts.
func (a access) seesHosts() bool { return a.mayCall(endpoint{rule: "oshosts:get"}) }

// redact returns the lease for the caller: without the IDs, names and owners of those blockers that the
// caller may not see, and, if the caller may not see hosts, without the hosts of the blockers and the errors
// of calls to other services.
func (a access) redact(l lease.Lease) lease.Lease {
	l.Blockers = slices.Clone(l.Blockers)
	seesHosts := a.seesHosts()
	for i, b := range l.Blockers {
		if !a.allows("leases:get", lease.Lease{Project: b.Project, User: b.User}) {
			b = b.Anonymous()
		}
		if !seesHosts {
			b = b.WithoutHost()
		}
		l.Blockers[i] = b
	}
	if seesHosts {
		return l
	}
	l.Reservations = slices.Clone(l.Reservations)
	for i, r := range l.Reservations {
		l.Reservations[i] = r.WithoutCallErrors()
	}
	return l
}

// leaseFilter returns the filter for the leases that the caller may see. The result check is true if the
// filter selects leases for which the rule can still refuse the caller; the default rules never need the
// check.
func (a access) leaseFilter() (f lease.Filter, check bool) {
	name := ruleName("leases:get")
	outside := policy.Target{"project_id": policy.Unlike(a.caller.Project)}
	if a.caller.Project == "" || a.rules.DecideEarly(name, a.caller, outside) != policy.Denied {
		return f, a.rules.DecideEarly(name, a.caller, nil) != policy.Allowed
	}
	f.Project = a.caller.Project
	return f, a.rules.Overridden(name)
}
