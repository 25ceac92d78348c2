package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestSchemaWindow_DecidesWhoMayUseAndMigrateTheDatabase(t *testing.T) {
	t.Parallel()
	newest := db.Window().Newest
	previous, undo := newestMigration(t)
	const newer = `insert into goose_db_version (version_id, is_applied) values (99999, true);`
	const lacking = `delete from goose_db_version where version_id = (select max(version_id) from goose_db_version where version_id < 99999);`
	for _, c := range []struct {
		name, change string
		version      int64
		use, migrate error
		// the migration that is missing is applied again, so what it creates must not exist
		undoesTheMissing string
	}{
		{name: "same schema", version: newest},
		{
			name:             "older schema",
			change:           lacking,
			version:          previous,
			use:              db.ErrSchemaTooOld,
			undoesTheMissing: undo,
		},
		{name: "empty database", change: `drop schema public cascade; create schema public`, use: db.ErrSchemaTooOld},
		{name: "newer schema that supports this program", change: newer, version: 99999},
		{
			name:    "newer schema that does not support this program",
			change:  newer + `update schema_support set oldest_program = 99998`,
			version: 99999,
			use:     db.ErrSchemaTooNew,
			migrate: db.ErrSchemaTooNew,
		},
		{
			name:    "newer schema of another branch",
			change:  newer + lacking,
			version: 99999,
			use:     db.ErrSchemaTooOld,
			migrate: db.ErrSchemaTooNew,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			for statement := range strings.SplitSeq(c.change+";"+c.undoesTheMissing, ";") {
				if statement != "" {
					storetest.Exec(t, url, statement)
				}
			}

			schema, err := db.ReadSchema(t.Context(), url)
			if err != nil || schema.Version != c.version {
				t.Errorf(
					"ReadSchema: got version %d, error %v; want version %d",
					schema.Version,
					err,
					c.version,
				)
			}
			if err := db.CheckSchema(t.Context(), url); !errors.Is(err, c.use) {
				t.Errorf("CheckSchema: got %v, want %v", err, c.use)
			}
			if _, err := db.Probe(t.Context(), url); (err == nil) != (c.use == nil) ||
				err != nil && !errors.Is(err, db.ErrUnusable) {
				t.Errorf(
					"Probe: got %v, want ErrUnusable exactly if the program must not use the database",
					err,
				)
			}
			applied, err := db.Migrate(t.Context(), url)
			if !errors.Is(err, c.migrate) || c.migrate != nil && len(applied) > 0 {
				t.Errorf("Migrate: got %v, error %v; want the error %v", applied, err, c.migrate)
			}
		})
	}
}

// newestMigration returns the version before the newest migration, and the statements that undo the newest
// migration.
func newestMigration(t *testing.T) (previous int64, undo string) {
	t.Helper()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) < 2 {
		t.Fatalf("migrations: got the files %v, error %v; want at least two", files, err)
	}
	number, _, _ := strings.Cut(filepath.Base(files[len(files)-2]), "_")
	if previous, err = strconv.ParseInt(number, 10, 64); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	_, undo, _ = strings.Cut(string(text), "-- +goose Down")
	return previous, undo
}

// contraction matches statements after which an older program may fail.
var contraction = regexp.MustCompile(
	`(?i)\b(drop\s+(table|column|view|function|type)|rename\s+(to|column)|set\s+not\s+null|alter\s+(column\s+)?\w+\s+type)\b`,
)

// TestMigrations_ContractionNamesTheOldestProgram holds for the migrations after the table schema_support.
func TestMigrations_ContractionNamesTheOldestProgram(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	guarded := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		if found := contraction.FindString(up); guarded && found != "" &&
			!strings.Contains(up, "update schema_support set oldest_program = ") {
			t.Errorf(
				"%s: got %q without `update schema_support set oldest_program = …`; an older program may fail with this schema",
				file,
				found,
			)
		}
		guarded = guarded || strings.HasSuffix(file, "_schema_support.sql")
	}
	if !guarded {
		t.Error("migrations: got no file with the name …_schema_support.sql, want one")
	}
}
