package db

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// oneConnConfig returns the configuration of a connection that belongs to no pool. A connection to a pooler
// fails with ErrPooled.
func oneConnConfig(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("parse the database URL: %w", err)
	}
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
