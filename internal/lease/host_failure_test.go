package lease

import "testing"

func TestTooManyDown_MoreThanTwoHostsAndAQuarter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		down, hosts int
		want        bool
	}{
		{1, 1, false},
		{2, 2, false},
		{3, 3, true},
		{3, 12, false},
		{4, 12, true},
		{0, 0, false},
	} {
		if got := TooManyDown(c.down, c.hosts); got != c.want {
			t.Errorf("TooManyDown(%d, %d): got %t, want %t", c.down, c.hosts, got, c.want)
		}
	}
}
