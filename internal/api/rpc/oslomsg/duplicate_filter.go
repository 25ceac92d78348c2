package oslomsg

import "sync"

// duplicateWindow is the number of recent messages whose _unique_id the server remembers.
const duplicateWindow = 4096

// duplicateFilter remembers the most recent message IDs and recognizes them when they are repeated.
type duplicateFilter struct {
	sync.Mutex
	ids  map[string]bool
	ring []string
	next int
}

func newDuplicateFilter(size int) *duplicateFilter {
	return &duplicateFilter{ids: map[string]bool{}, ring: make([]string, size)}
}

// addIfNew reports whether a message ID is new, and remembers the ID. A message without an ID is always new.
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
