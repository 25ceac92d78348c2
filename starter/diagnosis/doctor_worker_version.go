package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"berth/internal/contract"
	"berth/starter/cli"
)

// workerVersion is a version in Temporal's Worker Versioning. The zero value stands for all workers without
// Worker Versioning.
type workerVersion struct{ deployment, build string }

func (v workerVersion) String() string {
	if v == (workerVersion{}) {
		return "unversioned"
	}
	return v.deployment + ":" + v.build
}

// versionRouting says which versions of workers poll a task queue, and which of them gets the tasks of the
// queue.
type versionRouting struct {
	polling []workerVersion // sorted, without duplicates
	current workerVersion   // gets the tasks, except the share of the version `ramping`
	ramping workerVersion   // the zero value if no version is ramping
}

// checkWorkerVersions checks that Temporal gives the tasks of each task queue to workers that run. With
// Worker Versioning, a worker polls, but gets no tasks until its version is the current or the ramping
// version.
func checkWorkerVersions(ctx context.Context, s *cli.Session) (string, error) {
	c, err := s.Temporal(ctx)
	if err != nil {
		return "", err
	}
	var versions []string
	for _, queue := range contract.TaskQueues {
		q, err := c.DescribeTaskQueue(ctx, queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
		if err != nil {
			return "", cli.TemporalError(s.Settings, "task queue "+queue, err)
		}
		r := readRouting(q)
		if err := r.check(queue, s.TemporalNamespace); err != nil {
			return "", err
		}
		versions = append(versions, r.current.String())
	}
	slices.Sort(versions)
	return "tasks go to " + strings.Join(slices.Compact(versions), ", "), nil
}

func readRouting(q *workflowservice.DescribeTaskQueueResponse) versionRouting {
	version := func(v *deployment.WorkerDeploymentVersion) workerVersion {
		return workerVersion{v.GetDeploymentName(), v.GetBuildId()}
	}
	info := q.GetVersioningInfo()
	r := versionRouting{
		current: version(info.GetCurrentDeploymentVersion()),
		ramping: version(info.GetRampingDeploymentVersion()),
	}
	if info.GetRampingVersionPercentage() == 100 {
		r.current = r.ramping
	}
	for _, p := range q.GetPollers() {
		polling := workerVersion{}
		if o := p.GetDeploymentOptions(); o.GetWorkerVersioningMode() == enums.WORKER_VERSIONING_MODE_VERSIONED {
			polling = workerVersion{o.GetDeploymentName(), o.GetBuildId()}
		}
		r.polling = append(r.polling, polling)
	}
	slices.SortFunc(r.polling, func(a, b workerVersion) int {
		return cmp.Or(cmp.Compare(a.deployment, b.deployment), cmp.Compare(a.build, b.build))
	})
	r.polling = slices.Compact(r.polling)
	return r
}

// check returns an error if no worker gets the tasks of a task queue although workers poll it, or a warning
// if versioned workers get none because all tasks go to unversioned workers.
func (r versionRouting) check(queue, namespace string) error {
	var waiting []workerVersion
	for _, v := range r.polling {
		if v != r.current && v != r.ramping {
			waiting = append(waiting, v)
		}
	}
	unversioned := workerVersion{}
	switch {
	case len(r.polling) == 0: // the check of the workers reports it
		return nil
	case !slices.Contains(r.polling, r.current):
		return cli.Errorf(
			cli.ExitUnavailable,
			r.commands(r.polling, namespace),
			"Temporal gives the tasks of %s to %s workers, but the workers that poll are %s",
			queue, r.current, joinVersions(r.polling),
		)
	case r.current == unversioned && len(waiting) > 0:
		return fmt.Errorf(
			"%w: workers get no tasks of %s, because their Worker Deployment has no current version: %s; `%s` gives them the tasks",
			errWarning, queue, joinVersions(waiting), r.commands(waiting, namespace),
		)
	}
	return nil
}

// commands returns the commands of which each makes one of the versions the current one.
func (r versionRouting) commands(versions []workerVersion, namespace string) string {
	all := make([]string, len(versions))
	for i, v := range versions {
		target := fmt.Sprintf("--deployment-name %s --build-id %s", v.deployment, v.build)
		if v == (workerVersion{}) {
			target = fmt.Sprintf("--deployment-name %s --unversioned", r.current.deployment)
		}
		all[i] = "temporal worker deployment set-current-version --namespace " + namespace + " " + target
	}
	return strings.Join(all, " or ")
}

func joinVersions(versions []workerVersion) string {
	names := make([]string, len(versions))
	for i, v := range versions {
		names[i] = v.String()
	}
	return strings.Join(names, ", ")
}
