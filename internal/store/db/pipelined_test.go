package db_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// If a connection breaks and the context of its request ends at the same moment, the connection is released before the goroutine runs that
// the end of the context starts. This goroutine must not use the released connection.
func TestFailWhenDone_ContextEndsBeforeRelease(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), storetest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for range 20 {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		release := db.FailWhenDone(ctx, conn)
		_ = conn.Conn().Close(t.Context()) // the release of a closed connection waits for nothing
		cancel()
		release()
	}
}
