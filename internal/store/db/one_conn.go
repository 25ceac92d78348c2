package db

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// oneConnConfig returns the configuration of a connection that belongs to no pool. The parameters of a pool
// in the URL, such as pool_max_conns, have no effect. A connection to a pooler fails with ErrPooled.
func oneConnConfig(url string) (*pgx.ConnConfig, error) {
	pool, err := pgxpool.ParseConfig(url) // pgx.ParseConfig would send the parameters of a pool to the server
	if err != nil {
		return nil, fmt.Errorf("parse the database URL: %w", err)
	}
	cfg := pool.ConnConfig
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, connectTimeout)
	addTimelineFence(cfg)
	cfg.AfterConnect = refusePooler
	return cfg, nil
}

// withOneConn calls a function with a new connection to the database with the given URL, which has no pool
// yet.
func withOneConn(ctx context.Context, url string, f func(*pgx.Conn) error) error {
	cfg, err := oneConnConfig(url)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(conn)
}
