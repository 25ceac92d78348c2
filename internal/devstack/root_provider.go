package devstack

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// RootProviders returns the names of the root providers in Placement, from berth's database with the given URL. Stubs of Nova have a
// hypervisor for each of them.
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
