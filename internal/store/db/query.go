package db

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/jackc/pgx/v5"
)

// Querier is the database or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// QueryAll reads every row of a query.
func QueryAll[T any](ctx context.Context, q Querier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// QueryOne reads the only row of a query. If the result of the query has no row, QueryOne returns the error `missing`, which may be nil.
func QueryOne[T any](ctx context.Context, q Querier, scan pgx.RowToFunc[T], missing error, sql string, args ...any) (T, error) {
	var zero T
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return zero, err
	}
	v, err := pgx.CollectExactlyOneRow(rows, scan)
	if NoRows(err) {
		return zero, missing
	}
	return v, err
}

// EqualJSON reports whether two texts represent the same JSON value.
func EqualJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// OrEmpty returns the list, or an empty list if the list is nil, because PostgreSQL would store nil as null.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
