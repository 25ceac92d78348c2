package kills

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/odl/odltest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
	"berth/internal/torture/harness"
)

// ownTemporal is a deployment with its own Temporal server, whose data a test can damage.
type ownTemporal struct {
	*servertest.Deployment
	server *devstack.TestTemporal
	client client.Client
}

func newOwnTemporal(t *testing.T) *ownTemporal {
	t.Helper()
	server, c := harness.StartOwnTemporal(t)
	return &ownTemporal{
		servertest.NewDeployment(t, storetest.URL(t), "TEMPORAL_ADDRESS="+server.Address),
		server,
		c,
	}
}

// whileStopped stops the server, calls f, and starts the server again.
func (o *ownTemporal) whileStopped(f func(context.Context) error) {
	o.Helper()
	o.server.Stop()
	if err := f(o.Context()); err != nil {
		o.Fatal(err)
	}
	if err := o.server.Start(o.Context()); err != nil {
		o.Fatal(err)
	}
}

// awaitOpen waits until each of the workflows is open.
func (o *ownTemporal) awaitOpen(ids ...string) {
	o.Helper()
	for _, id := range ids {
		o.Await("workflow "+id+" is open", func() string { return notOpen(o.Deployment, o.client, id) })
	}
}

// notOpen returns "" if the workflow is open.
func notOpen(s *servertest.Deployment, c client.Client, id string) string {
	d, err := c.DescribeWorkflowExecution(s.Context(), id, "")
	if err != nil {
		return err.Error()
	}
	if status := d.GetWorkflowExecutionInfo().GetStatus(); status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return status.String()
	}
	return ""
}

// createWaitingPort creates a port that waits for its agents, and returns the port's ID.
func createWaitingPort(c *servertest.Worker) string {
	c.T.Helper()
	network := c.CreateNetwork("blue")
	c.CreateSubnet(network)
	return c.Create("port", servertest.PortBody(network))
}

// leaseWorkflow returns the workflow ID of the lease with the given path.
func leaseWorkflow(leasePath string) string {
	return contract.LeaseID(leasePath[strings.LastIndex(leasePath, "/")+1:])
}

// signalReports sends the reports of both agents of the ports as signals to the workflows of the ports.
func (o *ownTemporal) signalReports(ports ...string) {
	o.Helper()
	for _, p := range ports {
		for _, r := range []contract.Report{{Entity: "L2", Host: "cmp-1"}, {Entity: "DHCP", Host: "net-1"}} {
			if err := o.client.SignalWorkflow(o.Context(), contract.PortID(p), "", contract.SignalProvisioningComplete, r); err != nil {
				o.Errorf("signal the report of %s to port %s: got error %v, want none", r.Entity, p, err)
			}
		}
	}
}

// TestTemporalRestoredFromBackup_RowsGetTheirExecutionsAgain restores Temporal from a backup. The restored
// server has the same namespace ID, but lacks all executions that were created after the backup.
func TestTemporalRestoredFromBackup_RowsGetTheirExecutionsAgain(t *testing.T) {
	t.Parallel()
	o := newOwnTemporal(t)
	c := o.StartWorker("api,relay,temporal")
	c.AwaitReady()
	c.RegisterAgents()
	before := createWaitingPort(c)
	o.AwaitMirrored()
	o.awaitOpen(contract.PortID(before))
	o.whileStopped(o.server.CopyData)
	c.AwaitReady()
	after := createWaitingPort(c)
	starting := harness.CreateLeaseOf(c, "node-1", 30*time.Second, 24*time.Hour)
	later := harness.CreateLeaseOf(c, "node-2", 12*time.Hour, 24*time.Hour)
	o.awaitOpen(contract.PortID(after), leaseWorkflow(starting), leaseWorkflow(later))

	o.whileStopped(o.server.RestoreData)

	begin := time.Now()
	o.awaitOpen(contract.PortID(before), contract.PortID(after), leaseWorkflow(later))
	harness.LogTime(t, begin, "starting the lost executions again")
	o.Await("the lease is ACTIVE", harness.LeaseStatusIs(c, starting, "ACTIVE"))
	o.signalReports(before, after)
	o.AwaitActive(c, []string{before, after})
	o.AwaitMirrored()
	harness.LogTime(t, begin, "finishing all work after the restore")
}

// TestTemporalReplacedByEmptyOne_WorkContinuesWithoutRestart deletes all data of Temporal while berth runs.
func TestTemporalReplacedByEmptyOne_WorkContinuesWithoutRestart(t *testing.T) {
	t.Parallel()
	o := newOwnTemporal(t)
	c := o.StartWorker("api,relay,temporal")
	c.AwaitReady()
	c.RegisterAgents()
	port := createWaitingPort(c)
	starting := harness.CreateLeaseOf(c, "node-1", 30*time.Second, 24*time.Hour)
	o.AwaitMirrored()
	o.Controller.InjectFaults(odltest.Fault{Status: 503, Times: 1 << 30})
	c.CreateNetwork("pending")
	o.awaitOpen(contract.PortID(port), leaseWorkflow(starting))

	o.whileStopped(o.server.EraseData)
	begin := time.Now()
	o.Controller.ClearFaults()

	o.awaitOpen(contract.PortID(port))
	o.Await("the schedule of the sweep exists", func() string {
		if _, err := o.client.ScheduleClient().GetHandle(t.Context(), contract.MaintenanceID(contract.KeySweep)).Describe(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	o.AwaitMirrored()
	o.Await("the lease is ACTIVE", harness.LeaseStatusIs(c, starting, "ACTIVE"))
	o.signalReports(port)
	o.AwaitActive(c, []string{port})
	harness.LogTime(t, begin, "continuing on an empty Temporal")
}

// TestSearchAttributesLost_AreRegisteredAgain removes berth's search attributes from the namespace while
// berth runs.
func TestSearchAttributesLost_AreRegisteredAgain(t *testing.T) {
	t.Parallel()
	o := newOwnTemporal(t)
	c := o.StartWorker("api,relay,temporal")
	c.AwaitReady()
	var names []string
	for _, a := range contract.SearchAttributes {
		names = append(names, a.Name)
	}
	if _, err := o.client.OperatorService().RemoveSearchAttributes(t.Context(), &operatorservice.RemoveSearchAttributesRequest{
		Namespace: client.DefaultNamespace, SearchAttributes: names}); err != nil {
		t.Fatal(err)
	}

	begin := time.Now()
	o.Await("the search attributes are registered", func() string {
		r, err := o.client.OperatorService().
			ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: client.DefaultNamespace})
		if err != nil {
			return err.Error()
		}
		for _, n := range names {
			if _, ok := r.GetCustomAttributes()[n]; !ok {
				return n
			}
		}
		return ""
	})
	harness.LogTime(t, begin, "registering the search attributes again")
	port := createWaitingPort(c)
	o.awaitOpen(contract.PortID(port))
}
