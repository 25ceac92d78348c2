package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"berth/internal/devstack"
)

// What the original reaches on two cores, in ports a second.
const (
	neutronReady = 260
	neutronUp    = 12
)

// How many ports agents report at a time, and how many there are.
const (
	readyAtOnce = 64
	upAtOnce    = 20
	portsOnAir  = 500
)

// air is where agents speak with berth over RabbitMQ.
type air struct {
	*idle
	agent *agent
}

// openReady measures a DHCP agent that reports ports ready: until their blocks are lifted in the rows, and the call is answered.
func openReady(ctx context.Context, s *stack) (*subject, error) {
	return openAir(ctx, s, neutronReady, func(ctx context.Context, a *air, ports []string) (sample, error) {
		return a.report(ctx, ports, readyAtOnce, a.agent.ready)
	})
}

// openUp measures an Open vSwitch agent that reports devices wired, the last that their ports wait for: until these are ACTIVE in
// the rows, and the call is answered.
func openUp(ctx context.Context, s *stack) (*subject, error) {
	return openAir(ctx, s, neutronUp, func(ctx context.Context, a *air, ports []string) (sample, error) {
		if _, err := a.report(ctx, ports, readyAtOnce, a.agent.ready); err != nil {
			return sample{}, err
		}
		if err := a.told(ctx); err != nil {
			return sample{}, err
		}
		one, err := a.report(ctx, ports, upAtOnce, a.agent.up)
		if err != nil {
			return one, err
		}
		var down int
		err = a.rows.QueryRow(ctx, `select count(*) from port where id = any($1::uuid[]) and status <> 'ACTIVE'`, ports).Scan(&down)
		if err == nil && down > 0 {
			err = fmt.Errorf("%d ports are not ACTIVE when both agents have their answers", down)
		}
		return one, err
	})
}

func openAir(ctx context.Context, s *stack, original float64, measure func(context.Context, *air, []string) (sample, error)) (*subject, error) {
	a := &air{idle: &idle{plant: newPlant(ctx, s, 1, lookEvery)}}
	var all []sample
	return &subject{
		before: a.raiseMast,
		whole: func(ctx context.Context, _ pace) (sample, error) {
			a.ports = nil
			for left := s.crowd(portsOnAir); left > 0; left -= perRequest {
				if err := a.make(ctx, min(left, perRequest)); err != nil {
					return sample{}, err
				}
			}
			if err := errors.Join(a.told(ctx), s.settled(ctx)); err != nil {
				return sample{}, err
			}
			one, err := measure(ctx, a, a.ports)
			all = append(all, one)
			return one, err
		},
		after: a.lowerMast,
		close: func(context.Context) ([]detail, error) {
			return []detail{{"times the ports per second of Neutron's on two cores", ratio(sum(all).rate(), original)}}, nil
		},
	}, nil
}

// raiseMast has berth answer agents over RabbitMQ, and an agent of either kind come.
func (a *air) raiseMast(ctx context.Context) error {
	if err := a.broker(ctx); err != nil {
		return err
	}
	if err := a.rerun(ctx, "api,relay,temporal,rpc", a.rabbit.URL(0)); err != nil {
		return err
	}
	var err error
	if a.agent, err = newAgent(a.rabbit.URL(0)); err != nil {
		return err
	}
	if err := a.agent.start(ctx); err != nil {
		return err
	}
	return a.prepare(ctx)
}

// lowerMast has berth run as for all other figures.
func (a *air) lowerMast(ctx context.Context) error {
	err := errors.Join(a.told(ctx), a.settled(ctx))
	a.agent.close()
	return errors.Join(err, a.rerun(ctx, usualRoles, ""))
}

// broker starts RabbitMQ, unless it runs.
func (s *stack) broker(ctx context.Context) (err error) {
	if s.rabbit == nil {
		s.rabbit, err = devstack.StartRabbitMQ(ctx, filepath.Join(s.dir, "rabbitmq"))
	}
	return err
}

// rerun starts berth anew in other roles.
func (s *stack) rerun(ctx context.Context, roles, brokers string) error {
	s.api.stop()
	s.api.roles, s.api.brokers = roles, brokers
	return s.boot(ctx, s.api)
}

// told waits until agents have been told everything.
func (a *air) told(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	for left := 1; left > 0; pause(ctx, 20*time.Millisecond) {
		if err := a.rows.QueryRow(ctx, `select count(*) from announcement where told_at is null`).Scan(&left); err != nil {
			return fmt.Errorf("agents are not told everything: %w", err)
		}
	}
	return nil
}

// report reports ports a few at a time, one call after the other as agents do.
func (a *air) report(ctx context.Context, ports []string, atOnce int, call func(context.Context, []string) error) (sample, error) {
	one := sample{Count: len(ports)}
	before, err := spent()
	if err != nil {
		return one, err
	}
	begin := time.Now()
	for len(ports) > 0 {
		n, at := min(atOnce, len(ports)), time.Now()
		if err := call(ctx, ports[:n]); err != nil {
			return one, err
		}
		ports, one.Times = ports[n:], append(one.Times, time.Since(at))
	}
	one.Seconds = time.Since(begin).Seconds()
	after, err := spent()
	one.CPU = after.since(before)
	return one, err
}
