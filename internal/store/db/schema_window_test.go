package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestSchemaWindow_DecidesWhoMayUseAndMigrateTheDatabase(t *testing.T) {
	t.Parallel()
	newest := db.Window().Newest
	// goose creates its table, and then no migration is applied
	const unmigrated = `create schema new; alter table goose_db_version set schema new; drop schema public cascade;
		alter schema new rename to public; delete from goose_db_version where version_id > 0`
	const unreleased = `create view provisioning_block as select from block;`
	const newer = `insert into goose_db_version (version_id, is_applied) values (99999, true);`
	const lacking = `delete from goose_db_version where version_id = (select max(version_id) from goose_db_version where version_id < 99999);`
	for _, c := range []struct {
		name, change string
		version      int64
		use, migrate error
	}{
		{name: "same schema", version: newest},
		{name: "no migration is applied", change: unmigrated, use: db.ErrSchemaTooOld},
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
		{
			name:    "schema of a version before the first release",
			change:  unreleased + newer + `update schema_support set oldest_program = 99999`,
			version: 99999,
			use:     db.ErrSchemaUnreleased,
			migrate: db.ErrSchemaUnreleased,
		},
		{
			name:    "schema of an early version before the first release",
			change:  unreleased + newer + `drop table schema_support`,
			use:     db.ErrSchemaUnreleased,
			migrate: db.ErrSchemaUnreleased,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			storetest.ExecScript(t, url, c.change)

			schema, err := db.ReadSchema(t.Context(), url)
			if err != nil || schema.Version != c.version {
				t.Errorf("ReadSchema: got version %d, error %v; want version %d",
					schema.Version, err, c.version)
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

// contraction matches statements after which an older program may fail.
var contraction = regexp.MustCompile(
	`(?i)\b(drop\s+(table|column|view|function|type)|rename\s+(to|column)|set\s+not\s+null|alter\s+(column\s+)?\w+\s+type)\b`,
)

func TestMigrations_GoForwardAndAContractionNamesTheOldestProgram(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migrations: got the files %v, error %v; want at least one", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sql := string(text)
		if strings.Contains(sql, "-- +goose Down") {
			t.Errorf(
				"%s: got the part `-- +goose Down`, want none: no program migrates to an older schema",
				file,
			)
		}
		if found := contraction.FindString(sql); found != "" &&
			!strings.Contains(sql, "update schema_support set oldest_program = ") {
			t.Errorf(
				"%s: got %q without `update schema_support set oldest_program = …`; an older program may fail with this schema",
				file,
				found,
			)
		}
	}
}
