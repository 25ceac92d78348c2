package oslomsg

import "sync"

// duplicateWindow is how many recent messages the server remembers by their _unique_id.
const duplicateWindow = 4096

// duplicateFilter recognizes repeated IDs among the most recent ones.
type duplicateFilter struct {
	sync.Mutex
	ids  map[string]bool
	ring []string
	next int
}

func newDuplicateFilter(size int) *duplicateFilter {
	return &duplicateFilter{ids: map[string]bool{}, ring: make([]string, size)}
}

// addIfNew reports whether the ID is new, and remembers it. A message without an ID is always new.
func (f *duplicateFilter) addIfNew(id string) bool {
	if id == "" || len(id) > MaxName {
		return true
	}
	f.Lock()
	defer f.Unlock()
	if f.ids[id] {
		return false
	}
	delete(f.ids, f.ring[f.next])
	f.ring[f.next], f.ids[id] = id, true
	f.next = (f.next + 1) % len(f.ring)
	return true
}
