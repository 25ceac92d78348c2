package policy_test

import (
	"testing"

	"berth/internal/identity"
	"berth/internal/identity/policy"
)

func TestDecideEarly_KnowsThatAProjectDiffersFromTheCallers(t *testing.T) {
	t.Parallel()
	caller := identity.Caller{User: "ann", Project: "demo", Roles: []string{"member"}}
	target := policy.Target{"project_id": policy.Unlike("demo")}
	for check, want := range map[string]policy.Decision{
		"project_id:%(project_id)s":                 policy.Denied,
		"not project_id:%(project_id)s":             policy.Allowed,
		"role:member and project_id:%(project_id)s": policy.Denied,
		"'demo':%(project_id)s":                     policy.Denied,
		"'other':%(project_id)s":                    policy.Depends,
		"user_id:%(project_id)s":                    policy.Depends,
		"project_id:x%(project_id)s":                policy.Depends,
		"user_id:%(user_id)s":                       policy.Depends,
		"field:leases:project_id=other":             policy.Depends,
		"role:%(project_id)s":                       policy.Depends,
		"@":                                         policy.Allowed,
	} {
		t.Run(check, func(t *testing.T) {
			t.Parallel()
			rules, err := policy.Open(policy.Options{}, policy.Default{Name: "get", Check: check})
			if err != nil {
				t.Fatal(err)
			}
			if got := rules.Rules().DecideEarly("get", caller, target); got != want {
				t.Errorf("decide %q for an object of another project: got %d, want %d", check, got, want)
			}
		})
	}
}
