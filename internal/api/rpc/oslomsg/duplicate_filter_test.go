package oslomsg

import "testing"

func TestDuplicateFilter_RemembersRecentIDs(t *testing.T) {
	t.Parallel()
	f := newDuplicateFilter(2)
	for i, c := range []struct {
		id  string
		new bool
	}{{"a", true}, {"a", false}, {"b", true}, {"c", true}, {"a", true}, {"c", false}, {"", true}, {"", true}} {
		if got := f.addIfNew(c.id); got != c.new {
			t.Errorf("step %d: addIfNew(%q): got %t, want %t", i, c.id, got, c.new)
		}
	}
}
