package rpc

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDelayBucket_IsFullAfterTooMuchDelay(t *testing.T) {
	t.Parallel()
	type delay struct{ after, delay time.Duration }
	for name, c := range map[string]struct {
		delays []delay
		full   bool
	}{
		"at the limit":           {[]delay{{0, delayBurst}}, false},
		"beyond the limit":       {[]delay{{0, delayBurst + 1}}, true},
		"many short ones":        {slices.Repeat([]delay{{time.Second, 50 * time.Millisecond}}, 335), true},
		"few enough":             {slices.Repeat([]delay{{time.Second, 20 * time.Millisecond}}, 10000), false},
		"one that has room":      {[]delay{{0, delayBurst}, {100 * time.Second, 2 * time.Second}}, false},
		"one without room":       {[]delay{{0, delayBurst}, {100 * time.Second, 2*time.Second + 1}}, true},
		"after a long time":      {[]delay{{0, time.Second}, {24 * time.Hour, delayBurst + 1}}, true},
		"after too long a one":   {[]delay{{0, 2 * delayBurst}, {400 * time.Second, 3 * time.Second}}, true},
		"a short one long ago":   {[]delay{{0, time.Second}, {time.Minute, delayBurst}}, false},
		"a long one just before": {[]delay{{0, 3 * time.Second}, {time.Minute, delayBurst}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b delayBucket
			now, full := time.Now(), false
			for _, d := range c.delays {
				now = now.Add(d.after)
				full = b.charge(now, d.delay)
			}
			if full != c.full {
				t.Errorf("full after %d delays: got %t at the level %s, want %t", len(c.delays), full, b.level, c.full)
			}
		})
	}
}

func TestConfirmTimes_OnlyTheTimeBeyondMostOthersIsADelay(t *testing.T) {
	t.Parallel()
	const ms, s = time.Millisecond, time.Second
	type times = []time.Duration
	for name, c := range map[string]struct {
		main  time.Duration
		hosts times
		want  times
	}{
		"one is slow":                  {0, times{300 * ms, 30 * ms, 35 * ms}, times{230 * ms, 0, 0}},
		"one host":                     {30 * ms, times{300 * ms}, times{240 * ms}},
		"one host, a slow broker":      {300 * ms, times{310 * ms}, times{0}},
		"all are slow":                 {0, times{3 * s, 4 * s, 5 * s}, times{0, 0, 0}},
		"most are slow":                {0, times{1 * ms, 4 * s, 5 * s}, times{0, 0, 0}},
		"half are slow":                {5 * ms, times{5 * ms, 150 * ms, 250 * ms}, times{0, 50 * ms, 150 * ms}},
		"quorum queues among classic":  {0, times{1 * ms, 1 * ms, 50 * ms}, times{0, 0, 0}},
		"longer than quorum queues":    {0, times{1 * ms, 1 * ms, 51 * ms}, times{0, 0, 1 * ms}},
		"some got no messages":         {0, times{0, 0, 1 * ms, 70 * ms, 0}, times{0, 0, 0, 20 * ms, 0}},
		"the main one is slower still": {1 * s, times{80 * ms, 140 * ms}, times{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := confirmTimes{c.main, c.hosts}
			usual, known := all.usual()
			if d := cmp.Diff(c.want, all.delays(usual)); d != "" || !known {
				t.Errorf("delays by the virtual hosts, compared with %s, known: %t (-want +got):\n%s", usual, known, d)
			}
		})
	}
}

// A notification waits for at most maxParallelHosts virtual hosts at the same time.
func TestConfirmTimes_SlowVirtualHostsShareTheDelay(t *testing.T) {
	t.Parallel()
	for slow, want := range map[int]time.Duration{
		1:                    time.Second,
		2:                    time.Second,
		maxParallelHosts:     time.Second,
		3 * maxParallelHosts: 3 * time.Second,
	} {
		times := confirmTimes{hosts: slices.Repeat([]time.Duration{time.Millisecond}, 1000)}
		for i := range slow {
			times.hosts[i] = time.Second + minAllowedConfirm
		}
		usual, _ := times.usual()
		var total time.Duration
		for _, d := range times.delays(usual) {
			total += d
		}
		if total != want {
			t.Errorf("all delays by %d virtual hosts that are a second later than others: got %s, want %s", slow, total, want)
		}
	}
}

// Without another virtual host that gets notifications, a slow one delays no other.
func TestPublisher_TheOnlyUsableVirtualHostMayBeSlow(t *testing.T) {
	t.Parallel()
	p := NewPublisher(Options{Identities: true})
	hosts := []*hostPublisher{{}, {}}
	p.chargeHosts(t.Context(), hosts, confirmTimes{hosts: []time.Duration{time.Millisecond, time.Millisecond}})
	hosts[1].missingSince = time.Now()
	for range 10 {
		p.chargeHosts(t.Context(), hosts, confirmTimes{hosts: []time.Duration{6 * time.Second, 0}})
	}
	if hosts[0].misses() {
		t.Error("a slow virtual host while no other gets notifications: got a pause, want none")
	}
}

// The agents of one host cannot slow down the notifications to others for ever, however they time it.
func TestHostPublisher_DelaysOthersForASmallShareOfTheTime(t *testing.T) {
	t.Parallel()
	const (
		others = minAllowedConfirm / 2
		end    = 3 * time.Hour
		limit  = delayBurst + hostPublishTimeout + end/delayShare
	)
	for name, attack := range map[string]struct {
		took  time.Duration // for a slow notification
		every int           // one of so many notifications is slow
		fails bool          // RabbitMQ does not confirm the slow notification at all
		rest  time.Duration // after a pause of this length, no notification is slow until the pauses are short again
	}{
		"a little, always":           {took: 60 * time.Millisecond, every: 1, rest: end},
		"for a part of a second":     {took: 300 * time.Millisecond, every: 1, rest: end},
		"sometimes":                  {took: 950 * time.Millisecond, every: 11, rest: end},
		"for long, rarely":           {took: hostPublishTimeout, every: 11, rest: end},
		"for long, with breaks":      {took: hostPublishTimeout, every: 1, rest: time.Minute},
		"no confirm":                 {took: hostPublishTimeout, every: 1, rest: end, fails: true},
		"no confirm, with breaks":    {took: hostPublishTimeout, every: 1, rest: time.Minute, fails: true},
		"no confirm, in many breaks": {took: hostPublishTimeout, every: 1, rest: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := NewPublisher(Options{Identities: true})
			begin := time.Now()
			now := begin
			p.now = func() time.Time { return now }
			slow := &hostPublisher{reconnectedAt: now}
			hosts := []*hostPublisher{slow, {}, {}}
			var delayed time.Duration
			for n, restUntil := 1, now; now.Sub(begin) < end; n++ {
				times := confirmTimes{hosts: []time.Duration{others, others, others}}
				if n%attack.every == 0 && now.After(restUntil) {
					times.hosts[0] = attack.took
					delayed += attack.took - 2*others
					if attack.fails {
						slow.miss(t.Context(), errors.New("no confirm"), slow.confirmedAt)
					}
				}
				now = now.Add(times.hosts[0])
				if p.chargeHosts(t.Context(), hosts, times); slow.misses() {
					now = now.Add(slow.pause)
					slow.missingSince, slow.reconnectedAt = time.Time{}, now
					if slow.pause >= attack.rest {
						restUntil = now.Add(maxHostPause + time.Second)
					}
				}
			}
			if delayed > limit {
				t.Errorf("delay of the others in %s: got %s, want at most %s", end, delayed, limit)
			}
		})
	}
}
