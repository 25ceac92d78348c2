package identity_test

import (
	"testing"

	"berth/internal/identity"
)

func TestCaller_CaseOfARoleDoesNotMatter(t *testing.T) {
	t.Parallel()
	for role, want := range map[string][2]bool{ // administrator; administrator or service
		"admin":       {true, true},
		"Admin":       {true, true},
		"SERVICE":     {false, true},
		"admin ":      {false, false},
		"project-adm": {false, false},
		"":            {false, false},
	} {
		c := identity.Caller{Roles: []string{"reader", role}}
		if got := [2]bool{c.Admin(), c.AdminOrService()}; got != want || !c.Has(role) {
			t.Errorf("role %q: got administrator and administrator or service %t, want %t", role, got, want)
		}
	}
}
