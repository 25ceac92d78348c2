package db

import "context"

type actorKey struct{}

// WithActor returns a context that names the actor (user or service) of all writes that use the context. The
// history of provider and consumer generations records the actor of each write.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// Actor returns the actor of a context, or "berth" if the context has none.
func Actor(ctx context.Context) string {
	if actor, ok := ctx.Value(actorKey{}).(string); ok {
		return actor
	}
	return "berth"
}
