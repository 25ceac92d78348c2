package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
	"berth/internal/version"
)

// emptyDatabase returns the URL of a database without any table.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	url := storetest.URL(t)
	storetest.ExecScript(t, url, `drop schema public cascade; create schema public`)
	return url
}

// tables returns the number of tables of a database.
func tables(t *testing.T, url string) (n int) {
	t.Helper()
	if err := storetest.Connect(t, url).QueryRow(t.Context(),
		`select count(*) from pg_tables where schemaname = 'public'`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMigrate_DryRunAndStatusChangeNothing(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	h := harness{environ: []string{"BERTH_DATA=" + t.TempDir(), "BERTH_DATABASE_URL=" + url}}

	code, sql := h.run(t, "migrate", "--dry-run")
	if code != 0 || !strings.HasPrefix(sql, "-- 00001_schema.sql\n") || !strings.Contains(sql, "create table schema_support") {
		t.Errorf("migrate --dry-run of an empty database: got exit code %d and the beginning %.80q, want the first migration", code, sql)
	}
	h.expect(t, 0, `"sql":`, "migrate", "--dry-run", "--output", "json")
	h.expect(t, 0, "false", "migrate", "--status")
	if n := tables(t, url); n != 0 {
		t.Errorf("after --dry-run and --status: got %d tables in the empty database, want none", n)
	}

	storetest.ExecScript(t, url, sql)
	if n := tables(t, url); n == 0 {
		t.Error("after the SQL of --dry-run: got no tables, want those of the schema")
	}
}

func TestMigrate_DryRunSaysWhenNothingIsToMigrateOrTheSchemaIsTooNew(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	h := harness{environ: []string{"BERTH_DATA=" + t.TempDir(), "BERTH_DATABASE_URL=" + url}}

	h.expect(t, 0, "the schema is up to date", "migrate", "--dry-run")
	storetest.ExecScript(t, url, `insert into goose_db_version (version_id, is_applied) values (99999, true);
		update schema_support set oldest_program = 99998`)
	h.expect(t, 1, "nothing was migrated: the schema of the database is too new", "migrate", "--dry-run")
	h.expect(t, 2, "--dry-run and --status are mutually exclusive", "migrate", "--dry-run", "--status")
}

func TestVersion_JSONHasTheBuildTheSchemasAndTheAPIs(t *testing.T) {
	t.Parallel()
	code, output := harness{environ: []string{"BERTH_DATA=" + t.TempDir()}}.run(t, "version", "-o", "json")
	var got map[string]any
	if err := json.Unmarshal([]byte(output), &got); err != nil || code != 0 {
		t.Fatalf("starter version -o json: got exit code %d, error %v and the output %s, want JSON", code, err, output)
	}
	build, schemas := version.Read(), db.Window()
	want := map[string]any{
		"version":        build.Version,
		"commit":         build.Commit,
		"commit_date":    build.CommitDate,
		"go":             build.Go,
		"schema_minimum": float64(schemas.Minimum),
		"schema_newest":  float64(schemas.Newest),
		"apis": []any{
			map[string]any{"name": "agent", "minimum": "v1", "newest": "v1"},
			map[string]any{"name": "journal", "minimum": "v1", "newest": "v1"},
			map[string]any{"name": "networking", "minimum": "v2.0", "newest": "v2.0"},
			map[string]any{"name": "operator", "minimum": "v1", "newest": "v1"},
			map[string]any{"name": "placement", "minimum": "1.0", "newest": "1.39"},
			map[string]any{"name": "reservation", "minimum": "1.0", "newest": "1.0"},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("starter version -o json (-want +got):\n%s", d)
	}
}

// TestMigrate_OneOfTwoStartersMigrates starts two commands at the same time on an empty database.
func TestMigrate_OneOfTwoStartersMigrates(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	var outputs [2]bytes.Buffer
	var errs [2]error
	var both sync.WaitGroup
	for i := range outputs {
		both.Go(func() {
			errs[i] = run(t.Context(), []string{"migrate", "--database-url", url},
				[]string{"BERTH_DATA=" + t.TempDir()}, &outputs[i], &outputs[i])
		})
	}
	both.Wait()

	migrated := 0
	for i, err := range errs {
		if err != nil {
			t.Errorf("command %d: got error %v, want none", i, err)
		}
		if strings.Contains(outputs[i].String(), "00001_schema.sql") {
			migrated++
		} else if !strings.Contains(outputs[i].String(), "the schema is up to date") {
			t.Errorf("command %d: got the output %s, want the migrations or that the schema is up to date", i, outputs[i].String())
		}
	}
	if migrated != 1 {
		t.Errorf("commands that list the migrations: got %d, want 1", migrated)
	}
}

func TestMigrate_SecondRunChangesNothing(t *testing.T) {
	t.Parallel()
	h := harness{environ: []string{"BERTH_DATA=" + t.TempDir(), "BERTH_DATABASE_URL=" + storetest.URL(t)}}

	h.expect(t, 0, "the schema is up to date", "migrate")
	h.expect(t, 0, "00001_schema.sql", "migrate", "--status")
}

func TestMigrate_NewerSchemaIsNotChanged(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	h := harness{environ: []string{"BERTH_DATA=" + t.TempDir(), "BERTH_DATABASE_URL=" + url}}

	storetest.Exec(t, url, `insert into goose_db_version (version_id, is_applied) values (99999, true)`)
	h.expect(t, 0, "the schema has version 99999, which is newer than version", "migrate")
	h.expect(t, 0, "00001_schema.sql", "migrate", "--status")

	storetest.Exec(t, url, `update schema_support set oldest_program = 99998`)
	h.expect(
		t,
		1,
		"version 99999, which supports programs of schema 99998 and later, but the newest schema of this program is",
		"migrate",
	)
}

func TestMigrate_DatabaseOfAVersionBeforeTheFirstReleaseIsRefused(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	h := harness{environ: []string{"BERTH_DATA=" + t.TempDir(), "BERTH_DATABASE_URL=" + url}}
	storetest.Exec(t, url, `create view provisioning_block as select from block`)

	h.expect(
		t,
		1,
		"nothing was migrated: a version before the first release created the database: its schema cannot be migrated; start with an empty database",
		"migrate",
	)
}
