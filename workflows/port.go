package workflows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"berth/activities"
	"berth/internal/contract"
)

// port is one run of a Port workflow. The type port stores the messages that the run has received and the
// result of the last read of the port's row. The authoritative state is in the row of the port and not in the
// workflow.
type port struct {
	key       string
	reporter  *statusReporter
	signals   workflow.ReceiveChannel // provisioning-complete
	changed   workflow.ReceiveChannel
	unread    []*pendingReport // reports that were received and not yet applied to the row
	mustRead  bool             // read the row even without a message
	handled   int              // number of messages that this workflow run has received
	status    contract.PortStatus
	reads     int
	openCalls int  // updates whose handler has not returned
	notifying bool // NotifyNova is running
	// interrupted says that the run has stopped a delivery to Nova in order to continue as new.
	interrupted bool
	novaFailed  string // error of the last failed delivery to Nova; empty after a success
	// sentence about the last refused report; empty if berth refused none of the last applied reports
	refused string
}

// pendingReport is an agent's report that the row has not stored yet. The handler of the update that brought
// a pendingReport waits until `applied` or `interrupted` is true.
type pendingReport struct {
	contract.Report
	applied     bool
	interrupted bool // the run continues as new
	refused     contract.Refusal
	result      contract.ReportResult
}

// Port waits until every agent has configured the port. The workflow Port runs until the port's row is
// deleted. Agents report to the workflow through the signal or the update "provisioning-complete". One call
// to the activity ApplyPortReports applies all reports that have arrived since the last call, up to
// maxReportsSize bytes.
func Port(ctx workflow.Context, in contract.Input) error {
	p := &port{
		key:        in.Key,
		mustRead:   true,
		novaFailed: in.FailedAttempt,
		refused:    in.RefusedReport,
	}
	for _, r := range in.Reports {
		p.unread = append(p.unread, &pendingReport{Report: r})
	}
	if err := p.registerHandlers(ctx); err != nil {
		return err
	}
	if in.PortStatus != nil {
		p.status, p.mustRead = *in.PortStatus, in.Interrupted
		if err := p.report(ctx); err != nil {
			return err
		}
	}
	workflow.Go(ctx, p.notifyNova)
	for {
		if err := p.wait(ctx); err != nil {
			return err
		}
		if p.shouldContinueAsNew(ctx) {
			return p.continueAsNew(ctx)
		}
		if err := p.applyReports(ctx); err != nil {
			return err
		}
		if p.status.Deleted {
			return p.drain(ctx)
		}
	}
}

// wait returns when the workflow must read the row or must continue as new.
func (p *port) wait(ctx workflow.Context) error {
	next := p.status.LookAgainAt
	if next == nil {
		return workflow.Await(ctx, func() bool { return p.readDue() || p.shouldContinueAsNew(ctx) })
	}
	ok, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout:      max(next.Sub(workflow.Now(ctx)), minDeadlineWait),
		TimerOptions: workflow.TimerOptions{Summary: "deadline at " + next.UTC().Format(time.RFC3339)},
	}, func() bool { return p.readDue() || p.shouldContinueAsNew(ctx) })
	p.mustRead = p.mustRead || !ok
	return err
}

// minDeadlineWait is the shortest wait for a deadline. minDeadlineWait prevents frequent reads of the row
// when the clock of the database is slightly behind the clock of Temporal.
const minDeadlineWait = time.Second

// readDue reports whether the workflow must read the port's row, for example because a report or a nudge has
// arrived.
func (p *port) readDue() bool {
	return p.mustRead || len(p.unread) > 0 || p.signals.Len() > 0 || p.changed.Len() > 0
}

// shouldContinueAsNew reports whether the run has handled enough messages and no message is pending, so that
// a new run loses none.
func (p *port) shouldContinueAsNew(ctx workflow.Context) bool {
	return (p.interrupted || shouldContinueAsNew(ctx, p.handled)) && !p.readDue() && !p.notifying &&
		p.openCalls == 0
}

func (p *port) continueAsNew(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, contract.Port,
		contract.Input{Key: p.key, FailedAttempt: p.novaFailed, RefusedReport: p.refused})
}

// isFull reports whether the run has received so many messages that it should interrupt the delivery to Nova.
func (p *port) isFull(ctx workflow.Context) bool {
	return deliveryIsFull(ctx, p.handled+p.signals.Len()+p.changed.Len())
}

// applyReports applies the received reports to the row, reads the resulting status, and lets the handlers of
// the updates that brought some of these reports return.
func (p *port) applyReports(ctx workflow.Context) error {
	received := p.nextReports()
	summary := "read the port"
	reports := make([]contract.Report, len(received))
	for i, r := range received {
		reports[i] = r.Report
		summary = strings.TrimRight(fmt.Sprintf("reported: %s on %s %s", r.Entity, r.Host, r.Event), " ")
		if i > 0 {
			summary = fmt.Sprintf("%d reports, the last: %s on %s", len(received), r.Entity, r.Host)
		}
	}
	var status contract.PortStatus
	full := func() bool { return p.isFull(ctx) && fitIntoInput(p.unappliedReports(received)) }
	err := runDatabaseWork(ctx, p.reporter, full, summary, &status,
		activities.ApplyPortReports, p.key, reports)
	switch {
	case errors.Is(err, errInterrupted):
		return p.continueWithReports(ctx, received)
	case err != nil:
		return err
	}
	p.recordRefusals(received, status.Refused)
	stale := status.Stale
	status.Refused, status.Stale = nil, nil
	p.status = status
	p.reads++
	if status.PendingNovaEvents == 0 && !p.notifying {
		p.novaFailed = ""
	}
	result := contract.ReportResult{Status: status.Status, Remaining: waitingNames(status.Waiting)}
	for i, r := range received {
		r.result, r.applied = result, true
		r.result.Stale = i < len(stale) && stale[i]
	}
	return p.report(ctx)
}

// report publishes the port's status in the query "why", the current details and the search attributes.
func (p *port) report(ctx workflow.Context) error {
	s := p.status
	sentence := s.Sentence
	if p.novaFailed != "" {
		sentence += fmt.Sprintf(" %d events for Nova are not delivered yet: %s.",
			s.PendingNovaEvents, p.novaFailed)
	}
	if p.refused != "" {
		sentence += " " + p.refused
	}
	return p.reporter.report(ctx, contract.Why{
		State:          s.Status,
		Sentence:       sentence,
		Waiting:        s.Waiting,
		LastError:      p.novaFailed,
		IgnoredReports: s.IgnoredReports,
	}, s.Attributes)
}

// notifyNova delivers the recorded events to Nova. notifyNova runs concurrently with the main loop of the
// workflow, so that reports do not wait while Nova is unavailable. If many messages arrive meanwhile,
// notifyNova interrupts the delivery and returns, so that the workflow can continue as new.
func (p *port) notifyNova(ctx workflow.Context) {
	for failed := p.novaFailed; workflow.Await(ctx, func() bool { return p.status.PendingNovaEvents > 0 }) == nil; failed = "" {
		p.notifying = true
		reads := p.reads
		interrupted, err := p.deliverEvents(ctx, failed)
		reported := p.novaFailed != ""
		if err == nil {
			p.novaFailed, p.status.PendingNovaEvents = "", 0
		}
		p.notifying, p.interrupted = false, interrupted
		p.mustRead = p.mustRead ||
			p.reads != reads // another event may have been recorded during the delivery
		if reported {
			_ = p.report(ctx)
		}
		if interrupted {
			return
		}
		if err != nil {
			if p.interrupted = pauseUntilFull(ctx, func() bool { return p.isFull(ctx) }); p.interrupted ||
				ctx.Err() != nil {
				return
			}
		}
	}
}

// deliverEvents delivers the recorded events. The first attempt is a local activity, unless `failed` is the
// error of an attempt of the previous run.
func (p *port) deliverEvents(ctx workflow.Context, failed string) (interrupted bool, err error) {
	const summary = "notify Nova"
	if failed == "" {
		err := workflow.ExecuteLocalActivity(localSingleAttempt(ctx, summary), activities.NotifyNova, p.key).
			Get(ctx, nil)
		if err == nil {
			return false, nil
		}
		p.novaFailed = err.Error()
		_ = p.report(ctx)
	}
	return executeUntilFull(remoteUnlimited(ctx, summary),
		func() bool { return p.isFull(ctx) }, nil, activities.NotifyNova, p.key)
}

// drain ends the workflow of a deleted port. Before the workflow ends, drain waits until Nova has received
// all events of the port and every update has returned its result. An agent that reports after the end of the
// workflow gets the error NotFound from Temporal and stops its retries. If drain receives many messages
// before Nova has received all events, the workflow continues as new.
func (p *port) drain(ctx workflow.Context) error {
	for {
		// an event was recorded while NotifyNova delivered the earlier ones, for example the deletion
		missed := false
		err := workflow.Await(ctx, func() bool {
			missed = missed || p.mustRead
			for _, r := range p.receiveAll() {
				r.result, r.applied = contract.ReportResult{
					Status:    p.status.Status,
					Remaining: []string{},
				}, true
			}
			return missed || (p.status.PendingNovaEvents == 0 || p.interrupted) && p.openCalls == 0
		})
		switch {
		case err != nil:
			return err
		case !missed && p.status.PendingNovaEvents > 0:
			return p.continueAsNew(ctx)
		case !missed:
			return nil
		}
		if err := p.applyReports(ctx); err != nil {
			return err
		}
	}
}
