package placement

import (
	"net/http"

	"berth/internal/identity"
	"berth/internal/identity/policy"
)

// Policy contains the policy rules of Placement's operations with their defaults. By default an operation is
// allowed for administrators and services with a project-scoped token. Older releases of Placement allowed
// operations only for administrators.
var Policy = rules()

// exceptions maps each operation whose default rule is not the one for administrators and services to its own
// default rule.
var exceptions = map[string]string{
	"placement:reshaper:reshape": "rule:service_api",
	"placement:usages":           "rule:admin_or_project_reader_or_service_api",
}

func rules() []policy.Default {
	all := []policy.Default{
		{Name: "admin_api", Check: "role:admin"},
		{Name: "service_api", Check: "role:service"},
		{Name: "admin_or_service_api", Check: "rule:admin_api or rule:service_api"},
		{Name: "project_reader_api", Check: "role:reader and project_id:%(project_id)s"},
		{
			Name:  "admin_or_project_reader_or_service_api",
			Check: "rule:admin_or_service_api or rule:project_reader_api",
		},
	}
	position := map[string]int{}
	for _, e := range endpoints {
		name, operation := ruleName(e.rule), e.method+" "+e.path
		if i, known := position[name]; known {
			all[i].Guards = append(all[i].Guards, operation)
			continue
		}
		position[name] = len(all)
		check := "rule:admin_or_service_api"
		if other, ok := exceptions[name]; ok {
			check = other
		}
		all = append(all, policy.Default{
			Name:       name,
			Check:      check,
			Old:        "rule:admin_api",
			Scopes:     []policy.Scope{policy.Project},
			Guards:     []string{operation},
			Attributes: []string{"project_id", "user_id"},
		})
	}
	return all
}

func ruleName(rule string) string { return "placement:" + rule }

// allowed checks whether the policy allows the request. If the request asks for the usages of a project, this
// project is the target of the policy rule. For all other requests, the caller's own project is the target of
// the policy rule.
func (h *handler) allowed(c *call, rule string) error {
	caller := identity.From(c.Context())
	target := policy.Target{"project_id": caller.Project, "user_id": caller.User}
	if rule == "usages" {
		target["project_id"] = last(c.URL.Query()["project_id"])
	}
	if h.policy.Allows(ruleName(rule), caller, target) {
		return nil
	}
	return fault(http.StatusForbidden, "Policy does not allow %s to be performed.", ruleName(rule))
}
