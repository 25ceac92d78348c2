// Package relay brings notes from the outbox to Temporal. It knows no noun: a note says which workflow should
// run and look again. A note that is delivered twice, late or in another order is harmless.
package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"berth/internal/contract"
	"berth/internal/store"
)

const (
	batchSize  = 64
	inFlight   = 16
	claimFor   = 8 * time.Second // a relay that dies loses its claim after that
	deliverIn  = 5 * time.Second // one attempt at one note
	idleFor    = time.Second     // the longest sleep: finds notes whose announcement was lost
	maxBackoff = 5 * time.Second
)

// Options are what a relay needs.
type Options struct {
	Store *store.Store
	// Client should be the one that the workers of the same process use: only then can a workflow start eagerly, on
	// a worker in this process.
	Client    client.Client
	Namespace string // of the client
	Metrics   prometheus.Registerer
}

// Relay delivers notes. Any number may run beside each other. One whose Temporal is no longer the one that the
// rows are entrusted to delivers nothing.
type Relay struct {
	Options
	id        string // of the namespace that this relay adopted last
	delivered prometheus.Counter
	deferred  prometheus.Counter
}

// New makes a relay.
func New(o Options) *Relay {
	r := &Relay{Options: o,
		delivered: prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_notes_delivered_total", Help: "Notes that Temporal has taken."}),
		deferred:  prometheus.NewCounter(prometheus.CounterOpts{Name: "berth_notes_deferred_total", Help: "Attempts at a note that failed and were put off."}),
	}
	o.Metrics.MustRegister(r.delivered, r.deferred)
	return r
}

// Run delivers until ctx ends. Troubles of the database or of Temporal are logged and outlasted.
func (r *Relay) Run(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	go r.listen(ctx, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	n, serving := 0, false
	for ctx.Err() == nil {
		var err error
		if n == 0 {
			serving, err = r.adopt(ctx)
		}
		if serving {
			n, err = r.Deliver(ctx)
		}
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "deliver notes", "error", err)
		}
		switch {
		case n == batchSize:
		case serving:
			pause(ctx, r.rest(ctx, err), wake)
		default:
			pause(ctx, idleFor, nil)
		}
	}
	return nil
}

// pause sleeps until it is woken, and for that long at most.
func pause(ctx context.Context, atMost time.Duration, wake <-chan struct{}) {
	sleep := time.NewTimer(atMost)
	defer sleep.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-sleep.C:
	}
}

// adopt tells whether the rows are entrusted to this relay's Temporal. A Temporal that the relay has not met before
// is entrusted with them, and every row leaves a note; one that it has met had them until a relay of another
// Temporal started, and gets them back only from a relay that starts anew. So no two take turns for ever.
func (r *Relay) adopt(ctx context.Context) (bool, error) {
	if r.id != "" {
		if entrusted, err := r.Store.Entrusted(ctx, r.id); err != nil || entrusted {
			return entrusted, err
		}
	}
	call, cancel := context.WithTimeout(ctx, deliverIn)
	defer cancel()
	d, err := r.Client.WorkflowService().DescribeNamespace(call, &workflowservice.DescribeNamespaceRequest{Namespace: r.Namespace})
	if err != nil {
		return false, fmt.Errorf("describe Temporal namespace %s: %w", r.Namespace, err)
	}
	id := d.GetNamespaceInfo().GetId()
	if id == r.id {
		return false, fmt.Errorf("the rows are entrusted to another Temporal than namespace %s (%s)", r.Namespace, id)
	}
	n, err := r.Store.Adopt(ctx, id)
	if err != nil {
		return false, err
	}
	r.id = id
	if n > 0 {
		slog.InfoContext(ctx, "this Temporal is new to the rows: each of them left a note", "notes", n)
	}
	return true, nil
}

// rest is how long the relay may sleep unless it is woken.
func (r *Relay) rest(ctx context.Context, err error) time.Duration {
	if err != nil {
		return idleFor
	}
	next, ok, err := r.Store.NextNote(ctx)
	if err != nil || !ok {
		return idleFor
	}
	return min(next, idleFor)
}

// listen wakes the relay when notes are announced, and comes back when the database does.
func (r *Relay) listen(ctx context.Context, wake func()) {
	for ctx.Err() == nil {
		err := r.Store.ListenNotes(ctx, wake)
		if ctx.Err() != nil {
			return
		}
		slog.WarnContext(ctx, "lost the announcements of notes", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(idleFor):
		}
	}
}

// Deliver takes one batch of due notes to Temporal and returns how many it claimed. A note that Temporal does not
// take is put off with a growing delay; the others are not held up by it.
func (r *Relay) Deliver(ctx context.Context) (int, error) {
	notes, err := r.Store.ClaimNotes(ctx, r.id, batchSize, claimFor)
	if err != nil || len(notes) == 0 {
		return 0, err
	}
	failures := make([]error, len(notes))
	var group errgroup.Group
	group.SetLimit(inFlight)
	for i, n := range notes {
		group.Go(func() error {
			failures[i] = r.send(ctx, n)
			return nil
		})
	}
	_ = group.Wait()
	return len(notes), r.settle(ctx, notes, failures)
}

func (r *Relay) settle(ctx context.Context, notes []contract.Note, failures []error) error {
	var done []contract.Note
	var troubles error
	for i, n := range notes {
		if failures[i] == nil {
			done = append(done, n)
			continue
		}
		r.deferred.Inc()
		troubles = failures[i]
		if err := r.Store.DeferNote(ctx, n, backoff(n.Attempts), failures[i].Error()); err != nil {
			return errors.Join(troubles, err)
		}
	}
	r.delivered.Add(float64(len(done)))
	if len(done) == 0 {
		return troubles
	}
	return errors.Join(troubles, r.Store.SettleNotes(ctx, r.id, done))
}

func backoff(attempts int) time.Duration {
	return min(100*time.Millisecond<<min(attempts, 10), maxBackoff)
}

// send starts the workflow eagerly where nothing can be running yet, and otherwise signals it, starting it if
// need be.
func (r *Relay) send(ctx context.Context, n contract.Note) error {
	ctx, cancel := context.WithTimeout(ctx, deliverIn)
	defer cancel()
	options := client.StartWorkflowOptions{
		ID:                       n.ID,
		TaskQueue:                contract.TaskQueue(n.Workflow),
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
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
	return err
}

// searchAttributes are those that are known at the start; empty ones are left out.
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
