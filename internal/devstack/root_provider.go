package devstack

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// RootProviders reads the names of Placement's root providers from berth's database, which has the given URL.
// The stubs of Nova have a hypervisor for each root provider.
func RootProviders(ctx context.Context, database string) ([]string, error) {
	c, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	rows, err := c.Query(ctx, `select name from provider where parent_id is null`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
