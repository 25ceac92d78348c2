package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The next notification waits until RabbitMQ has confirmed the messages of the present one in every virtual
// host. The agents of one host can make RabbitMQ confirm the messages of their virtual host slowly, but
// within hostPublishTimeout, and so slow down the notifications to all hosts. So berth counts how often a
// virtual host is slow while most others are not. If most are slow, RabbitMQ itself is the cause.
const (
	// slowConfirm is how long RabbitMQ may take to confirm the messages of a notification in a virtual host
	// that is not slow.
	slowConfirm = time.Second
	// slowNotification is what a notification for which the virtual host was slow adds to its slowness. Each
	// other notification takes one from it, so that only a virtual host that is slow for more than one of
	// eleven notifications reaches maxSlowness.
	slowNotification = 10
	// maxSlowness is the slowness after which the virtual host gets no notifications for a while.
	maxSlowness = 3 * slowNotification
)

var errSlow = errors.New("RabbitMQ confirms messages more slowly than in most other virtual hosts")

// confirmTimes are the times that RabbitMQ took to confirm the messages of one notification.
type confirmTimes struct {
	main  time.Duration   // in the virtual host of the brokers' URLs; 0: no message was confirmed there
	hosts []time.Duration // in the virtual host of each host; 0: no message was confirmed there
}

// areMostlyShort reports whether RabbitMQ was not slow in most of the virtual hosts. The result `known` is
// false if it has confirmed messages in less than two of them.
func (t confirmTimes) areMostlyShort() (short, known bool) {
	quick, slow := 0, 0
	for _, took := range append([]time.Duration{t.main}, t.hosts...) {
		switch {
		case took > slowConfirm:
			slow++
		case took > 0:
			quick++
		}
	}
	return quick >= slow, quick+slow > 1
}

// compareHosts remembers which virtual hosts have delayed a notification to the others. If only one virtual
// host got messages, compareHosts assumes that most others are as they were last. The caller has the turn to
// publish.
func (p *Publisher) compareHosts(ctx context.Context, hosts []*hostPublisher, times confirmTimes) {
	if short, known := times.areMostlyShort(); known {
		p.mostAreQuick = short
	}
	for i, h := range hosts {
		switch took := times.hosts[i]; {
		case took > slowConfirm && p.mostAreQuick:
			h.addSlow(ctx, took)
		case took > 0:
			h.addConfirmed()
		}
	}
}

// addConfirmed remembers that RabbitMQ has confirmed the messages of a notification in time.
func (p *hostPublisher) addConfirmed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slowness = max(p.slowness-1, 0)
	p.confirmedAt = time.Now()
}

// addSlow remembers that RabbitMQ took the given time to confirm the messages of a notification. If it has
// been slow again and again, the virtual host gets no notifications for a while, as if it were unreachable.
// If it is still slow afterwards, one slow notification suffices.
func (p *hostPublisher) addSlow(ctx context.Context, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slowness += slowNotification; p.slowness >= maxSlowness {
		p.slowness = maxSlowness - slowNotification
		p.miss(ctx, fmt.Errorf("%w: %s for the last notification", errSlow, took), p.confirmedAt)
	}
}
