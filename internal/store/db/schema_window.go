package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Errors about a schema that does not suit this program.
var (
	// ErrSchemaTooOld means that the database lacks migrations that this program contains.
	ErrSchemaTooOld = errors.New("the schema of the database is too old")
	// ErrSchemaTooNew means that the database has migrations after which programs as old as this program no
	// longer work.
	ErrSchemaTooNew = errors.New("the schema of the database is too new")
	// ErrSchemaUnreleased means that a version before the first release created the database. The numbers of
	// that version's migrations have another meaning than those of this program.
	ErrSchemaUnreleased = errors.New("a version before the first release created the database")
)

// SchemaWindow says with which schemas a program works. The version of a schema is the number of its newest
// migration. The program also works with a schema newer than Newest if this schema supports the program: the
// row of the table schema_support says so.
type SchemaWindow struct {
	Minimum int64 `json:"minimum"` // oldest schema with which the program works
	Newest  int64 `json:"newest"`  // newest schema that the program knows
}

// Window returns the schemas with which this program works. A program needs all migrations that it contains,
// because the schema is migrated before the programs are replaced.
func Window() SchemaWindow {
	versions, err := programVersions()
	if err != nil {
		panic(err) // the migrations are a part of the program
	}
	newest := versions[len(versions)-1]
	return SchemaWindow{Minimum: newest, Newest: newest}
}

func (w SchemaWindow) String() string {
	return fmt.Sprintf("schema %d, or newer if the database supports programs of schema %d",
		w.Minimum, w.Newest)
}

// Schema describes the schema of a database.
type Schema struct {
	Version       int64 // newest migration that is applied; 0 if no migration is applied
	OldestProgram int64 // the schema supports programs whose newest migration is this one or a newer one
	missing       int   // migrations of this program that are not applied
	unreleased    bool  // a version before the first release created the schema
}

// check returns an error if this program does not work with the schema.
func (s Schema) check() error {
	w := Window()
	switch {
	case s.unreleased:
		return fmt.Errorf(
			"%w: its schema cannot be migrated; start with an empty database",
			ErrSchemaUnreleased,
		)
	case s.OldestProgram > w.Newest:
		return fmt.Errorf(
			"%w: it has version %d, which supports programs of schema %d and later, but the newest schema of this program is %d; use a newer version of berth",
			ErrSchemaTooNew, s.Version, s.OldestProgram, w.Newest,
		)
	case s.missing > 0:
		versions, _ := programVersions()
		return fmt.Errorf(
			"%w: it has version %d, and this program works with version %d and later: it lacks %d of %d migrations; run `starter migrate` first",
			ErrSchemaTooOld, s.Version, w.Minimum, s.missing, len(versions),
		)
	}
	return nil
}

// checkMigration returns an error if this program must not migrate the schema: a program whose migrations are
// older than the schema could undo a part of what newer migrations have done.
func (s Schema) checkMigration() error {
	err := s.check()
	if newest := Window().Newest; errors.Is(err, ErrSchemaTooOld) && s.Version > newest {
		return fmt.Errorf(
			"%w: it has version %d, but lacks %d migrations of this program, whose newest schema is %d; migrate with the version of berth that has made this schema",
			ErrSchemaTooNew, s.Version, s.missing, newest,
		)
	}
	if errors.Is(err, ErrSchemaTooOld) {
		return nil
	}
	return err
}

// CheckSchema returns an error if this program does not work with the schema of the database with the given
// URL: ErrSchemaTooOld, ErrSchemaTooNew, ErrSchemaUnreleased, or the error of the connection. CheckSchema
// changes nothing.
func CheckSchema(ctx context.Context, url string) error {
	s, err := ReadSchema(ctx, url)
	if err != nil {
		return err
	}
	return s.check()
}

// unreleasedSchema is the SQL expression of Schema.unreleased. Every version before the first release creates
// the view provisioning_block.
const unreleasedSchema = `to_regclass('provisioning_block') is not null`

// ReadSchema returns the schema of the database with the given URL.
func ReadSchema(ctx context.Context, url string) (found Schema, err error) {
	err = withOneConn(ctx, url, func(ctx context.Context, conn *pgx.Conn) error {
		// Goose creates its table before it applies the first migration, which creates schema_support.
		var migrated bool
		err := conn.QueryRow(ctx, `
			select to_regclass('goose_db_version') is not null and to_regclass('schema_support') is not null, `+unreleasedSchema).
			Scan(&migrated, &found.unreleased)
		versions, _ := programVersions()
		if err != nil || !migrated {
			found.missing = len(versions)
			return err
		}
		var applied int
		err = conn.QueryRow(ctx, `
			select coalesce(max(version_id), 0), count(distinct version_id) filter (where version_id = any($1)),
				coalesce((select max(oldest_program) from schema_support), 0)
			from goose_db_version
			where is_applied`, versions).Scan(&found.Version, &applied, &found.OldestProgram)
		found.missing = len(versions) - applied
		return err
	})
	return found, err
}
