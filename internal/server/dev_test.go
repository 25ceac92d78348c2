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
		t.Errorf("roles of a development run without BERTH_RABBITMQ_URL: %v, with it: %v", devRoles(without), devRoles(with))
	}
}
