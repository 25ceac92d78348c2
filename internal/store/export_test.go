package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"berth/internal/contract"
)

// Nudge leaves notes in a transaction of their own.
func Nudge(ctx context.Context, s *Store, n ...contract.Nudge) error {
	return s.inTx(ctx, func(tx pgx.Tx) error { return nudge(ctx, tx, n...) })
}
