package db

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migration describes one migration of the schema, and says whether the migration is applied to the database.
type Migration struct {
	Version int64
	Name    string
	SQL     string
	Applied bool
}

// Migrate applies all pending migrations to the database with the given URL and returns these migrations. If
// another process is already migrating the database, Migrate waits for that process, because a session lock
// allows only one migration at a time. No migration returns to an older schema, because both the previous and
// the new version of berth work with the new schema. If the schema is too new for this program, or of a
// version before the first release, Migrate applies no migration and returns ErrSchemaTooNew or
// ErrSchemaUnreleased.
func Migrate(ctx context.Context, url string) ([]Migration, error) {
	if err := checkMigration(ctx, url); err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return migrateFiles(ctx, url, files)
}

// migrateFiles applies the pending ones of the migrations in the files.
func migrateFiles(ctx context.Context, url string, files fs.FS) (taken []Migration, err error) {
	p, closeDB, err := migrator(url, files)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	for {
		results, err := p.Up(ctx)
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			results = partial.Applied
		}
		for _, r := range results {
			taken = append(taken, Migration{Version: r.Source.Version, Name: r.Source.Path, Applied: true})
		}
		switch {
		case err == nil:
			return taken, nil
		case reasonOf(err) != Locked:
			return taken, fmt.Errorf("migrate: %w", err)
		}
		slog.WarnContext(ctx, "a migration waits for a lock of another session, such as pg_dump, and is tried again", "error", err)
		select {
		case <-ctx.Done():
			return taken, fmt.Errorf("migrate: %w", err)
		case <-time.After(migrationPause):
		}
	}
}

// While a migration waits for a lock on a table, all requests that use the table wait behind it. So a
// migration waits for migrationLockTimeout only, and is tried again after migrationPause, in which the
// requests run.
const (
	migrationLockTimeout = 2 * time.Second
	migrationPause       = 3 * time.Second
)

// checkMigration returns an error if this program must not migrate the database with the given URL.
func checkMigration(ctx context.Context, url string) error {
	schema, err := ReadSchema(ctx, url)
	if err != nil {
		return fmt.Errorf("read the schema of the database: %w", err)
	}
	return schema.checkMigration()
}

// PendingMigrations lists the migrations that Migrate would apply to the database with the given URL, in this
// order. PendingMigrations changes nothing, and returns the errors of Migrate.
func PendingMigrations(ctx context.Context, url string) ([]Migration, error) {
	if err := checkMigration(ctx, url); err != nil {
		return nil, err
	}
	all, err := Migrations(ctx, url)
	return slices.DeleteFunc(all, func(m Migration) bool { return m.Applied }), err
}

// Migrations lists every migration of the schema, and says whether the migration is applied to the database.
// Migrations changes nothing: goose would create its table in an empty database.
func Migrations(ctx context.Context, url string) (all []Migration, err error) {
	versions, err := programVersions()
	if err != nil {
		return nil, err
	}
	applied, err := appliedVersions(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("read the migration status: %w", err)
	}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	for i, file := range files {
		sql, err := migrations.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, Migration{
			Version: versions[i],
			Name:    path.Base(file),
			SQL:     string(sql),
			Applied: slices.Contains(applied, versions[i]),
		})
	}
	return all, nil
}

// appliedVersions returns the versions of the migrations that are applied to the database with the given URL.
func appliedVersions(ctx context.Context, url string) (versions []int64, err error) {
	err = withOneConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		var migrated bool
		err := conn.QueryRow(ctx, `select to_regclass('goose_db_version') is not null`).Scan(&migrated)
		if err != nil || !migrated {
			return err
		}
		rows, err := conn.Query(ctx, `select version_id from goose_db_version where is_applied`)
		if err != nil {
			return err
		}
		versions, err = pgx.CollectRows(rows, pgx.RowTo[int64])
		return err
	})
	return versions, err
}

// programVersions lists the versions of the migrations that this program contains, in ascending order.
var programVersions = sync.OnceValues(func() ([]int64, error) {
	files, err := fs.ReadDir(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	versions := make([]int64, len(files))
	for i, f := range files {
		if versions[i], err = goose.NumericComponent(f.Name()); err != nil {
			return nil, err
		}
	}
	return versions, nil
})

func migrator(url string, files fs.FS) (*goose.Provider, func(), error) {
	cfg, err := oneConnConfig(url)
	if err != nil {
		return nil, nil, err
	}
	cfg.RuntimeParams["lock_timeout"] = milliseconds(migrationLockTimeout) // the one in the URL is for requests
	db := stdlib.OpenDB(*cfg)
	closeDB := func() { _ = db.Close() }
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		closeDB()
		return nil, nil, err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		closeDB()
		return nil, nil, fmt.Errorf("load the migrations: %w", err)
	}
	return p, closeDB, nil
}
