package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"berth/bench/harness"
)

// batch is the result of sending requests to a server.
type batch struct {
	times     []time.Duration // of each request, with the repetitions after conflicts
	conflicts int
	elapsed   time.Duration
}

// sendAll sends the requests with the numbers from `begin` on, each with its own client: n % clients. Each
// client sends its requests one after the other. If a request fails, sendAll stops all clients and returns
// the error. `begin` and `count` are multiples of the number of clients.
func (p *peer) sendAll(
	ctx context.Context,
	begin, count int,
	requests func(n int) []request,
) (batch, error) {
	if err := p.connections.Open(ctx); err != nil {
		return batch{}, fmt.Errorf("%s: %w", p.name, err)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	all := make([]batch, p.clients)
	start := time.Now()
	var running sync.WaitGroup
	for client := range p.clients {
		running.Go(func() {
			b := &all[client]
			for n := begin + client; n < begin+count && ctx.Err() == nil; n += p.clients {
				for _, r := range requests(n) {
					sent := time.Now()
					conflicts, err := p.sendUntilDone(ctx, client, r)
					if err != nil {
						fail(err)
						return
					}
					b.times = append(b.times, time.Since(sent))
					b.conflicts += conflicts
				}
			}
		})
	}
	running.Wait()
	total := batch{elapsed: time.Since(start)}
	for _, b := range all {
		total.times = append(total.times, b.times...)
		total.conflicts += b.conflicts
	}
	return total, context.Cause(ctx)
}

// measurement measures all figures, round by round.
type measurement struct {
	settings settings
	dataset  dataset
	peers    [2]*peer
	logf     func(string, ...any)
	busiest  float64      // the most cores that were busy before a measurement
	batches  [2][][]batch // for each server and figure: the rounds
}

// run measures each figure on one server and then on the other, so that other load of the machine affects
// both. Each round begins with the other server.
func (m *measurement) run(ctx context.Context) error {
	for i := range m.batches {
		m.batches[i] = make([][]batch, len(figures))
	}
	for round := range m.settings.Rounds {
		for i, f := range figures {
			for turn := range m.peers {
				at := (round + turn) % len(m.peers)
				b, err := m.measure(ctx, f, m.peers[at], round)
				if err != nil {
					return err
				}
				m.batches[at][i] = append(m.batches[at][i], b)
				m.logf("round %d: %s: %s: %.1f/s", round+1, f.name, m.peers[at].name, b.rate())
			}
		}
	}
	return nil
}

// warmupShare is the share of the requests of a round that are sent before the measured ones.
const warmupShare = 0.1

// measure measures one round of a figure on one server.
func (m *measurement) measure(ctx context.Context, f figure, p *peer, round int) (batch, error) {
	clients := m.dataset.clients
	count := clients * ceilDiv(max(1, int(float64(m.settings.Requests)*f.share)), clients)
	warmup := clients * ceilDiv(int(float64(count)*warmupShare), clients)
	begin := clients*checkedRequests + round*(warmup+count)
	requests := func(n int) []request { return []request{f.request(m.dataset, n)} }
	if _, err := p.sendAll(ctx, begin, warmup, requests); err != nil {
		return batch{}, err
	}
	busy, err := harness.AwaitQuiet(ctx, m.settings.quiet, harness.ReadBusyTime, harness.Pause)
	if err != nil {
		return batch{}, err
	}
	m.busiest = max(m.busiest, busy)
	return p.sendAll(ctx, begin+warmup, count, requests)
}

func (b batch) rate() float64 { return harness.Ratio(float64(len(b.times)), b.elapsed.Seconds()) }

// results returns the results of all figures.
func (m *measurement) results() []result {
	var all []result
	for i, f := range figures {
		r := result{
			Name:      f.name,
			Title:     f.title,
			Berth:     resultOf(m.batches[0][i]),
			Placement: resultOf(m.batches[1][i]),
		}
		r.Ratio = harness.Ratio(r.Berth.Rate, r.Placement.Rate)
		all = append(all, r)
	}
	return all
}

// resultOf adds up the rounds of a figure on one server.
func resultOf(rounds []batch) serverResult {
	var total batch
	var r serverResult
	for _, b := range rounds {
		total.times = append(total.times, b.times...)
		total.elapsed += b.elapsed
		r.Conflicts += b.conflicts
		r.Rounds = append(r.Rounds, b.rate())
	}
	r.Requests, r.Rate = len(total.times), total.rate()
	r.P50 = harness.Milliseconds(harness.Percentile(total.times, 50))
	r.P99 = harness.Milliseconds(harness.Percentile(total.times, 99))
	return r
}
