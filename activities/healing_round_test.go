package activities

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/lease"
)

func TestHealingRound_BeginsWhereTheLastOneHadNoTime(t *testing.T) {
	t.Parallel()
	var h healingRound
	all := []lease.UnhealthyReservation{{Host: 1}, {Host: 2}, {Host: 3}, {Host: 4}, {Host: 5}}
	var got [][]int64
	for range 4 {
		var tried []int64
		h.each(all, func() bool { return len(tried) < 2 }, func(r lease.UnhealthyReservation) {
			tried = append(tried, r.Host)
		})
		got = append(got, tried)
	}
	h.each(all[:2], func() bool { return true }, func(lease.UnhealthyReservation) {})
	h.each(all, func() bool { return len(got) < 5 }, func(r lease.UnhealthyReservation) {
		got = append(got, []int64{r.Host})
	})
	want := [][]int64{{1, 2}, {3, 4}, {5, 1}, {2, 3}, {1}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("reservations that each round tries (-want +got):\n%s", d)
	}
}
