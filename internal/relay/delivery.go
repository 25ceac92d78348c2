package relay

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"berth/internal/contract"
	"berth/internal/store/outbox"
	"berth/internal/text"
	"berth/internal/tracing"
)

const (
	// setAsideAfter is the number of refusals after which a note is set aside, that is, tried less and less
	// often.
	setAsideAfter = 5
	// setAsideInterval is the longest time between two attempts to deliver a note that is set aside. The
	// interval doubles from maxBackoff, so that after a short outage that looked like refusals of single
	// notes, all notes are soon delivered.
	setAsideInterval = 10 * time.Minute
)

// result is the result of the delivery of one note.
type result struct {
	note contract.Note
	err  error // nil: Temporal has accepted the note
}

// Deliver claims due notes, delivers them, and returns the number of claimed notes. If the delivery of a note
// fails, a relay delivers the note again later, and Deliver returns the error of one of the failed
// deliveries.
func (r *Relay) Deliver(ctx context.Context) (int, error) {
	ctx = withClass(ctx)
	results := make(chan result, 2*maxConcurrency)
	n, _, err := r.begin(ctx, results)
	if err != nil || n == 0 {
		return 0, err
	}
	all := make([]result, n)
	for i := range all {
		all[i] = <-results
	}
	return n, r.settle(ctx, all)
}

// begin claims at most as many due notes as the limiter allows calls to start now, and begins the deliveries
// of the claimed notes. The channel `results` receives one result for each claimed note. The result `full` is
// true if more notes may be due.
func (r *Relay) begin(ctx context.Context, results chan<- result) (claimed int, full bool, err error) {
	free, _ := r.limiter.free(time.Now())
	if free == 0 {
		return 0, true, nil
	}
	deadline := r.limiter.deadline()
	r.claims++
	notes, err := r.Store.ClaimShares(ctx, r.binding.ID(), free, sharesOf(r.claims), deadline+claimMargin)
	for _, n := range notes {
		r.limiter.add(1)
		go func() {
			err := r.call(ctx, n, deadline)
			r.limiter.add(-1)
			results <- result{n, err}
		}()
	}
	return len(notes), len(notes) >= free, err
}

// sharesOf returns the shares of the claim with the given number. If enough urgent notes are due, most claims
// take only urgent notes. Every fourth claim also takes at least one normal note, and every eighth claim also
// takes at least one bulk note.
func sharesOf(claim int) (s outbox.Shares) {
	if claim%4 == 0 {
		s.Normal = 1
	}
	if claim%8 == 0 {
		s.Bulk = 1
	}
	return s
}

// call delivers one note and passes the result to the limiter.
func (r *Relay) call(ctx context.Context, n contract.Note, deadline time.Duration) error {
	started := time.Now()
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	limited, span := tracing.Continue(
		tracing.WithTraceparent(limited, n.Origin.Traceparent),
		r.Tracer,
		"note "+n.Workflow,
		trace.SpanKindProducer,
		attribute.String("berth.workflow_id", n.ID),
		attribute.Int("berth.attempt", n.Attempts),
		attribute.String("openstack.request_id", n.Origin.RequestID),
	)
	err := callOnce(limited, func(ctx context.Context) error { return r.startOrSignal(ctx, n) })
	tracing.End(span, err)
	if ctx.Err() == nil {
		f, ended := faultOf(err), time.Now()
		r.limiter.record(f, started, ended)
		r.calls.WithLabelValues(f.String()).Observe(ended.Sub(started).Seconds())
	}
	return err
}

// settle deletes the delivered notes and postpones the other ones.
func (r *Relay) settle(ctx context.Context, all []result) error {
	var delivered []contract.Note
	var failure error
	for _, d := range all {
		if d.err == nil {
			delivered = append(delivered, d.note)
			continue
		}
		failure = d.err
		if err := r.postpone(ctx, d.note, d.err); err != nil {
			failure = errors.Join(failure, err)
		}
	}
	r.delivered.Add(float64(len(delivered)))
	if len(delivered) == 0 {
		return failure
	}
	return errors.Join(failure, r.Store.Settle(ctx, r.binding.ID(), delivered))
}

// postpone writes the failure of a delivery and the time of the next attempt to the note.
func (r *Relay) postpone(ctx context.Context, n contract.Note, failure error) error {
	r.deferred.Inc()
	f := faultOf(failure)
	if f == temporalOverloaded {
		return r.Store.Defer(ctx, n, backoff(n.Attempts), failure.Error())
	}
	refusals := n.Refusals + 1
	after := backoff(refusals)
	if f == noteRefused && refusals >= setAsideAfter {
		after = min(maxBackoff<<min(refusals-setAsideAfter, 10), setAsideInterval)
	}
	if refusals == setAsideAfter {
		slog.ErrorContext(ctx, "a note was set aside, because Temporal refuses it",
			"workflow", n.ID, "error", failure)
	}
	return r.Store.Refuse(ctx, n, refusals >= setAsideAfter, after, failure.Error())
}

// FreeDeliveries returns how many notes the caller may claim and pass to DeliverClaimed.
func (r *Relay) FreeDeliveries() int {
	if r.limiter.overloaded() {
		return 0
	}
	return max(0, min(maxConcurrentClaimed, 4*int(r.limiter.concurrency()))-int(r.claimedInFlight.Load()))
}

// DeliverClaimed delivers notes that the caller has claimed for outbox.ClaimDuration, and does not wait for
// the result. If the delivery of a note fails, DeliverClaimed postpones the note, so that a relay delivers
// the note again later. DeliverClaimed does not delete a delivered note: the started workflow deletes the
// note when it writes its row. If the workflow does not write its row, a relay delivers the note again when
// the claim of the note has expired.
func (r *Relay) DeliverClaimed(notes []contract.Note) {
	deadline := r.limiter.minDeadline
	for _, n := range notes {
		r.claimedInFlight.Add(1)
		go func() {
			defer r.claimedInFlight.Add(-1)
			ctx, cancel := context.WithTimeout(withClass(context.Background()), deadline+claimMargin)
			defer cancel()
			err := r.call(ctx, n, deadline)
			if err == nil {
				r.delivered.Inc()
				return
			}
			err = errors.Join(err, r.postpone(ctx, n, err))
			slog.WarnContext(ctx, "delivery of a note failed", "workflow", n.ID, "error", err)
		}()
	}
}

// startOrSignal starts the workflow, eagerly unless the workers are versioned, if the workflow cannot be
// running yet. If the workflow may be running, startOrSignal calls SignalWithStartWorkflow, which starts the
// workflow only if it is not running.
func (r *Relay) startOrSignal(ctx context.Context, n contract.Note) error {
	if r.HideProjects {
		n.Nudge = n.WithoutProject()
	}
	options := client.StartWorkflowOptions{
		ID:                       n.ID,
		TaskQueue:                contract.TaskQueue(n.Workflow),
		WorkflowTaskTimeout:      taskTimeout(n.Workflow),
		WorkflowIDReusePolicy:    reusePolicy(n),
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            text.Summary(n.Summary),
		TypedSearchAttributes:    searchAttributes(n.Attributes),
		Memo:                     memo(n.Origin),
	}
	input := contract.Input{Key: contract.Key(n.ID)}
	if n.NotRunning && n.Attempts == 1 {
		options.EnableEagerStart = !r.Versioned
		input.PortStatus = n.PortStatus
		_, err := r.Client.ExecuteWorkflow(ctx, options, n.Workflow, input)
		return err
	}
	_, err := r.Client.SignalWithStartWorkflow(ctx, n.ID,
		contract.SignalChanged, nil, options, n.Workflow, input)
	if completed := new(serviceerror.WorkflowExecutionAlreadyStarted); errors.As(err, &completed) {
		return nil // the workflow has completed and is not started again
	}
	return err
}

// memo returns the memo of a workflow that a request starts: the IDs of the request.
func memo(o contract.Origin) map[string]any {
	if o.RequestID == "" {
		return nil
	}
	m := map[string]any{contract.MemoRequestID: o.RequestID}
	if o.GlobalRequestID != "" {
		m[contract.MemoGlobalRequestID] = o.GlobalRequestID
	}
	return m
}

// leaseTaskTimeout is the timeout of a workflow task of a lease. When the process that runs a step of a lease
// is killed, Temporal gives the step to another process after this timeout. A local activity that takes
// longer than this timeout extends the task.
const leaseTaskTimeout = 4 * time.Second

// taskTimeout returns the timeout of a workflow task of the workflow type. 0 selects Temporal's default,
// which is 10 s.
func taskTimeout(workflow string) time.Duration {
	if workflow == contract.Lease {
		return leaseTaskTimeout
	}
	return 0
}

// reusePolicy says whether a note starts the workflow again if the workflow has already completed.
func reusePolicy(n contract.Note) enums.WorkflowIdReusePolicy {
	if contract.HasOneExecution(n.Workflow) && !n.Restart {
		return enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	}
	return enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
}

// searchAttributes converts the attributes that are not empty to Temporal search attributes.
func searchAttributes(a contract.Attributes) temporal.SearchAttributes {
	var updates []temporal.SearchAttributeUpdate
	for _, kv := range [][2]string{
		{contract.AttributeStatus, a.Status},
		{contract.AttributeProject, a.Project},
		{contract.AttributeHost, a.Host},
		{contract.AttributeResource, a.Resource},
	} {
		if kv[1] != "" {
			updates = append(updates, temporal.NewSearchAttributeKeyKeyword(kv[0]).ValueSet(kv[1]))
		}
	}
	if len(a.WaitingFor) > 0 {
		updates = append(
			updates,
			temporal.NewSearchAttributeKeyKeywordList(contract.AttributeWaitingFor).ValueSet(a.WaitingFor),
		)
	}
	return temporal.NewSearchAttributes(updates...)
}
