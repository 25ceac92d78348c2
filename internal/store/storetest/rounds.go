package storetest

import (
	"os"
	"strconv"
	"testing"
)

// Rounds is how often a test does what goes wrong by chance: as BERTH_TEST_ROUNDS says, as `make soak` does, or what is enough for every day.
func Rounds(t testing.TB, everyDay int) int {
	t.Helper()
	set := os.Getenv("BERTH_TEST_ROUNDS")
	if set == "" {
		return everyDay
	}
	n, err := strconv.Atoi(set)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
