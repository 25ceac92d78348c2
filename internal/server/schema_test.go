package server

import (
	"errors"
	"io"
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
	storetest.Exec(t, url,
		`delete from goose_db_version where version_id = (select max(version_id) from goose_db_version)`)

	err := checkSchema(t.Context(), url)

	if err == nil || !strings.Contains(err.Error(), "lacks 1 of") ||
		!strings.Contains(err.Error(), "`starter migrate`") {
		t.Errorf(
			"checkSchema with one missing migration: got %v, want an error that names `starter migrate`",
			err,
		)
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

// TestAuthentication_ProcessNeedsTheModeOfItsDatabase starts processes with the role temporal, which serve no
// API.
func TestAuthentication_ProcessNeedsTheModeOfItsDatabase(t *testing.T) {
	t.Parallel()
	keystone := []string{
		"BERTH_AUTH=keystone",
		"OS_AUTH_URL=http://127.0.0.1:1/v3",
		"OS_USERNAME=berth",
		"OS_PASSWORD=secret",
		"OS_PROJECT_NAME=service",
	}
	noauth := []string{"BERTH_AUTH=noauth"}
	for name, c := range map[string]struct {
		database string // mode of the database
		settings []string
		want     string // in the error; empty: the process starts
		after    string // mode of the database after the start
	}{
		"not set, new database":      {"", nil, "BERTH_AUTH is not set: set BERTH_AUTH=keystone, or BERTH_AUTH=noauth", ""},
		"not set, keystone database": {"keystone", nil, "BERTH_AUTH is not set", "keystone"},
		"other than the database":    {"keystone", noauth, "the database is for BERTH_AUTH=keystone: set BERTH_AUTH=keystone, or change the database with `starter authentication set noauth`", "keystone"},
		"stricter than the database": {"noauth", keystone, "`starter authentication set keystone`", "noauth"},
		"first process":              {"", noauth, "", "noauth"},
		"same as the database":       {"keystone", keystone, "", "keystone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.URL(t)
			if c.database != "" {
				if err := db.BindAuthentication(t.Context(), url, c.database); err != nil {
					t.Fatal(err)
				}
			}
			// A process that passes the check ends, because its policy file does not exist.
			environ := append(
				[]string{
					"BERTH_DATABASE_URL=" + url,
					"BERTH_LISTEN=127.0.0.1:0",
					"BERTH_POLICY_FILE=/nonexistent",
				},
				c.settings...)

			err := run(t.Context(), []string{"-roles", "temporal"}, environ, io.Discard, io.Discard)

			started := err != nil && strings.Contains(err.Error(), "/nonexistent")
			if c.want == "" && !started ||
				c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf(
					"start a process: got error %v, want one that contains %q, or none about BERTH_AUTH",
					err,
					c.want,
				)
			}
			if found, err := db.ReadAuthentication(t.Context(), url); err != nil || found.Mode != c.after {
				t.Errorf("mode of the database after the start: got %q, error %v, want %q",
					found.Mode, err, c.after)
			}
		})
	}
}
