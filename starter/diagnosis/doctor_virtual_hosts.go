package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"berth/internal/api/rpc/oslomsg"
	"berth/starter/cli"
)

// checkVirtualHosts checks that berth's user can use the registered virtual hosts of agents.
func checkVirtualHosts(ctx context.Context, s *cli.Session) (string, error) {
	if len(s.RabbitMQ) == 0 {
		return "", fmt.Errorf("%w: BERTH_RABBITMQ_URL is not set", errNotConfigured)
	}
	var o struct {
		Registered []struct {
			Name string `json:"name"`
		} `json:"agent_vhosts"`
	}
	if err := readAPI(ctx, s, "/operator/v1/agent-vhosts", &o); err != nil {
		return "", err
	}
	if len(o.Registered) == 0 {
		return "", fmt.Errorf("%w: no host has a virtual host of its own", errNotConfigured)
	}
	tls, err := oslomsg.TLSConfig(s.RabbitMQCAFile)
	if err != nil {
		return "", err
	}
	broker := oslomsg.Broker{URLs: s.RabbitMQ, TLS: tls}
	errs := make([]error, len(o.Registered))
	free := make(chan struct{}, maxConnections)
	var wait sync.WaitGroup
	for i, v := range o.Registered {
		wait.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = broker.CheckVirtualHost(v.Name)
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return "", cli.Unavailable(
			"a virtual host of agents",
			"Create it with `rabbitmqctl add_vhost`, and give berth's user all permissions there with `rabbitmqctl set_permissions`.",
			err,
		)
	}
	return fmt.Sprintf("berth can use the virtual hosts of %d hosts", len(o.Registered)), nil
}

// maxConnections is the number of virtual hosts to which doctor connects at the same time.
const maxConnections = 16
