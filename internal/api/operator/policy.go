package operator

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/identity"
	"berth/internal/identity/policy"
)

// maxPolicyItems is the maximum number of roles, and of attributes of the target, in one question.
const maxPolicyItems = 100

// policies handles the requests about the policy rules. It maps the name of each API that decides with rules
// to the rules of this API.
type policies struct {
	byAPI    map[string]*policy.Policy
	identity identity.Authenticator
}

// policyRule is the JSON format of a rule.
type policyRule struct {
	API      string   `json:"api"`
	Name     string   `json:"name"`
	Check    string   `json:"check"`
	Default  *string  `json:"default"` // null for a rule that only the policy file defines
	FromFile bool     `json:"from_file"`
	Guards   []string `json:"guards"`
}

// list lists the rules in force.
func (p policies) list(*http.Request) (int, any, error) {
	rules := []policyRule{}
	for _, api := range slices.Sorted(maps.Keys(p.byAPI)) {
		for _, e := range p.byAPI[api].Entries() {
			rule := policyRule{
				API:      api,
				Name:     e.Name,
				Check:    e.Present,
				FromFile: e.FromFile,
				Guards:   append([]string{}, e.Guards...),
			}
			if !e.OnlyInFile {
				rule.Default = &e.Check
			}
			rules = append(rules, rule)
		}
	}
	return http.StatusOK, map[string]any{"rules": rules}, nil
}

// policyQuestion is the body of a request that asks for the decision of a rule. The caller is the owner of
// Token, or has the other attributes.
type policyQuestion struct {
	API     string         `json:"api"`
	Rule    string         `json:"rule"`
	Target  map[string]any `json:"target"`
	Token   string         `json:"token"`
	User    string         `json:"user"`
	Project string         `json:"project"`
	Roles   []string       `json:"roles"`
	System  bool           `json:"system"`
}

// policyAnswer is the JSON format of a decision.
type policyAnswer struct {
	API         string             `json:"api"`
	Rule        string             `json:"rule"`
	Allowed     bool               `json:"allowed"`
	Caller      policyCaller       `json:"caller"`
	Explanation policy.Explanation `json:"explanation"`
}

type policyCaller struct {
	User    string   `json:"user"`
	Project string   `json:"project"`
	Roles   []string `json:"roles"`
	System  bool     `json:"system"`
}

// check decides a rule for a caller and a target, and explains the decision.
func (p policies) check(r *http.Request) (int, any, error) {
	var q policyQuestion
	if err := osapi.Decode(r, &q); err != nil {
		return 0, nil, err
	}
	for name, length := range map[string]int{"roles": len(q.Roles), "target": len(q.Target)} {
		if length > maxPolicyItems {
			return 0, nil, osapi.Fault(http.StatusBadRequest, "", "'%s' must have at most %d items.",
				name, maxPolicyItems)
		}
	}
	rules, known := p.byAPI[q.API]
	if !known {
		return 0, nil, osapi.Fault(http.StatusBadRequest, "",
			"No API with the name '%s' has policy rules.", q.API)
	}
	for name, value := range q.Target {
		switch value.(type) {
		case nil, string, bool, float64:
		default:
			return 0, nil, osapi.Fault(http.StatusBadRequest, "", "The attribute '%s' of the target is neither a string, a number, a boolean nor null.", name)
		}
	}
	caller, err := p.caller(r, q)
	if err != nil {
		return 0, nil, err
	}
	e, known := rules.Explain(q.Rule, caller, withTenants(q.Target))
	if !known {
		return 0, nil, osapi.Fault(http.StatusNotFound, "", "The API %s has no policy rule '%s'.",
			q.API, q.Rule)
	}
	return http.StatusOK, policyAnswer{q.API, q.Rule, e.Allowed,
		policyCaller{caller.User, caller.Project, append([]string{}, caller.Roles...), caller.System}, e}, nil
}

// withTenants returns the target in which each project_id also has Neutron's older name tenant_id, and each
// tenant_id the name project_id.
func withTenants(target map[string]any) policy.Target {
	full := maps.Clone(target)
	for name, value := range target {
		for from, to := range map[string]string{"project_id": "tenant_id", "tenant_id": "project_id"} {
			prefix, found := strings.CutSuffix(name, from)
			if _, given := target[prefix+to]; found && !given {
				full[prefix+to] = value
			}
		}
	}
	return full
}

// caller returns the caller for whom the rule is decided.
func (p policies) caller(r *http.Request, q policyQuestion) (identity.Caller, error) {
	if q.Token == "" {
		return identity.Caller{
			User:    q.User,
			Project: q.Project,
			Roles:   q.Roles,
			System:  q.System,
		}, nil
	}
	if q.User != "" || q.Project != "" || q.System || len(q.Roles) > 0 {
		return identity.Caller{}, osapi.Fault(http.StatusBadRequest, "",
			"A token has its own user, project, roles and scope; leave them out.")
	}
	subject := r.Clone(r.Context())
	subject.Header = http.Header{"X-Auth-Token": {q.Token}}
	caller, err := p.identity.Authenticate(subject)
	if errors.Is(err, identity.ErrUnauthenticated) {
		return caller, osapi.Fault(http.StatusBadRequest, "", "The token of the caller is not valid.")
	}
	return caller, err
}
