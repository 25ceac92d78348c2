package server

import (
	"slices"
	"testing"

	"berth/internal/config"
)

func TestDevRoles_RPCOnlyWithRabbitMQ(t *testing.T) {
	t.Parallel()
	without, with := config.Config{}, config.Config{RabbitMQ: []string{"amqp://127.0.0.1/"}}

	if slices.Contains(devRoles(without), config.RPC) || !slices.Contains(devRoles(with), config.RPC) {
		t.Errorf(
			"roles of a development run: got %v without BERTH_RABBITMQ_URL and %v with it; want the role rpc only with it",
			devRoles(without),
			devRoles(with),
		)
	}
}
