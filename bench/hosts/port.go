package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"berth/bench/harness"
)

// maxNetworks is the maximum number of networks of the new ports.
const maxNetworks = 50

// ports creates ports on all hosts, as Nova does, and sends the reports of the agents about them.
type ports struct {
	api      *harness.API
	hosts    int
	networks []string
}

// newPorts creates the networks, and waits until OpenDaylight has them.
func newPorts(ctx context.Context, s *harness.Stack, hosts int) (*ports, error) {
	p := &ports{api: s.API, hosts: hosts, networks: make([]string, min(hosts, maxNetworks))}
	for i := range p.networks {
		var err error
		if p.networks[i], _, err = s.API.CreateDHCPNetwork(ctx, fmt.Sprint("network-", i)); err != nil {
			return nil, err
		}
	}
	return p, s.AwaitMirrored(ctx)
}

// hostStep is a prime that divides no number of hosts of the flags' defaults, so that the new ports are
// spread over all hosts.
const hostStep = 7919

// activate creates the n-th port, and sends the reports of the DHCP agent and of the L2 agent of its host, of
// which the last one makes the port ACTIVE.
func (p *ports) activate(ctx context.Context, _, n int) error {
	host := hostName(n * hostStep % p.hosts)
	port, err := p.api.Create(ctx, "port", harness.Attributes{
		"network_id":      p.networks[n%len(p.networks)],
		"binding:host_id": host,
		"device_owner":    "compute:nova",
		"device_id":       uuid.NewString(),
	})
	if err != nil {
		return err
	}
	if _, err := p.report(ctx, port, "DHCP", harness.DHCPHost); err != nil {
		return err
	}
	status, err := p.report(ctx, port, "L2", host)
	if err == nil && status != "ACTIVE" {
		err = fmt.Errorf("port %s on host %s: got status %q after the reports of both agents, want ACTIVE", port, host, status)
	}
	return err
}

// report sends the report of an agent about a port, and returns the status of the port.
func (p *ports) report(ctx context.Context, port, entity, host string) (status string, err error) {
	var answer struct {
		Verdicts []struct{ Result, Status string }
	}
	err = p.api.Post(ctx, "/agent/v1/reports", map[string]any{
		"reports": []harness.Attributes{{"port": port, "entity": entity, "host": host}},
	}, &answer)
	if err == nil && len(answer.Verdicts) != 1 {
		err = fmt.Errorf("report of %s about port %s: got %d verdicts, want 1", entity, port, len(answer.Verdicts))
	}
	if err != nil {
		return "", err
	}
	return answer.Verdicts[0].Status, nil
}
