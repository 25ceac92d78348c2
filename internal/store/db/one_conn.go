package db

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// withOneConn calls a function with a new connection to the database with the given URL, which has no pool
// yet.
func withOneConn(ctx context.Context, url string, f func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(conn)
}
