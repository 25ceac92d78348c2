package storetest

import (
	"os"
	"strconv"
	"testing"
)

// Rounds returns how often a test repeats a race between transactions: the value of the variable
// BERTH_TEST_ROUNDS, which `make races` sets, or the parameter `everyDay` if BERTH_TEST_ROUNDS is not set.
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
