package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/internal/network"
)

// port is one run of a Port workflow. It holds messages on their way and the last look; the truth is the row.
type port struct {
	key       string
	face      *face
	reports   workflow.ReceiveChannel // signals
	changed   workflow.ReceiveChannel
	inbox     []*report // reports that came in and were not yet handed to the row
	dirty     bool      // look even without a message
	handled   int       // messages of this run
	standing  contract.PortStatus
	looks     int
	answering int  // updates whose handler has not returned
	notifying bool // an activity is on its way to Nova
	lastError string
}

// report is an agent's report; the handler of an update waits until it is done.
type report struct {
	contract.Report
	done    bool
	verdict contract.ReportResult
}

// Port waits until every agent has done its part, for as long as the port exists. Agents report by the signal or
// the update `provisioning-complete`; one look at the row handles all reports that have come in meanwhile.
func Port(ctx workflow.Context, in contract.Input) error {
	p := &port{key: in.Key, dirty: true}
	if err := p.listen(ctx); err != nil {
		return err
	}
	if in.PortStatus != nil {
		p.standing, p.dirty = *in.PortStatus, false
		if err := p.show(ctx); err != nil {
			return err
		}
	}
	workflow.Go(ctx, p.notify)
	for {
		if err := p.wait(ctx); err != nil {
			return err
		}
		if p.tired(ctx) {
			return workflow.NewContinueAsNewError(ctx, contract.Port, contract.Input{Key: in.Key})
		}
		if err := p.look(ctx); err != nil {
			return err
		}
		if p.standing.Deleted {
			return p.leave(ctx)
		}
	}
}

// wait returns when there is reason to look, or to hand over to a new run.
func (p *port) wait(ctx workflow.Context) error {
	next := p.standing.LookAgainAt
	if next == nil {
		return workflow.Await(ctx, func() bool { return p.due() || p.tired(ctx) })
	}
	ok, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout:      max(next.Sub(workflow.Now(ctx)), grace),
		TimerOptions: workflow.TimerOptions{Summary: "deadline at " + next.UTC().Format(time.RFC3339)},
	}, func() bool { return p.due() || p.tired(ctx) })
	p.dirty = p.dirty || !ok
	return err
}

// grace is the least wait for a deadline: the row's clock may be a little behind.
const grace = time.Second

// due tells whether there is reason to look at the row.
func (p *port) due() bool {
	return p.dirty || len(p.inbox) > 0 || p.reports.Len() > 0 || p.changed.Len() > 0
}

// tired tells whether the run has had its share of messages and nothing is under way, so that it can hand over
// to a new one without losing anything.
func (p *port) tired(ctx workflow.Context) bool {
	return full(ctx, p.handled) && !p.due() && !p.notifying && p.answering == 0
}

// look hands the waiting reports to the row, reads what it has become, and answers the updates among them.
func (p *port) look(ctx workflow.Context) error {
	taken := p.take()
	summary := "look"
	reports := make([]contract.Report, len(taken))
	for i, r := range taken {
		reports[i] = r.Report
		summary = strings.TrimRight(fmt.Sprintf("reported: %s on %s %s", r.Entity, r.Host, r.Event), " ")
		if i > 0 {
			summary = fmt.Sprintf("%d reports, the last: %s on %s", len(taken), r.Entity, r.Host)
		}
	}
	var standing contract.PortStatus
	if err := workflow.ExecuteLocalActivity(quick(ctx, summary), do.SettlePort, p.key, reports).Get(ctx, &standing); err != nil {
		return err
	}
	p.standing = standing
	p.looks++
	verdict := contract.ReportResult{Status: standing.Status, Remaining: entities(standing.Waiting)}
	for _, r := range taken {
		r.verdict, r.done = verdict, true
	}
	return p.show(ctx)
}

// take empties every mailbox.
func (p *port) take() []*report {
	var raw converter.RawValue
	for p.reports.ReceiveAsync(&raw) {
		p.inbox = append(p.inbox, &report{Report: decode(raw)})
		p.handled++
		raw = converter.RawValue{}
	}
	p.handled += drain(p.changed)
	taken := p.inbox
	p.inbox, p.dirty = nil, false
	return taken
}

func (p *port) show(ctx workflow.Context) error {
	s := p.standing
	sentence := s.Sentence
	if p.lastError != "" {
		sentence += fmt.Sprintf(" %d events for Nova are not delivered yet: %s.", s.PendingNovaEvents, p.lastError)
	}
	return p.face.show(ctx, contract.Why{State: s.Status, Sentence: sentence, Waiting: s.Waiting, LastError: p.lastError, IgnoredReports: s.IgnoredReports})
}

// listen takes every message from the first task on.
func (p *port) listen(ctx workflow.Context) error {
	var err error
	if p.face, err = newFace(ctx, contract.PortID(p.key)); err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, contract.UpdateProvisioningComplete, p.update, workflow.UpdateHandlerOptions{
		Validator:   func(r contract.Report) error { return valid(r) },
		Description: "An agent has done its part; answers with the status and who remains",
	})
	if err != nil {
		return err
	}
	p.reports = workflow.GetSignalChannelWithOptions(ctx, contract.SignalProvisioningComplete,
		workflow.SignalChannelOptions{Description: `An agent has done its part: {"entity":"DHCP"|"L2","host":"…"}; or "event":"begun"|"lost"`})
	p.changed = nudged(ctx)
	return nil
}

// update answers once the row has taken the report.
func (p *port) update(ctx workflow.Context, r contract.Report) (contract.ReportResult, error) {
	waiting := &report{Report: r}
	p.inbox = append(p.inbox, waiting)
	p.handled++
	p.answering++
	defer func() { p.answering-- }()
	err := workflow.Await(ctx, func() bool { return waiting.done })
	return waiting.verdict, err
}

// notify brings the events for Nova out, beside the main loop: a Nova that is away keeps no report waiting.
func (p *port) notify(ctx workflow.Context) {
	for workflow.Await(ctx, func() bool { return p.standing.PendingNovaEvents > 0 }) == nil {
		p.notifying = true
		looks := p.looks
		err := workflow.ExecuteLocalActivity(once(ctx, "tell Nova"), do.NotifyNova, p.key).Get(ctx, nil)
		if err != nil {
			p.lastError = err.Error()
			_ = p.show(ctx)
			err = workflow.ExecuteActivity(patient(ctx, "tell Nova"), do.NotifyNova, p.key).Get(ctx, nil)
		}
		told := p.lastError != ""
		if err == nil {
			p.lastError, p.standing.PendingNovaEvents = "", 0
		}
		p.notifying = false
		p.dirty = p.dirty || p.looks != looks // another event may have come meanwhile
		if told {
			_ = p.show(ctx)
		}
		if err != nil && workflow.Sleep(ctx, longPause) != nil {
			return
		}
	}
}

// leave ends the workflow of a deleted port once Nova knows and every update is answered. Later reports find the
// workflow closed, which tells the agent to stop.
func (p *port) leave(ctx workflow.Context) error {
	for {
		missed := false // what was recorded while Nova was told of what was before: the deletion, for one
		err := workflow.Await(ctx, func() bool {
			missed = missed || p.dirty
			for _, r := range p.take() {
				r.verdict, r.done = contract.ReportResult{Status: p.standing.Status, Remaining: []string{}}, true
			}
			return missed || p.standing.PendingNovaEvents == 0 && p.answering == 0
		})
		if err != nil || !missed {
			return err
		}
		// Without a version, as in port.json, it was not looked for.
		if workflow.GetVersion(ctx, "look for what Nova was not told", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
			continue
		}
		if err := p.look(ctx); err != nil {
			return err
		}
	}
}

// decode reads a signal's payload. What is no report becomes an empty one, which the row counts and ignores.
func decode(raw converter.RawValue) contract.Report {
	var r contract.Report
	if raw.Payload() == nil || converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &r) != nil || valid(r) != nil {
		return contract.Report{}
	}
	return r
}

// maxName is how long an entity's or a host's name may be, in bytes.
const maxName = 255

func valid(r contract.Report) error {
	switch {
	case r.Entity == "" || len(r.Entity) > maxName:
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("entity must have 1 to %d characters", maxName), "InvalidReport", nil)
	case r.Event != "" && r.Event != network.Complete && r.Event != network.Begun && r.Event != network.Lost:
		return temporal.NewNonRetryableApplicationError("event must be complete, begun or lost", "InvalidReport", nil)
	case len(r.Host) > maxName:
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("host must have at most %d characters", maxName), "InvalidReport", nil)
	}
	return nil
}
