package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"berth/internal/contract"
	"berth/internal/notify/notifytest"
	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
)

// observation is everything that the checks compare: the rows, and all that berth derives from them.
type observation struct {
	rows       map[string]row // by kind and ID
	unfinished []string       // unfinished work that the rows show
	executions map[string]execution
	failed     []string // executions that failed or timed out
	mirrored   map[string]string
	requests   []odltest.Request // requests that berth has sent to the controller
	violations []string          // requests that the controller got in a wrong order
	plugged    map[string]int    // network-vif-plugged events that Nova has received, by port
	aggregates []notifytest.Aggregate
	servers    []string           // hosts that can be reserved
	gauges     map[string]float64 // metrics by name, each with its highest value of all processes
	crashes    []string           // output of processes that panicked
}

// row is a row of the database with the attributes that the checks compare.
type row struct {
	name, host, status string
	blocks             []string // entities that block a port
}

// execution is an open execution of a workflow.
type execution struct{ kind, status, host string }

// rowsQuery reads all objects that the ledger or the controller can contain.
const rowsQuery = `
	select 'network/' || id, name, '', '', '{}'::text[] from network
	union all select 'subnet/' || id, name, '', '', '{}' from subnet
	union all select 'port/' || id, name, host, status, array(select entity from block where object_id = port.id order by entity) from port
	union all select 'trunk/' || id, name, '', '', '{}' from trunk
	union all select 'security_group/' || id, name, '', '', '{}' from security_group
	union all select 'security_group_rule/' || id, '', '', '', '{}' from security_group_rule
	union all select 'lease/' || id, name, '', case when ` + leaseHasEnded + ` then '` + endedLease + `' else status end, '{}' from lease`

// endedLease is the status in an observation of a lease on which no work is left: the lease is TERMINATED, or
// it is in ERROR, its end has been tried, and it holds no hosts, floating IPs, network segments or devices.
const endedLease = "ended"

const leaseHasEnded = `(status = 'TERMINATED' or status = 'ERROR'
	and not exists (select from event e where e.lease_id = lease.id and e.event_type = 'end_lease' and e.status = 'UNDONE')
	and not exists (
		select from reservation r
		left join host_allocation h on h.reservation_id = r.id
		left join floatingip_allocation f on f.reservation_id = r.id
		left join resource_allocation n on n.reservation_id = r.id
		where r.lease_id = lease.id and (h.host_id is not null or f.floatingip_id is not null or n.resource_id is not null)))`

// unfinishedQuery reads work that must end soon after the last fault.
const unfinishedQuery = `
	select format('journal entry %s (%s %s %s) is %s after %s attempts: %s', seq, operation, object_type, object_id, state, attempt, last_error) from journal_entry where state <> 'completed'
	union all select format('note for %s, due since %s, after %s attempts: %s', workflow_id, now() - due_at, attempts, last_error) from note where due_at < now() - interval '2 seconds'
	union all select format('Nova event %s of port %s since %s', name, port_id, now() - created_at) from nova_event
	union all select format('notification %s %s of network %s', kind, event, network_id) from agent_notification where sent_at is null
	union all select format('%s %s since %s', kind, state, now() - created_at) from mirror_run where finished_at is null
	union all select format('change of host %s in Nova', service_name) from host_pooling
	union all select format('lease %s is %s; its end is %s: %s', id, status, end_at, (select string_agg(r.last_error, ' ') from reservation r where r.lease_id = lease.id))
		from lease where status not in ('PENDING', 'ACTIVE') and not ` + leaseHasEnded + ` or status = 'PENDING' and start_at < now() - interval '2 seconds'
			or status = 'ACTIVE' and end_at < now() - interval '2 seconds'
	limit 40`

// observe reads the present state of the deployment.
func (d *RandomDeployment) observe(ctx context.Context) (*observation, error) {
	w := &observation{
		rows:       map[string]row{},
		executions: map[string]execution{},
		mirrored:   map[string]string{},
		plugged:    map[string]int{},
		gauges:     map[string]float64{},
	}
	for _, read := range []func(context.Context, *observation) error{d.readRows, d.readExecutions, d.readGauges} {
		if err := read(ctx, w); err != nil {
			return nil, err
		}
	}
	for _, r := range d.Controller.Records() {
		if r.Object != nil && r.ID != servertest.Canary {
			name, _ := r.Object["name"].(string)
			w.mirrored[r.Type+"/"+r.ID] = name
		}
	}
	w.requests, w.violations = d.Controller.Requests(), d.Controller.Violations()
	w.plugged = CountNovaEvents(d.Deployment, "network-vif-plugged")
	w.aggregates = d.Nova.ComputeState().Aggregates
	for _, p := range d.Processes {
		p.mu.Lock()
		w.crashes = append(w.crashes, p.crashes...)
		if out := p.process.Output(); hasCrashed(out) {
			w.crashes = append(w.crashes, out)
		}
		p.mu.Unlock()
	}
	return w, nil
}

func (d *RandomDeployment) readRows(ctx context.Context, w *observation) error {
	c, err := pgx.Connect(ctx, d.Postgres.URL)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.Background()) }()
	var key string
	var r row
	found, err := c.Query(ctx, rowsQuery)
	if err != nil {
		return err
	}
	if _, err = pgx.ForEachRow(found, []any{&key, &r.name, &r.host, &r.status, &r.blocks}, func() error {
		w.rows[key] = r
		return nil
	}); err != nil {
		return err
	}
	for query, list := range map[string]*[]string{unfinishedQuery: &w.unfinished, `select service_name from host order by 1`: &w.servers} {
		found, err := c.Query(ctx, query)
		if err != nil {
			return err
		}
		if *list, err = pgx.CollectRows(found, pgx.RowTo[string]); err != nil {
			return err
		}
	}
	return nil
}

func (d *RandomDeployment) readExecutions(ctx context.Context, w *observation) error {
	return d.listExecutions(ctx, `ExecutionStatus in ("Running", "Failed", "TimedOut")`, w)
}

func (d *RandomDeployment) listExecutions(ctx context.Context, query string, w *observation) error {
	var page []byte
	for {
		a, err := d.client.ListWorkflow(
			ctx,
			&workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 1000, NextPageToken: page},
		)
		if err != nil {
			return err
		}
		for _, info := range a.GetExecutions() {
			id, kind := info.GetExecution().GetWorkflowId(), info.GetType().GetName()
			if status := info.GetStatus().String(); status != "Running" {
				w.failed = append(w.failed,
					fmt.Sprintf("%s (%s) %s", id, info.GetExecution().GetRunId(), status))
				continue
			}
			e := execution{kind: kind}
			for name, value := range map[string]*string{contract.AttributeStatus: &e.status, contract.AttributeHost: &e.host} {
				if p, ok := info.GetSearchAttributes().GetIndexedFields()[name]; ok {
					_ = converter.GetDefaultDataConverter().FromPayload(p, value)
				}
			}
			w.executions[id] = e
		}
		if page = a.GetNextPageToken(); len(page) == 0 {
			return nil
		}
	}
}

// driftGauges are the metrics that say how far something outside of the rows differs from the rows.
var driftGauges = []string{
	"berth_unattended_rows",
	"berth_orphan_executions",
	"berth_due_late_seconds",
	"berth_search_attribute_drift",
	"berth_hosts_quarantined",
	"berth_host_pool_changes",
	"berth_reservation_leftovers",
	"berth_lease_steps_interrupted",
}

func (d *RandomDeployment) readGauges(ctx context.Context, w *observation) error {
	for _, p := range d.Processes {
		metrics, err := p.metrics(ctx)
		if err != nil {
			return err
		}
		for name, value := range metrics {
			for _, g := range driftGauges {
				if strings.HasPrefix(name, g) {
					w.gauges[name] = max(w.gauges[name], value)
				}
			}
		}
	}
	return nil
}

// metrics reads the metrics of the process. The names have the labels.
func (p *BerthProcess) metrics(ctx context.Context) (map[string]float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] != "#" {
			all[fields[0]], _ = strconv.ParseFloat(fields[len(fields)-1], 64)
		}
	}
	return all, nil
}

// describe logs the row and the execution of an object whose workflow ID is the given key, so that a finding
// can be explained after the run.
func (d *RandomDeployment) describe(key string) {
	d.Helper()
	kind, id, _ := strings.Cut(key, "/")
	if kind != "lease" && kind != "port" {
		return
	}
	c, err := pgx.Connect(d.Context(), d.Postgres.URL)
	if err != nil {
		d.Log(err)
		return
	}
	defer func() { _ = c.Close(context.Background()) }()
	var row string
	if err := c.QueryRow(d.Context(), `select to_jsonb(o)::text from `+kind+` o where id = $1`, id).Scan(&row); err != nil {
		row = err.Error()
	}
	execution, err := d.client.DescribeWorkflowExecution(d.Context(), key, "")
	d.Logf("%s has the row %s and the execution %v (error %v)", key, row, execution, err)
}

// CountNovaEvents returns, for each port, how many external events with the given name the stub of Nova has
// received.
func CountNovaEvents(s *servertest.Deployment, event string) map[string]int {
	n := map[string]int{}
	for _, e := range s.Nova.Events() {
		if e.Name == event {
			n[e.Tag]++
		}
	}
	return n
}
