package inventory_test

import (
	"fmt"
	"testing"

	"berth/internal/inventory"
)

func TestCheckMove_OnlyRootsGetAParentIfMovesAreNotAllowed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		current, wanted string
		move, ok        bool
	}{
		{"", "p", false, true}, {"", "", false, true}, {"p", "p", false, true}, {"p", "q", false, false}, {"p", "", false, false},
		{"p", "q", true, true}, {"p", "", true, true},
	} {
		t.Run(
			fmt.Sprintf("from %q to %q, moves allowed %t", tc.current, tc.wanted, tc.move),
			func(t *testing.T) {
				t.Parallel()
				if err := inventory.CheckMove(tc.current, tc.wanted, tc.move); (err == nil) != tc.ok {
					t.Errorf("CheckMove: got error %v, want success: %t", err, tc.ok)
				}
			},
		)
	}
}
