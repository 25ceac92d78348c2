package oslomsg

import "sync"

// duplicateWindow is the number of recent messages whose _unique_id the server remembers.
const duplicateWindow = 4096

// duplicateFilter remembers the IDs of the most recent messages, and recognizes a message whose ID is among
// them.
type duplicateFilter struct {
	sync.Mutex
	ids  map[string]bool
	ring []string
	next int
}

func newDuplicateFilter(size int) *duplicateFilter {
	return &duplicateFilter{ids: map[string]bool{}, ring: make([]string, size)}
}

// addIfNew reports whether a message ID is new, and remembers the ID. addIfNew regards a message without an
// ID as new.
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
