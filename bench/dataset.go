package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// dataset is the content of a database that only some measurements use, and the settings of the API process
// on this database.
type dataset struct {
	name     string
	sql      []string
	settings []string
}

// scaleRows returns n, or n/50 when the run uses Temporal's dev server. A run with the dev server uses fewer
// rows, because such a run only tests the bench program.
func (s *stack) scaleRows(n int) int {
	if s.devServer {
		return n / 50
	}
	return n
}

// createDatabase creates a database with berth's schema on the stack's PostgreSQL server and returns the URL
// of the database.
func (s *stack) createDatabase(ctx context.Context, name string) (string, error) {
	if _, err := s.rows.Exec(ctx, `create database `+name); err != nil {
		return "", err
	}
	u, err := url.Parse(s.postgres.URL)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	_, err = db.Migrate(ctx, u.String())
	return u.String(), err
}

// loadDataset creates a database with the dataset and starts an API process that uses this database.
// Measurements with the same dataset share one database and one API process.
func (s *stack) loadDataset(ctx context.Context, d dataset) (*api, error) {
	if a := s.datasets[d.name]; a != nil {
		return a, nil
	}
	database, err := s.createDatabase(ctx, d.name)
	if err != nil {
		return nil, err
	}
	c, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for _, sql := range append(d.sql, `vacuum analyze`, `checkpoint`) {
		if _, err := c.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("load dataset %s: %w", d.name, err)
		}
	}
	a, err := s.startBerth(ctx, d.name, database, "api", d.settings...)
	if err == nil {
		s.datasets[d.name] = a
	}
	return a, err
}

// scaleDeadlines returns n, or n/100 when the run uses Temporal's dev server.
func (s *stack) scaleDeadlines(n int) int {
	if s.devServer && n > 1 {
		return max(2, n/100)
	}
	return n
}
