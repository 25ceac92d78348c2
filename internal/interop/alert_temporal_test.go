package interop

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
)

// startServices starts a process with the role api, which uses stubs of Nova and of the controller, and a
// RabbitMQ behind a proxy. The scenarios start the processes with the other roles.
func startServices(t *testing.T) *alertDeployment {
	t.Helper()
	d := &alertDeployment{}
	d.Deployment, d.temporal = servertest.SharedDeployment(t)
	broker, err := devstack.StartRabbitMQ(t.Context(), t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Kill)
	rabbitMQ, err := url.Parse(broker.URL(0))
	if err != nil {
		t.Fatal(err)
	}
	d.rabbitMQ = harness.NewLink(t, rabbitMQ.Host)
	rabbitMQ.Host = d.rabbitMQ.Listen
	d.nova, err = devstack.Serve(0, d.Nova)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.nova.Stop)
	d.Settings = append(
		d.Settings,
		"BERTH_NOVA_URL="+d.nova.URL,
		"BERTH_RABBITMQ_URL="+rabbitMQ.String(),
		"BERTH_LEASE_PATIENCE=1s",
		"BERTH_ODL_RETRY_COUNT=1",
		"BERTH_AGENT_SIGNATURES=required",
	)
	// The database is a copy, whose maintenance can be old already.
	storetest.Exec(t, d.Database, `update maintenance set completed_at = now()`)
	d.prometheus = startPrometheus(d.Deployment)
	d.api = d.startScraped("api")
	return d
}

// startScraped starts a process that Prometheus scrapes.
func (d *alertDeployment) startScraped(roles string) *servertest.Worker {
	d.Helper()
	w := d.StartWorker(roles)
	d.scrape(w.URL)
	return w
}

// createPort creates a port that waits for its agents.
func (d *alertDeployment) createPort(network, name string) {
	d.Helper()
	port := servertest.PortBody(network)
	port["name"] = name
	d.api.Create("port", port)
}

// relayMissing creates objects while no process has the role relay, and an hour passes.
var relayMissing = alertScenario{
	name: "no process has the role relay",
	alerts: map[string][]string{
		"BerthNotesLate":     {`FAIL +notes +.*\n +Start a process with the role relay`, `port/\S+ `},
		"BerthComparisonOld": {`FAIL +executions +.* 1h0m\d+s ago\n +Start a process with the role relay`},
		"BerthAuditLate":     {`FAIL +audit log +\d+ records wait.*\n +Start a process with the role relay`},
	},
	fault: func(d *alertDeployment) func(map[string]string) {
		network := d.api.CreateNetwork("blue")
		d.api.CreateSubnet(network)
		d.createPort(network, "spare")
		harness.CreateHostLease(d.api, 30*time.Minute, 24*time.Hour)
		storetest.ExecScript(d.T, d.Database, `
			update note set due_at = due_at - interval '1 hour';
			insert into projection (name, compared_at, compared) values ('executions', now() - interval '1 hour', 0)`)
		return func(map[string]string) { d.startScraped("relay") }
	},
}

// sweepPaused lets an hour pass in which the schedule of the sweep is paused, as it is in all tests.
var sweepPaused = alertScenario{
	name:   "the schedule of the sweep is paused",
	alerts: map[string][]string{"BerthMaintenanceOld": {`FAIL +maintenance +.*sweep was completed 1h.*is paused`, `The schedule is paused`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		storetest.Exec(d.T, d.Database, `update maintenance set completed_at = now() - interval '1 hour'`)
		return func(map[string]string) {
			storetest.Exec(d.T, d.Database, `update maintenance set completed_at = now()`)
		}
	},
}

// workersMissing lets a lease become due, and starts a workflow without a row, while no process runs
// workflows.
var workersMissing = alertScenario{
	name: "no process has the role temporal",
	alerts: map[string][]string{
		"BerthLeasesLate":      {`FAIL +workers +no worker polls .*leases`, `gold .*PENDING`},
		"BerthTemporalDiffers": {`FAIL +executions +1 executions have no row.*: port/`, `FAIL +workers +no worker polls ports`},
	},
	fault: func(d *alertDeployment) func(map[string]string) {
		storetest.ExecScript(d.T, d.Database, `
			update lease set start_at = now() - interval '1 hour';
			update event set at = now() - interval '1 hour' where event_type = 'start_lease'`)
		id := uuid.NewString()
		_, err := d.temporal.ExecuteWorkflow(
			d.Context(),
			client.StartWorkflowOptions{ID: contract.PortID(id), TaskQueue: contract.TaskQueue(contract.Port)},
			contract.Port,
			contract.Input{Key: id},
		)
		if err != nil {
			d.Fatal(err)
		}
		return func(map[string]string) {
			d.startScraped("temporal")
			d.startHeartbeats()
			for _, name := range []string{"web", "db", "app"} {
				d.createPort(d.Rows(`select id::text from network`)[0], name)
			}
		}
	},
}

// noteRefused adds a note to the outbox that Temporal refuses, because a search attribute is too long.
var noteRefused = alertScenario{
	name:   "Temporal refuses a note",
	alerts: map[string][]string{"BerthNotesSetAside": {`port/\S+ .*(?i:size|too large|limit)`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		storetest.Exec(d.T, d.Database, `
			insert into note (workflow_id, workflow, fresh, summary, attributes, due_at)
			select 'port/' || id, 'Port', false, '', jsonb_build_object('project', repeat('x', 100000)), now()
			from port where name = 'spare'`)
		return func(remedies map[string]string) {
			storetest.Exec(d.T, d.Database, `update note set attributes = '{}' where set_aside_at is not null`)
			id := d.Rows(`select workflow_id from note where set_aside_at is not null`)[0]
			d.remedy(remedies["BerthNotesSetAside"], "WORKFLOW-ID", id)
		}
	},
}
