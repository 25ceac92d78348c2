package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"berth/bench/dataset"
	"berth/bench/harness"
	"berth/internal/contract"
)

const (
	// startDelay is the time after which the first task of an execution would run.
	startDelay = 365 * 24 * time.Hour
	// concurrentStarts is the number of executions that are started at the same time.
	concurrentStarts = 64
)

// awaitEnds waits until the executions of the first full sync have ended. Without a worker they would stay
// open, and the first comparison would find them.
func (m *measurement) awaitEnds(ctx context.Context) error {
	query := fmt.Sprintf(`WorkflowType IN ('%s') AND ExecutionStatus = 'Running'`, strings.Join(contract.EntityWorkflows, "', '"))
	for open := true; open; harness.Pause(ctx, 200*time.Millisecond) {
		err := harness.RetryUnavailable(ctx, func() error {
			counted, err := m.servers.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
			open = counted.GetCount() > 0
			return err
		})
		if err != nil {
			return fmt.Errorf("count the open executions: %w", err)
		}
	}
	return nil
}

// openExecutions starts an execution for each port and for each pending lease, as the relay would, but with a
// delay of a year: the execution is open, is listed, has the search attributes of its row and awaits signals,
// and costs only its start.
func (m *measurement) openExecutions(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentStarts)
	for n := range m.idlePorts() {
		port := dataset.PortOf(n + 1)
		group.Go(func() error {
			return m.openExecution(ctx, contract.Port, contract.PortID(port.ID), contract.Attributes{
				Resource: "port",
				Project:  port.Project,
				Host:     port.Host,
				Status:   port.Status,
			})
		})
	}
	for n := range dataset.PendingLeases(m.idlePorts()) {
		group.Go(func() error {
			return m.openExecution(ctx, contract.Lease, contract.LeaseID(dataset.ID(dataset.PendingLease, n)), contract.Attributes{
				Resource: "lease",
				Project:  dataset.Project(n),
				Status:   "PENDING",
			})
		})
	}
	return group.Wait()
}

func (m *measurement) openExecution(ctx context.Context, workflow, id string, a contract.Attributes) error {
	var attributes []temporal.SearchAttributeUpdate
	for _, one := range []struct{ name, value string }{
		{contract.AttributeResource, a.Resource},
		{contract.AttributeProject, a.Project},
		{contract.AttributeHost, a.Host},
		{contract.AttributeStatus, a.Status},
	} {
		if one.value != "" {
			attributes = append(attributes, temporal.NewSearchAttributeKeyKeyword(one.name).ValueSet(one.value))
		}
	}
	options := client.StartWorkflowOptions{
		ID:                       id,
		TaskQueue:                contract.TaskQueue(workflow),
		StartDelay:               startDelay,
		TypedSearchAttributes:    temporal.NewSearchAttributes(attributes...),
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, // a repeated call
	}
	return harness.RetryUnavailable(ctx, func() error {
		_, err := m.servers.Temporal.ExecuteWorkflow(ctx, options, workflow, contract.Input{Key: contract.Key(id)})
		return err
	})
}

// The comparisons of the reconciler that measureIdle awaits, as the table projection names them.
const (
	executions = "executions"
	usage      = "usage"
)

// measureIdle starts a process with all roles and measures what it does while no client sends requests: until
// it has compared all rows with Temporal, and all inventories with the allocations, for the first time, and
// then for a period.
func (m *measurement) measureIdle(ctx context.Context) (err error) {
	r := &m.result.Idle
	r.Ports = m.idlePorts()
	begin, err := m.clock(ctx)
	if err != nil {
		return err
	}
	a, process, err := m.start(ctx, harness.DefaultRoles)
	if err != nil {
		return err
	}
	defer func() {
		err = m.stop(a, &process, err)
		m.result.AllRoles = process
	}()
	ended, err := m.awaitComparison(ctx, usage, begin)
	if err != nil {
		return err
	}
	r.FirstUsage = ended.Sub(begin).Seconds()
	if ended, err = m.awaitComparison(ctx, executions, begin); err != nil {
		return err
	}
	r.FirstComparison = ended.Sub(begin).Seconds()
	if err := m.checkComparison(ctx); err != nil {
		return err
	}
	return m.measurePeriod(ctx, a)
}

// measurePeriod measures a period from the end of the first comparison to the end of a later one. The period
// is not shorter than the time of the settings. So comparisons, which are rare when they are long, have their
// share in what a minute costs.
func (m *measurement) measurePeriod(ctx context.Context, a *harness.API) error {
	first, err := m.readWork(ctx, a)
	if err != nil {
		return err
	}
	begin, err := m.clock(ctx)
	if err != nil {
		return err
	}
	end, comparisons := begin, 0
	for ; end.Sub(begin).Seconds() < m.Idle; comparisons++ {
		if end, err = m.awaitComparison(ctx, executions, end); err != nil {
			return err
		}
	}
	last, err := m.readWork(ctx, a)
	if err != nil {
		return err
	}
	r, minutes := &m.result.Idle, end.Sub(begin).Minutes()
	r.Seconds, r.Comparisons = end.Sub(begin).Seconds(), float64(comparisons)/minutes
	r.RowsRead = float64(last.rows-first.rows) / minutes
	r.Sweep = harness.Ratio(last.sweepSeconds-first.sweepSeconds, last.sweeps-first.sweeps)
	r.CPU = map[string]float64{}
	for component, used := range last.cpu.Since(first.cpu) {
		r.CPU[component] = used.Seconds() / minutes
	}
	return nil
}

// clock returns the time of the database.
func (m *measurement) clock(ctx context.Context) (now time.Time, err error) {
	err = m.servers.Rows.QueryRow(ctx, `select clock_timestamp()`).Scan(&now)
	return now, err
}

// awaitComparison waits for the end of a comparison that ends after a time, and returns when it has ended.
func (m *measurement) awaitComparison(ctx context.Context, name string, after time.Time) (ended time.Time, err error) {
	for !ended.After(after) {
		err := m.servers.Rows.QueryRow(ctx, `
			select coalesce(max(compared_at), $2) from projection where name = $1`, name, after).Scan(&ended)
		if err != nil {
			return ended, fmt.Errorf("await the comparison %s: %w", name, err)
		}
		harness.Pause(ctx, 100*time.Millisecond)
	}
	return ended, nil
}

// checkComparison fails if the executions of the dataset are not those that berth expects.
func (m *measurement) checkComparison(ctx context.Context) error {
	var different int64
	var examples string
	err := m.servers.Rows.QueryRow(ctx, `
		select sum(unattended + orphans + different), string_agg(array_to_string(examples, ', '), ', ')
		from projection`).Scan(&different, &examples)
	if err == nil && different > 0 {
		err = fmt.Errorf("the dataset has %d differences between rows and Temporal, for example %s", different, examples)
	}
	return err
}

// work is what the servers have done since their start.
type work struct {
	cpu                  harness.CPUTimes
	rows                 int64 // rows and index entries that PostgreSQL has read in berth's database
	sweeps, sweepSeconds float64
}

// readWork reads the CPU times of the processes, the statistics of PostgreSQL and the metrics of berth.
func (m *measurement) readWork(ctx context.Context, a *harness.API) (w work, err error) {
	if w.cpu, err = harness.ReadCPUTimes(); err != nil {
		return w, err
	}
	if err := m.servers.Rows.QueryRow(ctx, `
		select tup_returned + tup_fetched from pg_stat_database where datname = current_database()`).Scan(&w.rows); err != nil {
		return w, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Base+"/metrics", nil)
	if err != nil {
		return w, err
	}
	answer, err := a.HTTP.Do(r)
	if err != nil {
		return w, err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch name {
		case `berth_activity_duration_seconds_sum{activity="Sweep"}`:
			w.sweepSeconds, err = strconv.ParseFloat(value, 64)
		case `berth_activity_duration_seconds_count{activity="Sweep"}`:
			w.sweeps, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return w, fmt.Errorf("read the metric %s: %w", name, err)
		}
	}
	return w, lines.Err()
}
