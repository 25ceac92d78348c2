package network

import (
	"testing"
	"time"
)

func TestNovaIsToldAgainOnlyWhatSomebodyWaitsFor(t *testing.T) {
	t.Parallel()
	e := func(name string, age time.Duration) NovaEvent { return NovaEvent{Name: name, Age: age} }
	for name, tc := range map[string]struct {
		events []NovaEvent
		codes  []int
		want   int
	}{
		"taken":                   {[]NovaEvent{e(Plugged, 0)}, []int{200}, 0},
		"a server not there yet":  {[]NovaEvent{e(Plugged, 0)}, []int{404}, 1},
		"a server without a host": {[]NovaEvent{e(Plugged, time.Minute), e(Changed, 0)}, []int{422, 404}, 1},
		"for too long":            {[]NovaEvent{e(Plugged, novaKnows)}, []int{404}, 0},
		"unplugged since":         {[]NovaEvent{e(Plugged, 0), e(Unplugged, 0)}, []int{404, 404}, 0},
		"deleted since":           {[]NovaEvent{e(Plugged, 0), e(Deleted, 0)}, []int{404, 404}, 0},
		"plugged again since":     {[]NovaEvent{e(Plugged, 0), e(Unplugged, 0), e(Plugged, 0)}, []int{404, 404, 404}, 1},
		"nobody waits":            {[]NovaEvent{e(Deleted, 0), e(Changed, 0)}, []int{404, 404}, 0},
	} {
		if got := Unheard(tc.events, tc.codes); len(got) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
