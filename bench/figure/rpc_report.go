package figure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/bench/harness"
)

// The rates, in ports per second, that Neutron reaches on two CPU cores with the calls dhcp_ready_on_ports
// and update_device_list.
const (
	neutronReadyRate = 260
	neutronUpRate    = 12
)

// The numbers of ports in each call of an agent, and in each round.
const (
	readyBatch = 64
	upBatch    = 20
	rpcPorts   = 500
)

// rpcFigure reports ports over RabbitMQ as Neutron's agents do.
type rpcFigure struct {
	*idleFigure
	agent *rpcAgent
}

// openReady measures the RPC call dhcp_ready_on_ports: the time until the call is answered and the ports no
// longer wait for DHCP.
func openReady(ctx context.Context, s *harness.Stack) (*Subject, error) {
	return openRPCFigure(
		ctx,
		s,
		neutronReadyRate,
		func(ctx context.Context, r *rpcFigure, ports []string) (harness.Sample, error) {
			return r.reportBatches(ctx, ports, readyBatch, r.agent.reportReady)
		},
	)
}

// openUp measures the RPC call update_device_list for ports whose DHCP is ready: the time until the call is
// answered and the ports are ACTIVE.
func openUp(ctx context.Context, s *harness.Stack) (*Subject, error) {
	return openRPCFigure(
		ctx,
		s,
		neutronUpRate,
		func(ctx context.Context, r *rpcFigure, ports []string) (harness.Sample, error) {
			if _, err := r.reportBatches(ctx, ports, readyBatch, r.agent.reportReady); err != nil {
				return harness.Sample{}, err
			}
			if err := r.awaitNotificationsSent(ctx); err != nil {
				return harness.Sample{}, err
			}
			one, err := r.reportBatches(ctx, ports, upBatch, r.agent.reportUp)
			if err != nil {
				return one, err
			}
			var down int
			err = r.Rows.QueryRow(ctx, `select count(*) from port where id = any($1::uuid[]) and status <> 'ACTIVE'`, ports).
				Scan(&down)
			if err == nil && down > 0 {
				err = fmt.Errorf("all calls are answered, but %d ports are not ACTIVE", down)
			}
			return one, err
		},
	)
}

// openRPCFigure opens a figure that measures RPC calls about new ports and compares their rate with
// Neutron's.
func openRPCFigure(
	ctx context.Context,
	s *harness.Stack,
	neutronRate float64,
	measure func(context.Context, *rpcFigure, []string) (harness.Sample, error),
) (*Subject, error) {
	r := &rpcFigure{idleFigure: &idleFigure{portFigure: newPortFigure(ctx, s, 1, harness.PollInterval)}}
	var all []harness.Sample
	return &Subject{
		agents: s.API,
		setUp:  r.startRPC,
		MeasureRound: func(ctx context.Context, _ harness.Pace) (harness.Sample, error) {
			r.ports = nil
			for left := s.ScaleDeadlines(rpcPorts); left > 0; left -= portsPerRequest {
				if err := r.createPorts(ctx, min(left, portsPerRequest)); err != nil {
					return harness.Sample{}, err
				}
			}
			if err := errors.Join(r.awaitNotificationsSent(ctx), s.AwaitMirrored(ctx)); err != nil {
				return harness.Sample{}, err
			}
			one, err := measure(ctx, r, r.ports)
			all = append(all, one)
			return one, err
		},
		tearDown: r.stopRPC,
		Details: func(context.Context) ([]harness.Detail, error) {
			return []harness.Detail{
				{Name: "times Neutron's ports per second on two cores", Value: harness.Ratio(harness.Sum(all).Rate(), neutronRate)},
			}, nil
		},
	}, nil
}

// startRPC starts RabbitMQ, restarts berth with the role rpc and connects an agent.
func (r *rpcFigure) startRPC(ctx context.Context) error {
	if err := r.EnsureRabbitMQ(ctx); err != nil {
		return err
	}
	if err := r.RestartBerth(ctx, harness.DefaultRoles+",rpc", r.Rabbit.URL(0)); err != nil {
		return err
	}
	var err error
	if r.agent, err = newRPCAgent(r.Rabbit.URL(0)); err != nil {
		return err
	}
	if err := r.agent.reportStart(ctx); err != nil {
		return err
	}
	return r.createNetworks(ctx)
}

// stopRPC disconnects the agent and restarts berth with the default roles and without RabbitMQ.
func (r *rpcFigure) stopRPC(ctx context.Context) error {
	err := errors.Join(r.awaitNotificationsSent(ctx), r.AwaitMirrored(ctx))
	r.agent.close()
	return errors.Join(err, r.RestartBerth(ctx, harness.DefaultRoles, ""))
}

// awaitNotificationsSent waits until every notification for agents is published.
func (r *rpcFigure) awaitNotificationsSent(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, harness.WaitTimeout, harness.ErrTimeout)
	defer cancel()
	for left := 1; left > 0; harness.Pause(ctx, 20*time.Millisecond) {
		if err := r.Rows.QueryRow(ctx, `select count(*) from agent_notification where sent_at is null`).Scan(&left); err != nil {
			return fmt.Errorf("count unsent notifications for agents: %w", harness.FirstCause(ctx, err))
		}
	}
	return nil
}

// reportBatches reports ports in batches. reportBatches waits for the reply to each call before it sends the
// next call, as an agent does. The sample that reportBatches returns contains the number of ports and the
// duration of each call.
func (r *rpcFigure) reportBatches(
	ctx context.Context,
	ports []string,
	batch int,
	call func(context.Context, []string) error,
) (harness.Sample, error) {
	one := harness.Sample{Count: len(ports)}
	before, err := harness.ReadCPUTimes()
	if err != nil {
		return one, err
	}
	begin := time.Now()
	for len(ports) > 0 {
		n, sent := min(batch, len(ports)), time.Now()
		if err := call(ctx, ports[:n]); err != nil {
			return one, err
		}
		ports, one.Times = ports[n:], append(one.Times, time.Since(sent))
	}
	one.Seconds = time.Since(begin).Seconds()
	after, err := harness.ReadCPUTimes()
	one.CPU = after.Since(before)
	return one, err
}
