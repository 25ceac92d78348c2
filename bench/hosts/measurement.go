package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"berth/bench/harness"
)

// measureSize starts the servers, and measures them with the agents of a number of hosts.
func measureSize(
	ctx context.Context,
	s settings,
	hosts int,
	logf func(string, ...any),
) (r sizeResult, m harness.Machine, err error) {
	st, err := harness.StartStack(ctx, s.stack, logf)
	if err != nil {
		return r, m, err
	}
	defer st.Close()
	// The processes of the stack end st.Context if they end too early. The DHCP agent is one of the two
	// agents whose heartbeats WithHeartbeats sends.
	err = st.API.WithHeartbeats(st.Context, harness.HeartbeatInterval, func(ctx context.Context) (err error) {
		r, err = measureLoad(ctx, s, st, hosts, logf)
		return err
	})
	if err != nil {
		return r, m, fmt.Errorf("%w%s", harness.FirstCause(st.Context, err), st.ErrorLogTail())
	}
	return r, st.Machine, nil
}

// measureLoad inserts the agents, and measures the window while agents and servers send their requests.
func measureLoad(ctx context.Context, s settings, st *harness.Stack, hosts int, logf func(string, ...any)) (sizeResult, error) {
	created, err := newPorts(ctx, st, hosts)
	if err != nil {
		return sizeResult{}, err
	}
	alive, err := newHeartbeats(ctx, st, hosts, min(s.clients, hosts))
	if err != nil {
		return sizeResult{}, err
	}
	if err := insertAgents(ctx, st, hosts, s.interval); err != nil {
		return sizeResult{}, err
	}
	logf("%d agents are inserted", hosts)
	w := window{begin: time.Now()}
	w.from = w.begin.Add(s.interval)
	w.to = w.from.Add(s.window)
	m := measurement{
		stack:      st,
		window:     w,
		heartbeats: newLoad(float64(hosts), s.interval, w),
		ports:      newLoad(float64(hosts)*s.portsPerHostHour, time.Hour, w),
	}
	sending, stop := context.WithCancel(ctx)
	var senders sync.WaitGroup
	defer senders.Wait()
	defer stop()
	senders.Go(func() { m.heartbeats.run(sending, alive.connections.Count(), alive.send) })
	senders.Go(func() { m.ports.run(sending, s.clients, created.activate) })
	return m.measure(ctx, hosts)
}

// measurement measures one number of hosts while the loads run.
type measurement struct {
	stack      *harness.Stack
	window     window
	heartbeats *load
	ports      *load
}

// measure waits for the end of the window and returns what happened in it.
func (m measurement) measure(ctx context.Context, hosts int) (sizeResult, error) {
	r := sizeResult{Hosts: hosts}
	harness.Pause(ctx, time.Until(m.window.from))
	before, err := m.readUpdates(ctx)
	if err != nil {
		return r, err
	}
	use, err := harness.WatchCPU(func() error {
		harness.Pause(ctx, time.Until(m.window.to))
		return ctx.Err()
	})
	if err != nil {
		return r, err
	}
	if err := use.CPU.CheckParts(); err != nil {
		return r, err
	}
	r.Cores, r.OtherCores = use.CPU.SecondsOfParts(), use.OtherCores
	for part := range r.Cores {
		r.Cores[part] /= use.Seconds
	}
	r.Heartbeats, r.Ports = m.heartbeats.result(), m.ports.result()
	if err := m.readEnd(ctx, &r); err != nil {
		return r, err
	}
	after, err := m.readUpdates(ctx)
	r.HOT = harness.Ratio(float64(after.inPlace-before.inPlace), float64(after.all-before.all))
	r.Behind = r.findBehind()
	return r, err
}

// readEnd reads the state of the servers at the end of the window, while the loads still run.
func (m measurement) readEnd(ctx context.Context, r *sizeResult) (err error) {
	if r.Journal, err = m.readJournal(ctx); err != nil {
		return err
	}
	if r.Silent, err = countSilent(ctx, m.stack.API); err != nil {
		return err
	}
	if err := m.stack.Rows.QueryRow(ctx, `select pg_total_relation_size('agent')`).Scan(&r.AgentBytes); err != nil {
		return fmt.Errorf("read the size of the table agent: %w", err)
	}
	if r.APIBytes, err = m.stack.API.ResidentMemory(); err != nil {
		return err
	}
	r.RelayBytes, err = m.stack.Relay.ResidentMemory()
	return err
}

// readJournal counts the journal entries of the window, and those that are unfinished.
func (m measurement) readJournal(ctx context.Context) (r journalResult, err error) {
	err = m.stack.Rows.QueryRow(ctx, `
		select count(*) filter (where created_at >= $1 and created_at < $2), count(*) filter (where finished_at >= $1 and finished_at < $2),
			count(*) filter (where finished_at is null),
			coalesce(extract(epoch from clock_timestamp() - min(created_at) filter (where finished_at is null)), 0)::float8
		from journal_entry`, m.window.from, m.window.to).Scan(&r.Created, &r.Finished, &r.Unfinished, &r.Oldest)
	if err != nil {
		return r, fmt.Errorf("count the journal entries: %w", err)
	}
	return r, nil
}

// updates are the updates of the table agent since the start of PostgreSQL.
type updates struct {
	all     int64
	inPlace int64 // that changed no index (HOT)
}

func (m measurement) readUpdates(ctx context.Context) (u updates, err error) {
	err = m.stack.Rows.QueryRow(ctx, `select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'agent'`).
		Scan(&u.all, &u.inPlace)
	if err != nil {
		return u, fmt.Errorf("read the updates of the table agent: %w", err)
	}
	return u, nil
}
