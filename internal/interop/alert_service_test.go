package interop

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
)

// remedy runs the command with which a runbook ends the cause, with values for its placeholders, and returns
// what the command prints.
func (d *alertDeployment) remedy(command string, values ...string) string {
	d.Helper()
	if command == "" {
		d.Error("the runbook has no command that ends the cause, want one")
		return ""
	}
	return starter(d.Deployment, d.api.URL, strings.NewReplacer(values...).Replace(command))
}

// portID returns the ID of the port with the given name.
func (d *alertDeployment) portID(name string) string {
	d.Helper()
	return d.Rows(`select id::text from port where name = $1`, name)[0]
}

// repeatedly calls a function with pauses until `stop` is called or the test ends.
func (d *alertDeployment) repeatedly(pause time.Duration, f func()) (stop func()) {
	var running sync.WaitGroup
	over := make(chan struct{})
	stop = sync.OnceFunc(func() {
		close(over)
		running.Wait()
	})
	d.Cleanup(stop)
	running.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(pause):
				f()
			}
		}
	})
	return stop
}

// startHeartbeats lets the agents send heartbeats until stopHeartbeats is called.
func (d *alertDeployment) startHeartbeats() {
	d.Helper()
	d.api.RegisterAgents()
	d.stopHeartbeats = d.repeatedly(10*time.Second, d.api.RegisterAgents)
}

// controllerAway breaks every connection to the controller; changes of networks and an audit wait for an
// hour.
var controllerAway = alertScenario{
	name: "the controller does not answer",
	alerts: map[string][]string{
		"BerthControllerAway": {`FAIL +OpenDaylight`, `create +network`},
		"BerthJournalLate":    {`FAIL +OpenDaylight`, `FAIL +journal +the oldest entry has waited for 1h`},
		"BerthRunStalled":     {`FAIL +overdue +.*odl/audit`, `audit .*running`, `(?i)controller`},
	},
	fault: func(d *alertDeployment) func(map[string]string) {
		d.AwaitNone("all journal entries are completed", servertest.UnfinishedEntries)
		away := func(*http.Request) { panic(http.ErrAbortHandler) }
		d.Intercept.Store(&away)
		for i := range 8 {
			d.api.CreateNetwork(fmt.Sprintf("n-%d", i))
		}
		d.api.Must("POST", "/journal/v1/runs", servertest.Object{"kind": "audit"})
		storetest.ExecScript(d.T, d.Database, `
			update journal_entry set created_at = created_at - interval '1 hour' where finished_at is null;
			update mirror_run set updated_at = updated_at - interval '1 hour' where finished_at is null`)
		return func(map[string]string) { d.Intercept.Store(nil) }
	},
}

// novaAway stops Nova, which has shown the hosts as down before; the event of a port waits for an hour, and a
// lease ends.
var novaAway = alertScenario{
	name: "Nova does not answer",
	alerts: map[string][]string{
		"BerthDeliveriesLate":    {`FAIL +Nova .*connection refused`},
		"BerthReservationsFail":  {`FAIL +Nova .*connection refused`, `Nova has failed since .*connection refused`},
		"BerthHostsQuarantined":  {`node-1 .*gold .*Nova`},
		"BerthHostsDownTogether": {`node-1 +false`},
		"BerthLeftoversStay":     {`FAIL +Nova .*connection refused`},
	},
	fault: func(d *alertDeployment) func(map[string]string) {
		lease := "/reservation/v1/leases/" + d.Rows(`select id::text from lease`)[0]
		d.Await("the lease is ACTIVE", harness.LeaseStatusIs(d.api, lease, "ACTIVE"))
		d.nova.Stop()
		harness.SetDateToNow(d.api, lease, "end_date")
		d.api.Must("POST", "/agent/v1/reports", servertest.ReportsBody(d.portID("db")))
		d.AwaitActive(d.api, []string{d.portID("db")})
		storetest.Exec(d.T, d.Database, `update nova_event set created_at = created_at - interval '1 hour'`)
		storetest.Exec(d.T, d.Database, `
			insert into reservation_leftover (reservation_id, resource_type, project_id, services, due_at)
			values (gen_random_uuid(), 'physical:host', 'p', '{}', now() - interval '1 hour')`)
		storetest.Exec(d.T, d.Database, `
			update host
			set reservable = false, silent_at = now()`)
		return func(map[string]string) {
			if err := d.nova.Start(); err != nil {
				d.Fatal(err)
			}
			// The sweep, which repeats the removal and reads the states of the hosts, is paused in tests.
			storetest.Exec(d.T, d.Database, `delete from reservation_leftover`)
			storetest.Exec(d.T, d.Database, `
				update host
				set reservable = true, silent_at = null`)
		}
	},
}

var rabbitMQAway = alertScenario{
	name:   "RabbitMQ does not answer",
	alerts: map[string][]string{"BerthRabbitMQAway": {`FAIL +RabbitMQ .*connection refused`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		d.rabbitMQ.Stop()
		return func(map[string]string) {
			if err := d.rabbitMQ.Start(); err != nil {
				d.Fatal(err)
			}
		}
	},
}

// agentsSilent lets an hour pass in which the agents send no heartbeats and do not report about a port.
var agentsSilent = alertScenario{
	name: "agents do not report",
	alerts: map[string][]string{
		"BerthAgentsDown":   {`Open vSwitch agent +cmp-1 +false`},
		"BerthPortsBlocked": {`web .*DOWN`, `Open vSwitch agent +cmp-1 +false`, `L2 on cmp-1`},
		"BerthPortsOverdue": {`FAIL +overdue +.*of the kind port: port/\S+ for .*L2 on cmp-1`, `L2 on cmp-1`},
	},
	fault: func(d *alertDeployment) func(map[string]string) {
		d.stopHeartbeats()
		storetest.ExecScript(d.T, d.Database, `
			update agent set heartbeat_at = heartbeat_at - interval '1 hour';
			update block set since = since - interval '1 hour', deadline = deadline - interval '1 hour'
			where object_id = (select id from port where name = 'web')`)
		return func(map[string]string) {
			d.startHeartbeats()
			d.api.Must("POST", "/agent/v1/reports", servertest.ReportsBody(d.portID("web")))
		}
	},
}

// reportsUnsigned lets an agent without a key repeat a report until the scenario mends the fault.
var reportsUnsigned = alertScenario{
	name:   "an agent does not sign its reports",
	alerts: map[string][]string{"BerthReportsRefused": {`cmp-1`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		const report = "starter signal port/app --entity L2 --host cmp-1"
		stop := d.repeatedly(time.Second, func() { starter(d.Deployment, d.api.URL, report) })
		return func(remedies map[string]string) {
			stop()
			key := filepath.Join(d.TempDir(), "key.pem")
			private := d.remedy(remedies["BerthReportsRefused"], "HOST", "cmp-1")
			if err := os.WriteFile(key, []byte(private), 0o600); err != nil {
				d.Fatal(err)
			}
			starter(d.Deployment, d.api.URL, report+" --key "+key)
			d.AwaitNone("the signed report is applied",
				`select entity from block where entity = 'L2' and object_id = (select id from port where name = 'app')`)
		}
	},
}
