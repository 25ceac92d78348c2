package workflows

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"berth/internal/contract"
	"berth/internal/network"
)

// registerHandlers registers the query and update handlers and opens the signal channels, so that the
// workflow loses no message from its first task on.
func (p *port) registerHandlers(ctx workflow.Context) error {
	var err error
	if p.reporter, err = newStatusReporter(ctx, contract.PortID(p.key)); err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(
		ctx,
		contract.UpdateProvisioningComplete,
		p.handleUpdate,
		workflow.UpdateHandlerOptions{
			Validator:   func(r contract.Report) error { return validateReport(r) },
			Description: "Report that an agent has configured the port; returns the port's status and the entities that still block it",
		},
	)
	if err != nil {
		return err
	}
	p.signals = workflow.GetSignalChannelWithOptions(
		ctx,
		contract.SignalProvisioningComplete,
		workflow.SignalChannelOptions{
			Description: `Report that an agent has configured the port: {"entity":"DHCP"|"L2","host":"…"}; or "event":"begun"|"lost"; or "event":"block"|"unblock" for any other entity`,
		},
	)
	p.changed = changedSignals(ctx)
	return nil
}

// handleUpdate returns after the row has stored the report. handleUpdate returns an error if the run
// continues as new because the database is unavailable; the agent must then report again.
func (p *port) handleUpdate(ctx workflow.Context, r contract.Report) (contract.ReportResult, error) {
	pending := &pendingReport{Report: r}
	p.unread = append(p.unread, pending)
	p.handled++
	p.openCalls++
	defer func() { p.openCalls-- }()
	err := workflow.Await(ctx, func() bool { return pending.applied || pending.interrupted })
	if err == nil && !pending.applied {
		err = temporal.NewApplicationError("the database is unavailable; report again", "Unavailable")
	}
	if err == nil && pending.refused != "" {
		err = temporal.NewNonRetryableApplicationError(pending.refused.Sentence(), contract.ReportRefused, nil)
	}
	return pending.result, err
}

// recordRefusals records for each report whether it was refused, and describes the last refused report for
// the query "why".
func (p *port) recordRefusals(received []*pendingReport, refused []contract.Refusal) {
	if len(received) == 0 {
		return
	}
	p.refused = ""
	for i, r := range received[:min(len(received), len(refused))] {
		if r.refused = refused[i]; r.refused != "" {
			p.refused = fmt.Sprintf("The last report of %q on host %q was refused: %s.",
				r.Entity, r.Host, r.refused.Sentence())
		}
	}
}

// receiveAll removes all signals from the channels. receiveAll returns every report that the workflow has
// received but not yet applied, in order of arrival.
func (p *port) receiveAll() []*pendingReport {
	p.receiveReports()
	p.handled += discardAll(p.changed)
	received := p.unread
	p.unread, p.mustRead = nil, false
	return received
}

// receiveReports removes all reports from their channel and adds them to the reports that are not applied
// yet.
func (p *port) receiveReports() {
	var raw converter.RawValue
	for p.signals.ReceiveAsync(&raw) {
		p.unread = append(p.unread, &pendingReport{Report: decodeReport(raw)})
		p.handled++
		raw = converter.RawValue{}
	}
}

// maxReportsSize is the maximum size of the reports that one activity applies, and of the reports that a run
// hands over to the next run, in bytes. Temporal accepts an input of at most 2 MB.
const maxReportsSize = 1 << 20

// reportSize returns the maximum size of a report in JSON, in bytes. JSON needs up to six bytes for one byte
// of a text.
func reportSize(r contract.Report) int {
	return 256 + 6*(len(r.Entity)+len(r.Host)+len(r.Event)+len(r.Owner)+len(r.Signature))
}

// nextReports removes the oldest reports from the reports that are not applied yet, with a size of at most
// maxReportsSize.
func (p *port) nextReports() []*pendingReport {
	all, size := p.receiveAll(), 0
	for i, r := range all {
		if size += reportSize(r.Report); size > maxReportsSize {
			p.unread = all[i:]
			return all[:i]
		}
	}
	return all
}

// fitIntoInput reports whether a run can hand the reports over to the next run.
func fitIntoInput(reports []contract.Report) bool {
	size := 0
	for _, r := range reports {
		size += reportSize(r)
	}
	return size <= maxReportsSize
}

// unappliedReports returns the given reports and all reports that arrived after them, in order of arrival. Of
// several equal reports, unappliedReports returns only the last one: a report sets the state of its entity,
// so an earlier equal report does not change the result.
func (p *port) unappliedReports(received []*pendingReport) []contract.Report {
	p.receiveReports()
	all, seen := slices.Concat(received, p.unread), map[contract.Report]bool{}
	var last []contract.Report
	for _, r := range slices.Backward(all) {
		if !seen[r.Report] {
			seen[r.Report] = true
			last = append(last, r.Report)
		}
	}
	slices.Reverse(last)
	return last
}

// continueWithReports continues as new while the database is unavailable. The new run gets the reports that
// are not applied yet. The pending updates return an error, because Temporal does not hand updates over to
// the new run.
func (p *port) continueWithReports(ctx workflow.Context, received []*pendingReport) error {
	err := workflow.Await(ctx, func() bool {
		for _, r := range slices.Concat(received, p.unread) {
			r.interrupted = true
		}
		return p.openCalls == 0 && !p.notifying
	})
	if err != nil {
		return err
	}
	in := contract.Input{
		Key:           p.key,
		FailedAttempt: p.novaFailed,
		Interrupted:   true,
		Reports:       p.unappliedReports(received),
		RefusedReport: p.refused,
	}
	if p.status.Status != "" {
		in.PortStatus = &p.status
	}
	return workflow.NewContinueAsNewError(ctx, contract.Port, in)
}

// decodeReport decodes a signal's payload. decodeReport converts a malformed payload to an empty report,
// which the row of the port counts as an ignored report.
func decodeReport(raw converter.RawValue) contract.Report {
	var r contract.Report
	if raw.Payload() == nil || converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &r) != nil ||
		validateReport(r) != nil {
		return contract.Report{}
	}
	return r
}

// maxNameLength is the maximum length of an entity's or a host's name, in bytes.
const maxNameLength = 255

func validateReport(r contract.Report) error {
	switch {
	case r.Entity == "" || len(r.Entity) > maxNameLength:
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("entity must have 1 to %d characters", maxNameLength), contract.InvalidReport, nil,
		)
	case r.Event != "" && !slices.Contains(contract.ReportEvents, r.Event):
		return temporal.NewNonRetryableApplicationError(
			"event must be one of "+strings.Join(contract.ReportEvents, ", "), contract.InvalidReport, nil,
		)
	case len(r.Signature) > contract.MaxSignatureLength:
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("signature must have at most %d characters", contract.MaxSignatureLength),
			contract.InvalidReport,
			nil,
		)
	case len(r.Host) > maxNameLength || len(r.Owner) > maxNameLength:
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("host and owner must have at most %d bytes", maxNameLength),
			contract.InvalidReport,
			nil,
		)
	}
	block := network.Report{
		Entity:         r.Entity,
		Host:           r.Host,
		Event:          r.Event,
		Owner:          r.Owner,
		TimeoutSeconds: r.TimeoutSeconds,
	}
	if err := network.CheckOwnedBlock(block); err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), contract.InvalidReport, nil)
	}
	return nil
}
