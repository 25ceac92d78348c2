package db_test

import (
	"testing"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

// TestProbe_AcceptsTheParametersOfPools uses a URL with parameters that only a pool of connections knows.
func TestProbe_AcceptsTheParametersOfPools(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t) + "&pool_max_conns=3"
	if _, err := db.Probe(t.Context(), url); err != nil {
		t.Errorf("probe the database with pool_max_conns: got error %v, want none", err)
	}
	if _, err := db.Migrate(t.Context(), url); err != nil {
		t.Errorf("migrate the database with pool_max_conns: got error %v, want none", err)
	}
}
