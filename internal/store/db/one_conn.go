package db

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
	cfg.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error { // without the time limit of pgx
		ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
		defer cancel()
		return refusePooler(ctx, conn)
	}
	return cfg, nil
}

// oneConnTimeout is the maximum time of the statements on a connection of withOneConn, so that a program ends
// with an error if the database hangs.
const oneConnTimeout = 10 * time.Second

// withOneConn calls a function with a new connection to the database with the given URL, which has no pool
// yet. The context of the function ends after oneConnTimeout.
func withOneConn(ctx context.Context, url string, f func(context.Context, *pgx.Conn) error) error {
	cfg, err := oneConnConfig(url)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, oneConnTimeout)
	defer cancel()
	return f(ctx, conn)
}
