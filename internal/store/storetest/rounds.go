package storetest

import (
	"os"
	"strconv"
	"testing"
)

// Rounds returns how often a test repeats a race: the value of BERTH_TEST_ROUNDS, which `make soak` sets, or the parameter
// everyDay if the variable is not set.
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
