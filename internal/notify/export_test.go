package notify

// Waiting returns how many calls wait for the request in progress to end.
func (b *EventBatcher) Waiting() int { return b.batcher.Waiting() }
