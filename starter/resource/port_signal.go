package resource

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"berth/internal/contract"
	"berth/starter/cli"
)

const signalHelp = `OBJECT is port/ and the port's ID or name. Without --ack the command sends a signal: an accepted signal is never lost, and
has no answer. With --ack it sends an update, which answers with the port's status and the remaining blocks. If the workflow of an existing
port is not running, for example because it was terminated by mistake, the command waits until berth has started the workflow again.`

// signalFlags are the flags of `starter signal`.
type signalFlags struct {
	report   contract.Report // without a signature
	ack      bool
	key      string
	lifetime *time.Duration
	limit    *time.Duration // for the answer
}

func signalCommand(f *pflag.FlagSet) cli.Action {
	var c signalFlags
	f.StringVar(&c.report.Entity, "entity", "",
		"provisioning entity: DHCP, L2, or another one that blocks the port")
	f.StringVar(&c.report.Host, "host", "", "host of the agent")
	f.StringVar(&c.report.Event, "event", "complete",
		"complete: the entity has done its part; begun: the agent works on it and will report "+
			"again; lost: the device is unplugged, or the agent gave up; block: the port waits for the entity from now on; "+
			"unblock: the port no longer waits for the entity")
	f.StringVar(&c.report.Owner, "owner", "", "with --event block: who adds the block")
	f.Int64Var(&c.report.TimeoutSeconds, "timeout-seconds", 0,
		"with --event block: the seconds until the block's deadline; the port waits on "+
			"after the deadline, or gets the status ERROR with --fatal (0: no deadline)")
	f.BoolVar(&c.report.Fatal, "fatal", false,
		"with --event block: the port becomes ERROR after --timeout-seconds")
	f.Int64Var(&c.report.Revision, "revision", 0,
		"revision_number of the port that the agent provisioned; reports for an earlier binding are "+
			"ignored (0: not given)")
	f.BoolVar(&c.ack, "ack", false, "send an update instead of a signal and wait for the answer")
	f.StringVar(&c.key, "key", "", "PEM file with a private key of the host: sign the report")
	c.lifetime = f.Duration("expires-in", time.Hour,
		"with --key: how long the signature is valid, at most 24h")
	c.limit = cli.TimeoutFlag(f, 30*time.Second, "how long --ack waits for the answer")
	return c.run
}

// check checks the flags that describe the report.
func (c *signalFlags) check() error {
	switch r := c.report; {
	case r.Entity == "" || r.Host == "":
		return cli.UsageError("--entity and --host are required")
	case !slices.Contains(contract.ReportEvents, r.Event):
		return cli.UsageError("--event %q is none of %s", r.Event, strings.Join(contract.ReportEvents, ", "))
	case r.Event != "block" && (r.Owner != "" || r.TimeoutSeconds != 0 || r.Fatal):
		return cli.UsageError("--owner, --timeout-seconds and --fatal are only for --event block")
	case r.Revision < 0:
		return cli.UsageError("--revision %d is not a revision_number", r.Revision)
	}
	return nil
}

func (c *signalFlags) run(ctx context.Context, s *cli.Session, args []string) error {
	if err := c.check(); err != nil {
		return err
	}
	r, id, err := ResolveTarget(ctx, s, args[0])
	if err != nil {
		return err
	}
	if r != Ports {
		return cli.UsageError("%q is not a port; only ports take provisioning reports", args[0])
	}
	report := c.report
	if c.key != "" {
		if report, err = signReport(report, c.key, contract.PortID(id), s.Now(), *c.lifetime); err != nil {
			return err
		}
	}
	if c.ack {
		return c.update(ctx, s, id, report)
	}
	workflow := contract.PortID(id)
	if err := retryUntilStarted(ctx, s, id, func() error { return SignalReport(ctx, s, workflow, report) }); err != nil {
		return err
	}
	return s.Output.PrintMessage(cli.Object{"object": workflow, "sent": true},
		"sent the event %s of %s on %s to %s", report.Event, report.Entity, report.Host, workflow)
}

// update sends the report as an update, and prints the answer.
func (c *signalFlags) update(ctx context.Context, s *cli.Session, id string, report contract.Report) error {
	var result contract.ReportResult
	err := retryUntilStarted(ctx, s, id, func() (err error) {
		result, err = updateReport(ctx, s, contract.PortID(id), report, *c.limit)
		return err
	})
	if err != nil {
		return err
	}
	return s.Output.PrintMessage(result, "%s: %s, %s", contract.PortID(id), result.Status,
		remainingBlocks(result))
}

// workflowStartTimeout is how long retryUntilStarted waits for the workflow of an existing port to start.
const workflowStartTimeout = 60 * time.Second

// retryUntilStarted repeats an action while the workflow of an existing port is not running. The workflow can
// start later than the port exists, because the API creates the port before the relay starts the port's
// workflow. If the workflow was ended by mistake, or if Temporal has lost it, berth starts it again.
func retryUntilStarted(ctx context.Context, s *cli.Session, port string, act func() error) error {
	for started := time.Now(); ; {
		err := act()
		if !errors.Is(err, cli.ErrNoWorkflow) && !errors.Is(err, cli.ErrClosedWorkflow) {
			return err
		}
		if _, unknown := Ports.Get(ctx, s, port); unknown != nil {
			return err
		}
		if time.Since(started) > workflowStartTimeout {
			return cli.Errorf(
				cli.ExitWait,
				"Send the report again later. `starter doctor` checks whether workflows can start.",
				"port %s exists, but its workflow is not running; the report is not sent",
				port,
			)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func remainingBlocks(v contract.ReportResult) string {
	if len(v.Remaining) == 0 {
		return "nothing blocks it"
	}
	return "still blocked by " + strings.Join(v.Remaining, ", ")
}

// SignalReport sends a provisioning report as a Temporal signal. SignalReport returns no port status, because
// a Temporal signal has no result.
func SignalReport(ctx context.Context, s *cli.Session, workflow string, r contract.Report) error {
	c, err := s.Temporal(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := s.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return cli.TemporalError(s.Settings, workflow,
		c.SignalWorkflow(ctx, workflow, "", contract.SignalProvisioningComplete, r))
}

// updateReport sends a provisioning report as a Temporal update and waits for the port's result.
func updateReport(
	ctx context.Context,
	s *cli.Session,
	workflow string,
	r contract.Report,
	limit time.Duration,
) (contract.ReportResult, error) {
	var v contract.ReportResult
	c, err := s.Temporal(ctx)
	if err != nil {
		return v, err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h, err := c.UpdateWorkflow(limited, client.UpdateWorkflowOptions{
		WorkflowID:   workflow,
		UpdateName:   contract.UpdateProvisioningComplete,
		Args:         []any{r},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(limited, &v)
	}
	var refused *sdk.ApplicationError
	var late *client.WorkflowUpdateServiceTimeoutOrCanceledError
	switch {
	case err == nil:
		return v, nil
	case errors.As(err, &refused):
		return v, &cli.Error{
			Code: cli.ExitOther,
			What: "the port rejected the report",
			Err:  errors.New(refused.Message()),
		}
	case ctx.Err() != nil:
		return v, ctx.Err()
	case errors.As(err, &late) || limited.Err() != nil:
		return v, cli.Errorf(cli.ExitWait, "Are workers running? `starter doctor` checks it.",
			"%s did not answer within %s", workflow, limit)
	default:
		return v, cli.TemporalError(s.Settings, workflow, err)
	}
}
