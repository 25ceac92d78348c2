package rpc

import "time"

// SetConfirmTimes replaces the times that RabbitMQ takes to confirm the messages of a notification in the
// virtual host of each host.
func (p *Publisher) SetConfirmTimes(of func(host string) time.Duration) {
	p.confirmTime = func(host string, _ time.Time) time.Duration { return of(host) }
}

// SetClock replaces the clock by which the delays of virtual hosts are forgotten.
func (p *Publisher) SetClock(now func() time.Time) { p.now = now }
