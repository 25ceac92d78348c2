package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The next notification waits until RabbitMQ has confirmed the messages of the present one in every virtual
// host. The agents of one host can make RabbitMQ confirm the messages of their virtual host slowly, for
// example with many durable queues, and so slow down the notifications to all hosts. So berth measures how
// long the notifications wait for each virtual host after RabbitMQ has confirmed the messages in most others,
// and limits the sum of these times. If most virtual hosts are slow, RabbitMQ itself is the cause, and berth
// charges none of them.
const (
	// delayBurst is the time for which a virtual host may delay the others at once.
	delayBurst = 10 * time.Second
	// delayShare: of the time that passes, a virtual host may delay the others for one part in delayShare.
	delayShare = 50
	// minAllowedConfirm is the least time that RabbitMQ may take in a virtual host without a charge: times
	// this short differ by chance, and RabbitMQ needs more time for quorum queues than for classic queues.
	minAllowedConfirm = 50 * time.Millisecond
)

var errSlow = errors.New("RabbitMQ confirms messages more slowly than in most other virtual hosts")

// delayBucket is a leaky bucket of the time for which one virtual host has delayed the notifications to the
// others.
type delayBucket struct {
	level     time.Duration
	chargedAt time.Time
}

// charge adds a delay that has ended now, and reports whether the bucket is overfull: a virtual host also
// pays for the part of a long delay that did not fit.
func (b *delayBucket) charge(now time.Time, delay time.Duration) (overfull bool) {
	b.level = max(b.level-now.Sub(b.chargedAt)/delayShare, 0) + delay
	b.chargedAt = now
	return b.level > delayBurst
}

// confirmTimes are the times for which one notification waited for RabbitMQ, until RabbitMQ had confirmed the
// messages or until a virtual host was found to be unusable.
type confirmTimes struct {
	main  time.Duration   // in the virtual host of the brokers' URLs; 0: no message was published there
	hosts []time.Duration // in the virtual host of each host; 0: no message was published there
}

// usual returns the time within which RabbitMQ has confirmed the messages in at least half of the virtual
// hosts. The result `known` is false if less than two of them got messages.
func (t confirmTimes) usual() (usual time.Duration, known bool) {
	all := slices.DeleteFunc(append([]time.Duration{t.main}, t.hosts...),
		func(took time.Duration) bool { return took == 0 })
	if len(all) < 2 {
		return 0, false
	}
	slices.Sort(all)
	return all[(len(all)-1)/2], true
}

// delays returns for how long the notification has waited for the virtual host of each host. Up to twice the
// usual time is no delay, because the times also differ among virtual hosts that are not slow. While the
// notification waits for several virtual hosts at the same time, each has an equal part of the delay. The
// notification waits for at most maxParallelHosts at the same time.
func (t confirmTimes) delays(usual time.Duration) []time.Duration {
	until := max(2*usual, minAllowedConfirm)
	var slow []int
	for i, took := range t.hosts {
		if took > until {
			slow = append(slow, i)
		}
	}
	slices.SortFunc(slow, func(a, b int) int { return cmp.Compare(t.hosts[a], t.hosts[b]) })
	delays := make([]time.Duration, len(t.hosts))
	var delay time.Duration
	for n, i := range slow {
		delay += (t.hosts[i] - until) / time.Duration(min(len(slow)-n, maxParallelHosts))
		delays[i], until = delay, t.hosts[i]
	}
	return delays
}

// chargeHosts charges each virtual host the time for which it has delayed a notification to the others. If
// only one virtual host got messages, chargeHosts assumes that the others are as they were last, or charges
// nothing if no other gets notifications. The caller has the turn to publish.
func (p *Publisher) chargeHosts(ctx context.Context, hosts []*hostPublisher, times confirmTimes) {
	if usual, known := times.usual(); known {
		p.usualConfirm = usual
	} else if !p.delaysOthers(hosts, times) {
		p.usualConfirm = hostPublishTimeout // nothing takes so long
	}
	now, delays := p.now(), times.delays(p.usualConfirm)
	for i, h := range hosts {
		if times.hosts[i] > 0 {
			h.addDelay(ctx, now, delays[i])
		}
	}
}

// delaysOthers reports whether another virtual host gets notifications than that for which one has waited.
func (p *Publisher) delaysOthers(hosts []*hostPublisher, times confirmTimes) bool {
	for i, h := range hosts {
		if times.hosts[i] == 0 && !h.misses() {
			return true
		}
	}
	return !p.options.Identities
}

// addDelay remembers for how long a notification has waited for this virtual host alone. If the sum is too
// large, the virtual host gets no notifications for a while, as if it were unreachable. The pause lasts at
// least until the bucket is no longer overfull. So a virtual host that is slow again soon afterwards gets the
// next pause, and one that is quick none.
func (p *hostPublisher) addDelay(ctx context.Context, now time.Time, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	overfull := p.delay.charge(now, delay)
	switch {
	case overfull && delay > 0:
		p.miss(ctx, fmt.Errorf("%w: the notifications to all hosts have waited %s for it, the last one %s",
			errSlow, p.delay.level, delay), p.confirmedAt)
		p.pause = min(max(p.pause, (p.delay.level-delayBurst)*delayShare), maxHostPause)
	case delay == 0 && p.missingSince.IsZero():
		p.confirmedAt = now
	}
}
