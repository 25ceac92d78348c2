package kills

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/internal/server/servertest"
	"berth/internal/torture/harness"
)

// TestWorkflowsEndedByHand_RunAgain terminates, cancels and resets the workflows of ports. The sweep, a job
// that restarts ended workflows every minute, is paused, so that only the reconciler (the comparison of the
// rows with Temporal's executions) can start the workflows again.
func TestWorkflowsEndedByHand_RunAgain(t *testing.T) {
	t.Parallel()
	s, temporal := servertest.SharedDeployment(t)
	c := s.StartWorker("api,relay,temporal")
	c.AwaitReady()
	c.RegisterAgents()
	for name, end := range map[string]func(ctx context.Context, id string) error{
		"terminated": func(ctx context.Context, id string) error {
			return temporal.TerminateWorkflow(ctx, id, "", "by mistake")
		},
		"cancelled": func(ctx context.Context, id string) error { return temporal.CancelWorkflow(ctx, id, "") },
		"reset": func(ctx context.Context, id string) error {
			_, err := temporal.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
				Namespace:                 namespaceOf(s),
				WorkflowExecution:         &common.WorkflowExecution{WorkflowId: id},
				WorkflowTaskFinishEventId: firstTask(s, temporal, id),
				RequestId:                 id,
			})
			return err
		},
		"deleted in Temporal": func(ctx context.Context, id string) error {
			_, err := temporal.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{Namespace: namespaceOf(s),
				WorkflowExecution: &common.WorkflowExecution{WorkflowId: id}})
			return err
		},
	} {
		port := createWaitingPort(c)
		id := contract.PortID(port)
		s.Await("the port has a workflow", func() string { return notOpen(s, temporal, id) })
		first := runID(s, temporal, id)
		begin := time.Now()

		if err := end(t.Context(), id); err != nil {
			t.Fatalf("%s: end the workflow of a port: got error %v, want none", name, err)
		}

		s.Await(name+": the port has a new run of its workflow", func() string {
			if missing := notOpen(s, temporal, id); missing != "" || runID(s, temporal, id) != first {
				return missing
			}
			return "the first run is open"
		})
		harness.LogTime(t, begin, "a workflow that was "+name+": its restart")
		for _, r := range []contract.Report{{Entity: "L2", Host: "cmp-1"}, {Entity: "DHCP", Host: "net-1"}} {
			if err := temporal.SignalWorkflow(t.Context(), id, "", contract.SignalProvisioningComplete, r); err != nil {
				t.Errorf("%s: signal a report to the new run: got error %v, want none", name, err)
			}
		}
		s.AwaitActive(c, []string{port})
	}
}

// TestReportsToATerminatedWorkflow_AreNotLost terminates a port's workflow that has received reports as
// signals, but has not applied them because no worker runs. When a worker runs again, the port must become
// ACTIVE.
func TestReportsToATerminatedWorkflow_AreNotLost(t *testing.T) {
	t.Parallel()
	s, temporal := servertest.SharedDeployment(t)
	c := s.StartWorker("api,relay,temporal")
	c.AwaitReady()
	c.RegisterAgents()
	port := createWaitingPort(c)
	id := contract.PortID(port)
	s.Await("the port has a workflow that has completed a task",
		func() string { return notOpen(s, temporal, id) })
	firstTask(s, temporal, id)
	c.Kill()
	for _, r := range []contract.Report{{Entity: "L2", Host: "cmp-1"}, {Entity: "DHCP", Host: "net-1"}} {
		if err := temporal.SignalWorkflow(t.Context(), id, "", contract.SignalProvisioningComplete, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := temporal.TerminateWorkflow(t.Context(), id, "", "by mistake"); err != nil {
		t.Fatal(err)
	}

	begin := time.Now()
	c = s.StartWorker("api,relay,temporal")
	s.AwaitActive(c, []string{port})
	harness.LogTime(t, begin, "applying the reports")
}

// firstTask returns the ID of the event that completes the first workflow task of a workflow.
func firstTask(s *servertest.Deployment, c client.Client, id string) (event int64) {
	s.Helper()
	s.Await("the workflow has completed a task", func() string {
		history := c.GetWorkflowHistory(s.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			e, err := history.Next()
			if err != nil {
				return err.Error()
			}
			if e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				event = e.GetEventId()
				return ""
			}
		}
		return "no task is completed"
	})
	return event
}

// namespaceOf returns the name of the deployment's Temporal namespace.
func namespaceOf(s *servertest.Deployment) string {
	for _, setting := range s.Settings {
		if name, ok := strings.CutPrefix(setting, "TEMPORAL_NAMESPACE="); ok {
			return name
		}
	}
	return client.DefaultNamespace
}

// runID returns the ID of the latest run of a workflow.
func runID(s *servertest.Deployment, c client.Client, id string) string {
	d, err := c.DescribeWorkflowExecution(s.Context(), id, "")
	if err != nil {
		return err.Error()
	}
	return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

func TestScheduleDeletedByHand_IsCreatedAgain(t *testing.T) {
	t.Parallel()
	s, temporal := servertest.SharedDeployment(t)
	s.StartWorker("relay").AwaitReady()
	sweep := temporal.ScheduleClient().GetHandle(t.Context(), contract.MaintenanceID(contract.KeySweep))

	begin := time.Now()
	if err := sweep.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}

	s.Await("the schedule exists", func() string {
		if _, err := sweep.Describe(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	harness.LogTime(t, begin, "creating the schedule again")
}

// TestPostgreSQLRestoredFromBackup_ExecutionsWithoutRowsEnd restores the database from a backup. The restored
// database lacks a port whose workflow exists. In the restored database, new journal entries also get numbers
// for which Temporal already has a completed workflow.
func TestPostgreSQLRestoredFromBackup_ExecutionsWithoutRowsEnd(t *testing.T) {
	t.Parallel()
	s, temporal := servertest.SharedDeployment(t)
	c := s.StartWorker("api,relay,temporal")
	c.AwaitReady()
	c.RegisterAgents()
	kept := createWaitingPort(c)
	s.AwaitNone("all entries are completed", servertest.UnfinishedEntries)
	c.Kill()
	copyDatabase(s, databaseName(s), databaseName(s)+"_backup")
	c = s.StartWorker("api,relay,temporal")
	lost := createWaitingPort(c)
	s.AwaitNone("all entries are completed", servertest.UnfinishedEntries)
	s.Await("the port has a workflow", func() string { return notOpen(s, temporal, contract.PortID(lost)) })
	c.Kill()

	copyDatabase(s, databaseName(s)+"_backup", databaseName(s))
	begin := time.Now()
	c = s.StartWorker("api,relay,temporal")

	s.Await("the workflow of the lost port has ended", func() string {
		d, err := temporal.DescribeWorkflowExecution(t.Context(), contract.PortID(lost), "")
		if err != nil {
			return err.Error()
		}
		if status := d.GetWorkflowExecutionInfo().GetStatus(); status != enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			return status.String()
		}
		return ""
	})
	harness.LogTime(t, begin, "ending the workflow without a row")
	begin = time.Now()
	fresh := createWaitingPort(c)
	s.AwaitNone("all entries are completed", servertest.UnfinishedEntries)
	harness.LogTime(t, begin, "sending entries whose numbers are assigned again")
	for _, port := range []string{kept, fresh} {
		s.Await("the port has a workflow",
			func() string { return notOpen(s, temporal, contract.PortID(port)) })
	}
	s.Await("the gauges are zero", func() string { return strings.Join(projectionDifferences(c), ", ") })
}

// projectionDifferences lists the differences between the rows and Temporal that the last comparison found.
func projectionDifferences(c *servertest.Worker) (found []string) {
	list, _ := c.Must("GET", "/operator/v1/projections", nil)["projections"].([]any)
	for _, p := range list {
		p := p.(servertest.Object)
		if p["name"] == "controller" {
			continue // an audit compares the controller only once an hour
		}
		if p["compared_at"] == nil {
			found = append(found, p["name"].(string)+" was not compared")
		}
		for _, count := range []string{"unattended", "orphans"} {
			if n, ok := p[count].(float64); ok && n > 0 {
				found = append(found, p["name"].(string)+" "+count)
			}
		}
	}
	return found
}

func databaseName(s *servertest.Deployment) string {
	s.Helper()
	u, err := url.Parse(s.Database)
	if err != nil {
		s.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// copyDatabase makes the database `to` a copy of the database `from`. No process of berth may use the
// database `from` meanwhile. If the database `to` exists, copyDatabase replaces it.
func copyDatabase(s *servertest.Deployment, from, to string) {
	s.Helper()
	admin, err := url.Parse(s.Database)
	if err != nil {
		s.Fatal(err)
	}
	admin.Path = "/postgres"
	c, err := pgx.Connect(s.Context(), admin.String())
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.Exec(s.Context(), `drop database if exists `+pgx.Identifier{to}.Sanitize()+` with (force)`); err != nil {
		s.Fatal(err)
	}
	s.Await(
		"the database is copied",
		func() string { // PostgreSQL notices the end of a killed process only after some time
			_, err := c.Exec(
				s.Context(),
				`select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = $1`,
				from,
			)
			if err != nil {
				return err.Error()
			}
			_, err = c.Exec(
				s.Context(),
				`create database `+pgx.Identifier{to}.Sanitize()+` template `+pgx.Identifier{from}.Sanitize(),
			)
			if err != nil {
				return err.Error()
			}
			return ""
		},
	)
	if strings.HasSuffix(to, "_backup") {
		s.Cleanup(func() {
			c, err := pgx.Connect(context.Background(), admin.String())
			if err == nil {
				_, err = c.Exec(context.Background(),
					`drop database if exists `+pgx.Identifier{to}.Sanitize()+` with (force)`)
				_ = c.Close(context.Background())
			}
			if err != nil {
				s.Errorf("drop the backup: got error %v, want none", err)
			}
		})
	}
}
