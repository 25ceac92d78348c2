package main

import (
	"testing"

	"berth/internal/store/storetest"
)

func TestMigrate_SecondRunChangesNothing(t *testing.T) {
	t.Parallel()
	h := harness{environ: []string{"BERTH_DATA=" + t.TempDir(), "BERTH_DATABASE_URL=" + storetest.URL(t)}}

	h.expect(t, 0, "the schema is up to date", "migrate")
	h.expect(t, 0, "00001_note.sql", "migrate", "--status")
}
