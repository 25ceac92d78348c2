package notify

import "runtime"

// Waiting returns how many calls wait for the request in progress to end.
func (b *EventBatcher) Waiting() int {
	runtime.Gosched()
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}
