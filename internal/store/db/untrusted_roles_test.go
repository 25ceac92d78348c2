package db_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// An operator that another role has planted runs with the rights of berth's role.
func TestUntrustedRoles_FindsRolesThatCanPlantCode(t *testing.T) {
	t.Parallel()
	role := "planter_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	const plant = `set role ROLE;
		create function product(numeric, integer) returns numeric language plpgsql as $$ begin return 0; end $$;
		create operator * (leftarg = numeric, rightarg = integer, function = product);
		reset role;`
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"new database":                 {"", nil},
		"every role may create":        {"grant create on schema public to public", []string{"every role (PUBLIC)"}},
		"one role may create":          {"grant create on schema public to ROLE", []string{role}},
		"role has planted an operator": {"grant create on schema public to ROLE;" + plant + "revoke create on schema public from ROLE", []string{role}},
		"owner of the schema":          {"alter schema public owner to ROLE", nil},
	} {
		t.Run(name, func(t *testing.T) {
			url := storetest.URL(t)
			storetest.ExecScript(t, url, strings.ReplaceAll("create role ROLE;"+c.script, "ROLE", role))
			defer storetest.ExecScript(t, url, strings.ReplaceAll("drop owned by ROLE cascade; drop role ROLE", "ROLE", role))
			got, err := db.UntrustedRoles(t.Context(), url)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("untrusted roles: got %q, error %v; want %q", got, err, c.want)
			}
		})
	}
}
