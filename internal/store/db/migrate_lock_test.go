package db_test

import (
	"testing"
	"testing/fstest"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// A migration needs a lock on a table that another session uses for long, such as pg_dump. The requests that
// wait behind the migration do not wait for the other session.
func TestMigrate_WaitingForALockLetsRequestsRun(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	storetest.ExecScript(t, url, `create table served (a integer)`)
	files := fstest.MapFS{"00001_column.sql": {Data: []byte("-- +goose Up\nalter table served add column b integer;\n")}}
	dump := storetest.NewRival(t, url)
	dump.Do(`begin`)
	dump.Do(`lock table served in access share mode`)
	done := make(chan error, 1)
	go func() {
		_, err := db.MigrateFiles(t.Context(), url, files)
		done <- err
	}()
	dump.AwaitWaiter()

	request := storetest.Connect(t, url)
	for _, sql := range []string{`set lock_timeout = '2min'`, `insert into served values (1)`} {
		if _, err := request.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s while a migration waits for another session: %v", sql, err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("migration while another session holds its lock: got error %v, want it to wait", err)
	default:
	}
	dump.Do(`commit`)
	if err := <-done; err != nil {
		t.Fatalf("migration after the other session has ended: %v", err)
	}
	if _, err := request.Exec(t.Context(), `insert into served (b) values (2)`); err != nil {
		t.Errorf("the column of the migration: %v", err)
	}
}
