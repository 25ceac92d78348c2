package notify

import "runtime"

// Waiting is how many callers wait behind the request that is under way.
func (b *EventBatcher) Waiting() int {
	runtime.Gosched()
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}
