package db_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// When the context ends, failWhenDone starts a goroutine. If the connection breaks at the same moment, the
// connection may be released before this goroutine runs. The goroutine must not use the released connection.
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
