package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	"berth/internal/delivery"
)

// NotifyNova sends the recorded events of a port to Nova, oldest first.
func (a *Activities) NotifyNova(ctx context.Context, key string) error {
	defer startHeartbeat(ctx)()
	id, err := parseUUID(key)
	if err != nil {
		return err
	}
	return deliveryError(a.sender().NovaEvents(ctx, id))
}

// NotifyAgents publishes the recorded notifications of a network to Neutron's agents, oldest first, until no
// notification is left.
func (a *Activities) NotifyAgents(ctx context.Context, key string) error {
	defer startHeartbeat(ctx)()
	id, err := parseUUID(key)
	if err != nil {
		return err
	}
	return deliveryError(a.sender().Notifications(ctx, id))
}

func (a *Activities) sender() delivery.Sender {
	return delivery.Sender{Recorded: a.Store.Notifications, Nova: a.Nova, Agents: a.Agents}
}

// deliveryError classifies an error of package delivery.
func deliveryError(err error) error {
	var unknown *delivery.UnknownServerError
	after := time.Second
	switch {
	case errors.As(err, &unknown):
		after = max(unknown.Age/2, time.Second)
	case !errors.Is(err, delivery.ErrClaimed):
		return classify(err)
	}
	return temporal.NewApplicationErrorWithOptions(
		err.Error(),
		retryRequested,
		temporal.ApplicationErrorOptions{
			NextRetryDelay: after,
			Category:       temporal.ApplicationErrorCategoryBenign,
		},
	)
}
