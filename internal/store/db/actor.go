package db

import "context"

type actorKey struct{}

// WithActor returns a context that contains the actor of the following writes. The generation history records the actor of each write.
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
