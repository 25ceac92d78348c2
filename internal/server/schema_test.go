package server

import (
	"errors"
	"strings"
	"testing"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

func TestCheckSchema_RejectsMissingMigration(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	if err := checkSchema(t.Context(), url); err != nil {
		t.Errorf("checkSchema with all migrations: got error %v, want none", err)
	}
	storetest.Exec(t, url, `delete from goose_db_version where version_id = (select max(version_id) from goose_db_version)`)

	err := checkSchema(t.Context(), url)

	if err == nil || !strings.Contains(err.Error(), "lacks 1 of") || !strings.Contains(err.Error(), "`starter migrate`") {
		t.Errorf("checkSchema with one missing migration: got %v, want an error that names `starter migrate`", err)
	}
}

func TestCheckSchema_RejectsSchemaThatNoLongerSupportsTheProgram(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.Exec(t, url, `insert into goose_db_version (version_id, is_applied) values (99999, true)`)
	if err := checkSchema(t.Context(), url); err != nil {
		t.Errorf("checkSchema with a newer schema that supports this program: got error %v, want none", err)
	}
	storetest.Exec(t, url, `update schema_support set oldest_program = 99998`)

	err := checkSchema(t.Context(), url)

	if !errors.Is(err, db.ErrSchemaTooNew) {
		t.Errorf("checkSchema with a schema for newer programs: got %v, want ErrSchemaTooNew", err)
	}
}
