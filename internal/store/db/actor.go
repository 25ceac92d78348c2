package db

import "context"

type actorKey struct{}

// WithActor returns a context whose writes the generation history records under that actor.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// Actor is the actor of a context; "berth" if the context names none.
func Actor(ctx context.Context) string {
	if actor, ok := ctx.Value(actorKey{}).(string); ok {
		return actor
	}
	return "berth"
}
