package db

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"sync"

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
	Applied bool
}

// Migrate applies all pending migrations to the database with the given URL and returns these migrations. If
// another process is already migrating the database, Migrate waits for that process, because a session lock
// allows only one migration at a time. No migration returns to an older schema, because both the previous and
// the new version of berth work with the new schema. If the schema is too new for this program, or of a
// version before the first release, Migrate applies no migration and returns ErrSchemaTooNew or
// ErrSchemaUnreleased.
func Migrate(ctx context.Context, url string) ([]Migration, error) {
	schema, err := ReadSchema(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("read the schema of the database: %w", err)
	}
	if err := schema.checkMigration(); err != nil {
		return nil, err
	}
	p, closeDB, err := migrator(url)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	results, err := p.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	var taken []Migration
	for _, r := range results {
		taken = append(taken, Migration{Version: r.Source.Version, Name: r.Source.Path, Applied: true})
	}
	return taken, nil
}

// Migrations lists every migration of the schema, and says whether the migration is applied to the database.
func Migrations(ctx context.Context, url string) ([]Migration, error) {
	p, closeDB, err := migrator(url)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	status, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the migration status: %w", err)
	}
	var all []Migration
	for _, s := range status {
		all = append(
			all,
			Migration{Version: s.Source.Version, Name: s.Source.Path, Applied: s.State == goose.StateApplied},
		)
	}
	return all, nil
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

func migrator(url string) (*goose.Provider, func(), error) {
	cfg, err := oneConnConfig(url)
	if err != nil {
		return nil, nil, err
	}
	db := stdlib.OpenDB(*cfg)
	closeDB := func() { _ = db.Close() }
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		closeDB()
		return nil, nil, err
	}
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
