package db

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Querier is the database or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// QueryAll reads every row of a query.
func QueryAll[T any](
	ctx context.Context,
	q Querier,
	scan pgx.RowToFunc[T],
	sql string,
	args ...any,
) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// QueryOne reads the only row of a query. If the result of the query has no row, QueryOne returns the error
// `missing`, which may be nil.
func QueryOne[T any](
	ctx context.Context,
	q Querier,
	scan pgx.RowToFunc[T],
	missing error,
	sql string,
	args ...any,
) (T, error) {
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

// EncodeJSON returns v as JSON. EncodeJSON panics if v cannot be encoded, which is a programming error.
func EncodeJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("store: encode %T: %v", v, err))
	}
	return raw
}

// OrEmpty returns the list, or an empty list if the list is nil, because PostgreSQL would store nil as null.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// CheckFence checks the result of a write that is conditional on a revision. CheckFence returns ErrConflict
// if no row was updated.
func CheckFence(tag pgconn.CommandTag, err error, what string, id uuid.UUID) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case tag.RowsAffected() == 0:
		return fmt.Errorf("%w: %s: %s was changed concurrently", ErrConflict, what, id)
	default:
		return nil
	}
}

// InetParam converts an address to a query parameter; an invalid address becomes null.
func InetParam(a netip.Addr) *string {
	if !a.IsValid() {
		return nil
	}
	text := a.String()
	return &text
}
