package harness

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"berth/internal/store/db"
)

// Dataset is the content of a database that only some measurements use, and the settings of the API process
// on this database.
type Dataset struct {
	Name     string
	SQL      []string
	Settings []string
}

// ScaleRows returns n, or n/50 when the run uses Temporal's dev server. A run with the dev server uses fewer
// rows, because such a run only tests the bench program.
func (s *Stack) ScaleRows(n int) int {
	if s.devServer {
		return n / 50
	}
	return n
}

// CreateDatabase creates a database with berth's schema on the stack's PostgreSQL server and returns the URL
// of the database.
func (s *Stack) CreateDatabase(ctx context.Context, name string) (string, error) {
	if _, err := s.Rows.Exec(ctx, `create database `+name); err != nil {
		return "", err
	}
	u, err := url.Parse(s.Postgres.URL)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	_, err = db.Migrate(ctx, u.String())
	return u.String(), err
}

// LoadDataset creates a database with the dataset and starts an API process that uses this database.
// Measurements with the same dataset share one database and one API process.
func (s *Stack) LoadDataset(ctx context.Context, d Dataset) (*API, error) {
	if a := s.Datasets[d.Name]; a != nil {
		return a, nil
	}
	database, err := s.CreateDatabase(ctx, d.Name)
	if err != nil {
		return nil, err
	}
	if err := d.Fill(ctx, database); err != nil {
		return nil, err
	}
	a, err := s.StartBerth(ctx, d.Name, database, "api", d.Settings...)
	if err == nil {
		s.Datasets[d.Name] = a
	}
	return a, err
}

// Fill inserts the rows of the dataset into the database with the given URL.
func (d Dataset) Fill(ctx context.Context, database string) error {
	c, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	for _, sql := range append(d.SQL, `vacuum analyze`, `checkpoint`) {
		if _, err := c.Exec(ctx, sql); err != nil {
			return fmt.Errorf("load dataset %s: %w", d.Name, err)
		}
	}
	return nil
}

// ScaleDeadlines returns n, or n/100 when the run uses Temporal's dev server.
func (s *Stack) ScaleDeadlines(n int) int {
	if s.devServer && n > 1 {
		return max(2, n/100)
	}
	return n
}
