package main

import (
	"testing"

	"berth/internal/store/storetest"
)

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
