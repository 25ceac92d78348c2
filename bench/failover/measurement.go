package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"berth/bench/harness"
	"berth/internal/resultfile"
)

// measure measures one failover, prints the result, and writes it to the JSON file.
func measure(
	ctx context.Context,
	s settings,
	st *harness.Stack,
	stdout io.Writer,
	logf func(string, ...any),
) error {
	l, err := newLoad(ctx, st)
	if err != nil {
		return err
	}
	sending, stop := context.WithCancel(ctx)
	defer stop()
	var clients sync.WaitGroup
	l.began = time.Now()
	clients.Go(func() { l.run(sending, s.stack.Clients, s.rate) })
	events, err := failOver(ctx, s, st, l, logf)
	stop()
	clients.Wait()
	if err != nil {
		return err
	}
	r := newReport(s, st.Machine, l, events)
	if err := st.AwaitMirrored(ctx); err != nil {
		return err
	}
	r.Mirrored = time.Since(l.began).Seconds()
	if r.Lost, err = l.countLost(ctx, st); err != nil {
		return err
	}
	r.print(stdout)
	return resultfile.WriteSection(s.out, section, r)
}

// failOver lets the primary fail while the clients send requests. It returns when each step was complete.
func failOver(ctx context.Context, s settings, st *harness.Stack, l *load, logf func(string, ...any)) ([]event, error) {
	var events []event
	for _, step := range []struct {
		after time.Duration
		done  string
		do    func(context.Context) error
	}{
		{s.before, killed, st.Postgres.Kill},
		{s.outage, promoted, st.Standby.Promote},
		{s.after, returned, func(ctx context.Context) error { return st.Postgres.Rejoin(ctx, st.Standby) }},
		{s.rest, "", func(ctx context.Context) error { return l.awaitWrite(ctx, events[1].At) }},
	} {
		harness.Pause(ctx, step.after)
		if err := step.do(ctx); err != nil {
			return nil, harness.FirstCause(ctx, err)
		}
		if step.done != "" {
			events = append(events, event{At: time.Since(l.began).Seconds(), Name: step.done})
			logf("%s", step.done)
		}
	}
	return events, nil
}

// countLost counts the acknowledged writes that are not in the rows of the promoted server.
func (l *load) countLost(ctx context.Context, st *harness.Stack) (lost int, err error) {
	err = st.Rows.QueryRow(ctx, `
		select
			(select count(*) from unnest($1::text[]) as a (uuid) where not exists (select from consumer c where c.uuid = a.uuid)) +
			(select count(*) from unnest($2::text[]) as a (id) where not exists (select from network n where n.id::text = a.id))`,
		l.consumers, l.networks).Scan(&lost)
	if err != nil {
		return 0, fmt.Errorf("count the lost writes: %w", err)
	}
	return lost, nil
}
