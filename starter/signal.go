package main

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
)

const signalHelp = `OBJECT is port/ and the port's ID or name. Without --ack the report is sent as a signal: once accepted it is never
lost, and nobody answers. With --ack it is sent as an update, which answers with the port's status and what still blocks it.`

// target splits an object word such as port/web-1 and resolves its name to the ID of a workflow.
func target(ctx context.Context, s *session, word string) (n *noun, id string, err error) {
	kind, name, _ := strings.Cut(word, "/")
	for _, known := range []*noun{ports, leases, entries} {
		if known == entries && kind == known.name && !known.isID(name) {
			return nil, "", usage("%q is not the number of an entry", name)
		}
		if known.name == kind && name != "" {
			id, err = known.resolve(ctx, s, name)
			return known, id, err
		}
	}
	return nil, "", usage("%q is none of port/NAME, lease/NAME, journal/SEQ", word)
}

func workflowID(n *noun, id string) string {
	switch n {
	case ports:
		return contract.PortID(id)
	case leases:
		return contract.LeaseID(id)
	default:
		return contract.JournalID(id)
	}
}

func signalPort(f *pflag.FlagSet) action {
	entity := f.String("entity", "", "what is done: DHCP, L2, or another entity that blocks the port")
	host := f.String("host", "", "the host where it was done")
	event := f.String("event", "complete", "what happened there: complete (its part is done), begun (it will report again) or lost (unplugged, or given up)")
	revision := f.Int64("revision", 0, "revision_number of the port that was acted on; work on an earlier binding does not count (0: not said)")
	ack := f.Bool("ack", false, "wait for the port's verdict")
	limit := timeout(f, 30*time.Second, "for the verdict of --ack")
	return func(ctx context.Context, s *session, args []string) error {
		if *entity == "" || *host == "" {
			return usage("--entity and --host say who reports")
		}
		if !slices.Contains([]string{"complete", "begun", "lost"}, *event) {
			return usage("--event %q is none of complete, begun and lost", *event)
		}
		if *revision < 0 {
			return usage("--revision %d is no revision_number", *revision)
		}
		n, id, err := target(ctx, s, args[0])
		if err != nil {
			return err
		}
		if n != ports {
			return usage("only ports take reports, not %q", args[0])
		}
		report := contract.Report{Entity: *entity, Host: *host, Event: *event, Revision: *revision}
		if !*ack {
			if err := patiently(ctx, s, id, func() error { return tell(ctx, s, contract.PortID(id), report) }); err != nil {
				return err
			}
			return s.out.say(object{"object": contract.PortID(id), "sent": true}, "%s on %s is reported to %s: %s", *entity, *host, contract.PortID(id), *event)
		}
		var verdict contract.ReportResult
		err = patiently(ctx, s, id, func() (err error) {
			verdict, err = update(ctx, s, contract.PortID(id), report, *limit)
			return err
		})
		if err != nil {
			return err
		}
		return s.out.say(verdict, "%s: %s, %s", contract.PortID(id), verdict.Status, remaining(verdict))
	}
}

// birth is how long the workflow of a port that exists may take to start.
const birth = 15 * time.Second

// patiently repeats what failed because the workflow has not started yet: a port's row is there a moment earlier.
func patiently(ctx context.Context, s *session, port string, act func() error) error {
	for began := time.Now(); ; {
		err := act()
		if !errors.Is(err, errUnborn) || time.Since(began) > birth {
			return err
		}
		if _, unknown := ports.get(ctx, s, port); unknown != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func remaining(v contract.ReportResult) string {
	if len(v.Remaining) == 0 {
		return "nobody blocks it"
	}
	return "still blocked by " + strings.Join(v.Remaining, ", ")
}

// tell sends a report that nobody answers.
func tell(ctx context.Context, s *session, workflow string, r contract.Report) error {
	c, err := s.temporal(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return temporalTrouble(s.settings, workflow, c.SignalWorkflow(ctx, workflow, "", contract.SignalProvisioningComplete, r))
}

// update sends a report and waits for the verdict.
func update(ctx context.Context, s *session, workflow string, r contract.Report, limit time.Duration) (contract.ReportResult, error) {
	var v contract.ReportResult
	c, err := s.temporal(ctx)
	if err != nil {
		return v, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: workflow, UpdateName: contract.UpdateProvisioningComplete,
		Args: []any{r}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = h.Get(ctx, &v)
	}
	var refused *sdk.ApplicationError
	var late *client.WorkflowUpdateServiceTimeoutOrCanceledError
	switch {
	case err == nil:
		return v, nil
	case errors.As(err, &refused):
		return v, &trouble{code: exitOther, what: "the port refused the report", err: errors.New(refused.Message())}
	case errors.As(err, &late) || ctx.Err() != nil:
		return v, fail(exitWait, "Are workers running? `starter doctor` tells.", "%s gave no verdict within %s", workflow, limit)
	default:
		return v, temporalTrouble(s.settings, workflow, err)
	}
}

const reportHelp = `Sends the agent's heartbeat and, with --port, that its part of these ports is done: the way of agents that do not
speak Temporal. Each port gets a verdict.`

func agentReport(f *pflag.FlagSet) action {
	kind := f.String("type", "Open vSwitch agent", "agent_type, as DHCP agent")
	entity := f.String("entity", "", "with --port: what is done (default: by the agent's type)")
	done := f.StringArray("port", nil, "port that is done, by name or ID; may be repeated")
	return func(ctx context.Context, s *session, args []string) error {
		state, err := heartbeat(ctx, s, *kind, args[0])
		if err != nil {
			return err
		}
		if len(*done) == 0 {
			return s.out.show(state, []string{"agent_type", "host"})
		}
		if *entity == "" {
			*entity = map[string]string{"DHCP agent": "DHCP"}[*kind]
		}
		if *entity == "" {
			*entity = "L2"
		}
		reports := []object{}
		for _, word := range *done {
			id, err := ports.resolve(ctx, s, word)
			if err != nil {
				return err
			}
			reports = append(reports, object{"port": id, "entity": *entity, "host": args[0]})
		}
		return gatewayReport(ctx, s, reports)
	}
}

// heartbeat tells the API that an agent lives on a host.
func heartbeat(ctx context.Context, s *session, kind, host string) (object, error) {
	binary := "neutron-" + strings.ReplaceAll(strings.ToLower(strings.TrimSuffix(kind, " agent")), " ", "") + "-agent"
	body := object{"agent_type": kind, "host": host, "binary": binary, "topic": "N/A", "configurations": object{}}
	var o object
	if err := s.api.do(ctx, "POST", "/agent/v1/state", body, &o); err != nil {
		return nil, err
	}
	if o == nil {
		o = object{}
	}
	o["agent_type"], o["host"] = kind, host
	return o, nil
}

func gatewayReport(ctx context.Context, s *session, reports []object) error {
	var answer object
	if err := s.api.do(ctx, "POST", "/agent/v1/reports", object{"reports": reports}, &answer); err != nil {
		return err
	}
	all, ok := objects(answer["verdicts"])
	if !ok {
		return fail(exitOther, "Is --url a berth API?", "the gateway answered without verdicts")
	}
	return s.out.list(all, []string{"port", "result", "status", "remaining"})
}
