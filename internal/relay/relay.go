// Package relay delivers notes from the outbox to Temporal. A note is a row of the outbox; the note names a workflow that must run and read
// the database row of its object again. Apart from the name of the workflow, package relay knows nothing about ports, leases or journal
// entries. Because the workflow reads the current row, a note may be delivered twice, late or in another order.
package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"berth/internal/contract"
	"berth/internal/store/outbox"
)

const (
	batchSize            = 64
	concurrentDeliveries = 16
	deliveryTimeout      = 5 * time.Second // timeout of one attempt to deliver one note
	pollInterval         = time.Second     // finds notes whose NOTIFY was lost
	maxBackoff           = 5 * time.Second
	maxConcurrentClaimed = 64 // approximate maximum number of concurrent deliveries of DeliverClaimed
)

// Options are the dependencies of a Relay.
type Options struct {
	Store *outbox.Store
	// Client must be the Temporal client that the workers in the same process use, because Temporal starts a workflow eagerly only on a
	// worker of the client that starts the workflow.
	Client    client.Client
	Namespace string // of Client
	Metrics   prometheus.Registerer
}

// Relay delivers notes. Any number of relays may run concurrently. The database is bound to one Temporal namespace at a time; a relay whose
// Client uses another namespace delivers nothing.
type Relay struct {
	Options
	namespaceID     string       // of the namespace to which this relay bound the database; empty before that
	claimedInFlight atomic.Int64 // number of notes that DeliverClaimed is delivering
	delivered       prometheus.Counter
	deferred        prometheus.Counter
}

// New creates a relay and registers its metrics.
func New(o Options) *Relay {
	r := &Relay{Options: o,
		delivered: prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_notes_delivered_total", Help: "Outbox notes delivered to Temporal."}),
		deferred:  prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_notes_deferred_total", Help: "Failed deliveries of outbox notes; each note is retried after a delay."}),
	}
	o.Metrics.MustRegister(r.delivered, r.deferred)
	return r
}

// Run delivers notes until ctx ends. If the database or Temporal returns an error, Run logs the error and continues.
func (r *Relay) Run(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	go r.listen(ctx, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	n, bound := 0, false
	for ctx.Err() == nil {
		var err error
		if n == 0 {
			bound, err = r.bindDatabase(ctx)
		}
		if bound {
			n, err = r.Deliver(ctx)
		}
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "delivery of outbox notes to Temporal failed", "error", err)
		}
		switch {
		case n == batchSize:
		case bound:
			pause(ctx, r.pollDelay(ctx, err), wake)
		default:
			pause(ctx, pollInterval, nil)
		}
	}
	return nil
}

// pause waits for the duration d, but returns earlier if the channel `wake` receives a value or ctx ends.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// bindDatabase reports whether the database is bound to this relay's Temporal namespace. A relay binds the database at most once, when the
// relay starts. Binding the database to a new namespace creates a note for every row that has a workflow. If a relay of another namespace
// binds the database later, bindDatabase returns an error until the process of the first relay is restarted, so that two relays do not
// rebind the database in turn.
func (r *Relay) bindDatabase(ctx context.Context) (bool, error) {
	if r.namespaceID != "" {
		if bound, err := r.Store.IsBoundTo(ctx, r.namespaceID); err != nil || bound {
			return bound, err
		}
	}
	call, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	d, err := r.Client.WorkflowService().DescribeNamespace(call, &workflowservice.DescribeNamespaceRequest{Namespace: r.Namespace})
	if err != nil {
		return false, fmt.Errorf("describe Temporal namespace %s: %w", r.Namespace, err)
	}
	id := d.GetNamespaceInfo().GetId()
	if id == r.namespaceID {
		return false, fmt.Errorf("the database is now bound to another Temporal namespace than %s (ID %s); restart this process to bind the database again",
			r.Namespace, id)
	}
	n, err := r.Store.Adopt(ctx, id)
	if err != nil {
		return false, err
	}
	r.namespaceID = id
	if n > 0 {
		slog.InfoContext(ctx, "database bound to a new Temporal namespace; restarting all workflows", "namespace", r.Namespace, "notes", n)
	}
	return true, nil
}

// pollDelay returns how long the relay may sleep if no NOTIFY arrives: until the next note is due, but at most pollInterval.
func (r *Relay) pollDelay(ctx context.Context, err error) time.Duration {
	if err != nil {
		return pollInterval
	}
	next, ok, err := r.Store.NextDue(ctx)
	if err != nil || !ok {
		return pollInterval
	}
	return min(next, pollInterval)
}

// listen calls the function `wake` at each NOTIFY about new notes. listen reconnects when the connection to PostgreSQL is lost.
func (r *Relay) listen(ctx context.Context, wake func()) {
	for ctx.Err() == nil {
		err := r.Store.Listen(ctx, wake)
		if ctx.Err() != nil {
			return
		}
		slog.WarnContext(ctx, "LISTEN connection lost; polling the outbox", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
}

// Deliver claims one batch of due notes, delivers the notes, and returns the number of claimed notes. If the delivery of a note fails, the
// relay delivers the note again later, with exponential backoff; the failure of one delivery does not delay other notes.
func (r *Relay) Deliver(ctx context.Context) (int, error) {
	notes, err := r.Store.Claim(ctx, r.namespaceID, batchSize, outbox.ClaimDuration)
	if err != nil || len(notes) == 0 {
		return 0, err
	}
	failures := make([]error, len(notes))
	var group errgroup.Group
	group.SetLimit(concurrentDeliveries)
	for i, n := range notes {
		group.Go(func() error {
			failures[i] = r.startOrSignal(ctx, n)
			return nil
		})
	}
	_ = group.Wait()
	return len(notes), r.settleNotes(ctx, notes, failures)
}

// FreeDeliveries returns how many notes the caller may claim for DeliverClaimed.
func (r *Relay) FreeDeliveries() int {
	return max(0, maxConcurrentClaimed-int(r.claimedInFlight.Load()))
}

// DeliverClaimed delivers notes that the caller has claimed for outbox.ClaimDuration, and does not wait for the result. If the delivery of
// a note fails, DeliverClaimed defers the note, so that a relay delivers the note again later. When a workflow writes its row, the workflow
// also deletes its delivered note from the outbox. If the workflow does not write its row, a relay delivers the note again when the claim
// of the note has expired.
func (r *Relay) DeliverClaimed(notes []contract.Note) {
	for _, n := range notes {
		r.claimedInFlight.Add(1)
		go func() {
			defer r.claimedInFlight.Add(-1)
			ctx, cancel := context.WithTimeout(context.Background(), outbox.ClaimDuration)
			defer cancel()
			err := r.startOrSignal(ctx, n)
			if err == nil {
				r.delivered.Inc()
				return
			}
			err = errors.Join(err, r.deferNote(ctx, n, err))
			slog.WarnContext(ctx, "delivery of a note failed", "workflow", n.ID, "error", err)
		}()
	}
}

// settleNotes deletes the delivered notes and defers the notes whose delivery failed.
func (r *Relay) settleNotes(ctx context.Context, notes []contract.Note, failures []error) error {
	var done []contract.Note
	var failure error
	for i, n := range notes {
		if failures[i] == nil {
			done = append(done, n)
			continue
		}
		failure = failures[i]
		if err := r.deferNote(ctx, n, failure); err != nil {
			return errors.Join(failure, err)
		}
	}
	r.delivered.Add(float64(len(done)))
	if len(done) == 0 {
		return failure
	}
	return errors.Join(failure, r.Store.Settle(ctx, r.namespaceID, done))
}

// deferNote postpones a note whose delivery failed.
func (r *Relay) deferNote(ctx context.Context, n contract.Note, failure error) error {
	r.deferred.Inc()
	return r.Store.Defer(ctx, n, backoff(n.Attempts), failure.Error())
}

// backoff returns the delay before the next delivery of a note after the given number of attempts.
func backoff(attempts int) time.Duration {
	return min(100*time.Millisecond<<min(attempts, 10), maxBackoff)
}

// startOrSignal starts the workflow eagerly if the workflow cannot be running yet. If the workflow may be running, startOrSignal calls
// SignalWithStartWorkflow, which starts the workflow only if the workflow is not running.
func (r *Relay) startOrSignal(ctx context.Context, n contract.Note) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	options := client.StartWorkflowOptions{
		ID:                       n.ID,
		TaskQueue:                contract.TaskQueue(n.Workflow),
		WorkflowIDReusePolicy:    reusePolicy(n),
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            n.Summary,
		TypedSearchAttributes:    searchAttributes(n.Attributes),
	}
	input := contract.Input{Key: contract.Key(n.ID)}
	if n.NotRunning && n.Attempts == 1 {
		options.EnableEagerStart = true
		input.PortStatus = n.PortStatus
		_, err := r.Client.ExecuteWorkflow(ctx, options, n.Workflow, input)
		return err
	}
	_, err := r.Client.SignalWithStartWorkflow(ctx, n.ID, contract.SignalChanged, nil, options, n.Workflow, input)
	if completed := new(serviceerror.WorkflowExecutionAlreadyStarted); errors.As(err, &completed) {
		return nil // the workflow has completed and is not started again
	}
	return err
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
		updates = append(updates, temporal.NewSearchAttributeKeyKeywordList(contract.AttributeWaitingFor).ValueSet(a.WaitingFor))
	}
	return temporal.NewSearchAttributes(updates...)
}
