package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"berth/internal/inventory"
)

// providerSelect reads whole providers.
const providerSelect = `
	select p.uuid, p.name, p.generation, coalesce(parent.uuid, ''), root.uuid, coalesce(p.updated_at, p.created_at)
	from provider p
	left join provider parent on parent.id = p.parent_id
	join provider root on root.id = p.root_id
	`

// queries is what a pool and a transaction have in common.
type queries interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Provider is the provider with that UUID.
func (s *Store) Provider(ctx context.Context, uuid string) (inventory.Provider, error) {
	return provider(ctx, s.pool, uuid)
}

func provider(ctx context.Context, q queries, uuid string) (inventory.Provider, error) {
	rows, err := q.Query(ctx, providerSelect+`where p.uuid = $1`, uuid)
	if err != nil {
		return inventory.Provider{}, fmt.Errorf("provider %s: %w", uuid, err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, scanProvider)
	return p, found(err, "no provider %s", uuid)
}

func scanProvider(row pgx.CollectableRow) (inventory.Provider, error) {
	var p inventory.Provider
	err := row.Scan(&p.UUID, &p.Name, &p.Generation, &p.Parent, &p.Root, &p.ChangedAt)
	return p, err
}

// Providers lists the providers that pass the filter, oldest first.
func (s *Store) Providers(ctx context.Context, f inventory.ProviderFilter) ([]inventory.Provider, error) {
	var where []string
	var args []any
	and := func(condition string, value *string) {
		if value != nil {
			args = append(args, *value)
			where = append(where, fmt.Sprintf(condition, len(args)))
		}
	}
	and(`p.name = $%d`, f.Name)
	and(`p.uuid = $%d`, f.UUID)
	and(`p.root_id = (select root_id from provider where uuid = $%d)`, f.InTree)
	sql := providerSelect
	if len(where) > 0 {
		sql += `where ` + strings.Join(where, ` and `)
	}
	rows, err := s.pool.Query(ctx, sql+` order by p.id`, args...)
	if err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	providers, err := pgx.CollectRows(rows, scanProvider)
	if err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	return providers, nil
}
