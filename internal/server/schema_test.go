package server

import (
	"strings"
	"testing"

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
