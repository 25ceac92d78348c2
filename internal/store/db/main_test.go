package db_test

import (
	"os"
	"testing"

	"berth/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(leaderDatabase); url != "" {
		os.Exit(runLeader(url))
	}
	os.Exit(storetest.Main(m))
}
