package diagnosis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/starter/cli"
)

func checkTemporal(ctx context.Context, s *cli.Session) (string, error) {
	c, err := s.Temporal(ctx)
	if err != nil {
		return "", err
	}
	if _, err := c.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return "", cli.TemporalError(s.Settings, "Temporal", err)
	}
	return s.TemporalAddress + " is healthy", nil
}

// checkNamespace checks that Temporal answers for berth's namespace, and that the database is bound to this
// namespace. A server without the namespace is healthy, but starts no workflow.
func checkNamespace(ctx context.Context, s *cli.Session) (string, error) {
	c, err := s.Temporal(ctx)
	if err != nil {
		return "", err
	}
	d, err := c.WorkflowService().
		DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: s.TemporalNamespace})
	if err != nil {
		return "", cli.TemporalError(s.Settings, "namespace", err)
	}
	if state := d.GetNamespaceInfo().GetState(); state == enums.NAMESPACE_STATE_DELETED {
		return "", cli.Errorf(
			cli.ExitUnavailable,
			"Create the namespace again; berth then restarts every workflow.",
			"namespace %s is deleted",
			s.TemporalNamespace,
		)
	}
	if err := checkBinding(ctx, s, d.GetNamespaceInfo().GetId()); err != nil {
		return "", err
	}
	return fmt.Sprintf(
		"%s answers, keeps closed workflows for %s",
		s.TemporalNamespace,
		d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(),
	), nil
}

// checkBinding checks that the database is bound to the namespace with the given ID. If the API does not show
// the binding, checkBinding returns no error.
func checkBinding(ctx context.Context, s *cli.Session, id string) error {
	var o struct {
		Namespace *struct {
			ID, Name string
			BoundAt  time.Time `json:"bound_at"`
		}
	}
	if err := readAPI(ctx, s, "/operator/v1/projections", &o); err != nil || o.Namespace == nil ||
		o.Namespace.ID == id {
		return nil //nolint:nilerr // the check API shows the error
	}
	return cli.Errorf(
		cli.ExitUnavailable,
		"Compare TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE of this command with those of the processes. "+
			"A process with the role relay binds the database again within seconds after a restore from a backup or a change of Temporal. If this stays, a process "+
			"with another Temporal uses the same database: stop it, then restart the processes with the role relay.",
		"the database is bound since %s to another Temporal namespace (%s, ID %s) than %s (ID %s), so no workflow starts",
		o.Namespace.BoundAt.UTC().Format(time.RFC3339),
		o.Namespace.Name,
		o.Namespace.ID,
		s.TemporalNamespace,
		id,
	)
}

// checkPollers checks that each task queue has workers for workflows and for activities.
func checkPollers(ctx context.Context, s *cli.Session) (string, error) {
	c, err := s.Temporal(ctx)
	if err != nil {
		return "", err
	}
	var missing []string
	for _, queue := range contract.TaskQueues {
		for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
			q, err := c.DescribeTaskQueue(ctx, queue, kind)
			if err != nil {
				return "", cli.TemporalError(s.Settings, "task queue "+queue, err)
			}
			if len(q.Pollers) == 0 {
				missing = append(missing, queue+" ("+strings.ToLower(kind.String())+")")
			}
		}
	}
	if len(missing) > 0 {
		return "", cli.Errorf(cli.ExitUnavailable, "Start a worker with the role temporal.",
			"no worker polls %s", strings.Join(missing, ", "))
	}
	return "poll " + strings.Join(contract.TaskQueues, ", "), nil
}

// checkAttributes checks that the namespace has the search attributes.
func checkAttributes(ctx context.Context, s *cli.Session) (string, error) {
	c, err := s.Temporal(ctx)
	if err != nil {
		return "", err
	}
	known, err := c.OperatorService().
		ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: s.TemporalNamespace})
	if err != nil {
		return "", cli.TemporalError(s.Settings, "search attributes", err)
	}
	var names, invalid, commands []string
	for _, a := range contract.SearchAttributes {
		names = append(names, a.Name)
		if known.CustomAttributes[a.Name].String() != a.Type {
			invalid = append(invalid, a.Name)
			commands = append(commands, "--name "+a.Name+" --type "+a.Type)
		}
	}
	if len(invalid) > 0 {
		create := "temporal operator search-attribute create --namespace " + s.TemporalNamespace + " "
		return "", cli.Errorf(
			cli.ExitOther, create+strings.Join(commands, " "),
			"missing, or with another type: %s", strings.Join(invalid, ", "),
		)
	}
	slices.Sort(names)
	return strings.Join(names, ", "), nil
}
