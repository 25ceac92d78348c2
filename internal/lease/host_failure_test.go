package lease

import "testing"

func TestTooManySilent_MoreThanTwoHostsAndAQuarter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		silent, hosts int
		want          bool
	}{
		{1, 1, false},
		{2, 2, false},
		{3, 3, true},
		{3, 12, false},
		{4, 12, true},
		{0, 0, false},
	} {
		if got := TooManySilent(c.silent, c.hosts); got != c.want {
			t.Errorf("TooManySilent(%d, %d): got %t, want %t", c.silent, c.hosts, got, c.want)
		}
	}
}
