package notify

import "context"

// Waiting returns how many calls wait for the request in progress to end.
func (b *EventBatcher) Waiting() int { return b.batcher.Waiting() }

// Post sends a request to the enforcement service.
func (e *Enforcement) Post(ctx context.Context, path string) error {
	_, _, err := e.post(ctx, path, EnforcementRequest{})
	return err
}
