package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"berth/bench/dataset"
	"berth/bench/harness"
)

// measurement measures one size.
type measurement struct {
	settings
	size    int
	servers *harness.Stack
	result  sizeResult
	publish func() error // writes the results so far
	logf    func(string, ...any)
}

// The bytes that every size takes on the disk, and those of each provider with its port, its entry, its lease
// and the executions of Temporal. A size for which the disk has no room does not begin.
const (
	bytesAlone = 3 << 30
	bytesEach  = 20_000
)

// run starts the servers, fills the database and measures.
func (m *measurement) run(ctx context.Context) error {
	m.result = sizeResult{Size: m.size, Seconds: map[string]float64{}}
	if err := m.checkDisk(); err != nil {
		return err
	}
	var err error
	if m.servers, err = harness.StartStack(ctx, m.stack, m.logf); err != nil {
		return err
	}
	defer m.servers.Close()
	ctx = m.servers.Context
	if err := m.awaitEnds(ctx); err != nil {
		return err
	}
	m.servers.API.Stop() // each part starts the process that it measures
	for _, part := range []struct {
		name string
		of   string // part of the command line; empty: always
		run  func(context.Context) error
	}{
		{"fill", "", m.fill},
		{"executions", idlePart, m.openExecutions},
		{"idle", idlePart, m.measureIdle},
		{"fill_rest", "", m.fillRest},
		{"reads", readsPart, m.countReads}, // before further rows change the plans of queries
		{"routes", routesPart, m.measureRoutes},
	} {
		if part.of != "" && !slices.Contains(m.Parts, part.of) {
			continue
		}
		begin := time.Now()
		if err := harness.FirstCause(ctx, part.run(ctx)); err != nil {
			return fmt.Errorf("%s: %w%s", part.name, err, m.servers.ErrorLogTail())
		}
		m.result.Seconds[part.name] = time.Since(begin).Seconds()
		m.logf("%s: %s took %.0f s", harness.Thousands(m.size), part.name, time.Since(begin).Seconds())
		if err := m.publish(); err != nil {
			return err
		}
	}
	return nil
}

// checkDisk fails if the folder of the databases has too little room for the size.
func (m *measurement) checkDisk() error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(m.stack.Dir, &disk); err != nil {
		return fmt.Errorf("read the free space of %s: %w", m.stack.Dir, err)
	}
	free, needed := disk.Bavail*uint64(disk.Bsize), uint64(bytesAlone+m.size*bytesEach)
	if free < needed {
		return fmt.Errorf("%s has %d MiB, and the size needs about %d MiB", m.stack.Dir, free>>20, needed>>20)
	}
	return nil
}

// idlePorts returns the number of ports of the idle period.
func (m *measurement) idlePorts() int { return min(m.size, m.IdlePorts) }

// fill inserts the rows of the idle period.
func (m *measurement) fill(ctx context.Context) error {
	return dataset.Cloud(m.size, m.idlePorts()).Fill(ctx, m.servers.Postgres.URL)
}

// fillRest inserts the ports and leases that the idle period did not have, and measures the database.
func (m *measurement) fillRest(ctx context.Context) error {
	if n := m.idlePorts(); n < m.size {
		if err := dataset.Rest(m.size, n).Fill(ctx, m.servers.Postgres.URL); err != nil {
			return err
		}
	}
	return m.servers.Rows.QueryRow(ctx, `select pg_database_size(current_database())`).Scan(&m.result.DatabaseBytes)
}

// processSettings are the settings of the measured processes: quotas have their defaults, because a quota
// counts the objects of its project. Periodic audits are off: the stub of OpenDaylight has no object of the
// dataset, so that an audit would send all of them.
var processSettings = []string{"BERTH_QUOTA=", "BERTH_LEASE_QUOTA=", "BERTH_ODL_AUDIT_EVERY=off"}

// start starts a process with the roles, and measures the start.
func (m *measurement) start(ctx context.Context, roles string) (*harness.API, processResult, error) {
	var p processResult
	begin := time.Now()
	a, err := m.servers.StartBerth(ctx, "worker-"+roles, m.servers.Postgres.URL, roles, processSettings...)
	if err != nil {
		return nil, p, err
	}
	p.Ready = time.Since(begin).Seconds()
	p.StartBytes, err = a.ResidentMemory()
	return a, p, err
}

// stop stops the process, after the measurement of its memory.
func (m *measurement) stop(a *harness.API, p *processResult, err error) error {
	bytes, memoryErr := a.ResidentMemory()
	p.EndBytes = bytes
	a.Stop()
	return errors.Join(err, memoryErr)
}
