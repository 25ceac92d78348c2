package diagnosis

import (
	"context"
	"fmt"
	"strings"

	"berth/internal/store/db"
	"berth/starter/cli"
)

// checkRoles warns if other roles of the database can run code with the rights of berth's role.
func checkRoles(ctx context.Context, s *cli.Session) (string, error) {
	if s.DatabaseURL == "" {
		return "", fmt.Errorf("%w: BERTH_DATABASE_URL is not set", errNotConfigured)
	}
	untrusted, err := db.UntrustedRoles(ctx, s.DatabaseURL)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: the check database shows what is wrong with the database", errNotConfigured)
	case len(untrusted) > 0:
		return "", fmt.Errorf(
			"%w: can create or own objects beside berth's tables, and so can run code with berth's rights: %s; revoke create on berth's schema from them, and drop their objects",
			errWarning, strings.Join(untrusted, ", "),
		)
	default:
		return "only berth's role and the owner of the database create objects in berth's schema", nil
	}
}
