package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
	"berth/starter/cli"
)

const (
	// leaseGrace is how long the start or end of a lease may be overdue before doctor counts the lease as
	// late.
	leaseGrace = 10 * time.Second
	// maxLateLeases is the maximum number of late leases whose executions one run of doctor reads.
	maxLateLeases = 20
	// leaseDate is the format of the dates of a lease.
	leaseDate = "2006-01-02T15:04:05.000000"
)

// lateLease has those attributes of a lease that doctor reads to find out whether the lease is late.
type lateLease struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
	Start  string `json:"start_date"`
	End    string `json:"end_date"`
}

// dueAt returns when the next step of a lease is due, and whether the lease has such a step.
func (l lateLease) dueAt() (time.Time, bool) {
	text := ""
	switch l.Status {
	case "PENDING", "STARTING":
		text = l.Start
	case "ACTIVE", "TERMINATING":
		text = l.End
	}
	at, err := time.Parse(leaseDate, text)
	return at, err == nil
}

// checkLeases checks that each lease whose start or end is overdue has a running execution.
func checkLeases(ctx context.Context, s *cli.Session) (string, error) {
	var o struct{ Leases []lateLease }
	if err := readAPI(ctx, s, "/reservation/v1/leases", &o); err != nil {
		return "", err
	}
	var late []lateLease
	for _, l := range o.Leases {
		if at, ok := l.dueAt(); ok && s.Now().Sub(at) > leaseGrace {
			late = append(late, l)
		}
	}
	if len(late) == 0 {
		return "no start or end of a lease is overdue", nil
	}
	c, err := s.Temporal(ctx)
	if err != nil {
		return "", err
	}
	var unattended []string
	for _, l := range late[:min(len(late), maxLateLeases)] {
		running, err := isRunning(ctx, c, contract.LeaseID(l.ID))
		if err != nil {
			return "", cli.TemporalError(s.Settings, contract.LeaseID(l.ID), err)
		}
		if !running {
			unattended = append(unattended, contract.LeaseID(l.Name))
		}
	}
	if len(unattended) > 0 {
		return "", cli.Errorf(
			cli.ExitOther,
			"berth restarts their workflows within a minute while processes with the roles relay and temporal run; does --namespace name berth's namespace?",
			"%d of %d overdue leases have no execution: %s",
			len(unattended),
			len(late),
			strings.Join(unattended, ", "),
		)
	}
	return "", fmt.Errorf(
		"%w: %d leases are overdue, but have an execution; `starter why %s` says what the first of them waits for",
		errWarning, len(late), contract.LeaseID(late[0].Name),
	)
}

// isRunning reports whether Temporal has a running workflow with the given ID.
func isRunning(ctx context.Context, c client.Client, id string) (bool, error) {
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return false, nil
	}
	return d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, err
}
