// Package namespace binds the database to a Temporal namespace, and keeps the namespace usable: it creates
// the namespace and berth's search attributes again if the Temporal server has lost them. A Temporal server
// can lose its data while berth runs.
package namespace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"berth/internal/contract"
	"berth/internal/store/outbox"
)

const (
	// checkInterval is the interval at which Bind asks Temporal for the ID of the namespace.
	checkInterval = 2 * time.Second
	callTimeout   = 5 * time.Second
	// retention is the retention of a namespace that berth creates again; deploy/temporal-namespace.sh uses
	// the same retention.
	retention = 72 * time.Hour
)

// Binding binds the database to one Temporal namespace.
type Binding struct {
	store  *outbox.Store
	client client.Client
	name   string // of the namespace

	mu        sync.Mutex
	id        string    // of the namespace to which this process bound the database last; empty before that
	boundAt   time.Time // when the database was bound to this namespace, by the clock of the database
	checkedAt time.Time
}

// New returns a Binding to the namespace with the given name, which must be the namespace of the client.
func New(s *outbox.Store, c client.Client, name string) *Binding {
	return &Binding{store: s, client: c, name: name}
}

// ID returns the ID of the namespace to which this process bound the database last; empty if it has not bound
// the database yet.
func (b *Binding) ID() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.id
}

// Bind reports whether the database is bound to the namespace. If the ID of the namespace has changed, for
// example because the Temporal server was replaced by an empty one, Bind binds the database to the new ID.
// This also creates a note in the outbox for every row that has a workflow, so that the relays start all
// workflows in the new namespace. Bind does the same if the database was restored from a backup that was made
// before this process bound it. If a process with another Temporal server has bound the database later, Bind
// returns an error until the ID of this process's namespace changes or the process is restarted, so that two
// processes do not alternately rebind the database.
func (b *Binding) Bind(ctx context.Context) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.id != "" && time.Since(b.checkedAt) < checkInterval {
		if bound, err := b.store.IsBoundTo(ctx, b.id); err != nil || bound {
			return bound, err
		}
	}
	id, err := b.describe(ctx)
	switch missing := new(serviceerror.NamespaceNotFound); {
	case errors.As(err, &missing):
		return false, errors.Join(err, b.create(ctx))
	// Temporal is unavailable: the relay tries to deliver the notes, and each note stores the failure
	case err != nil && b.id != "":
		return b.store.IsBoundTo(ctx, b.id)
	case err != nil:
		return false, err
	}
	b.checkedAt = time.Now()
	if id == b.id {
		if bound, err := b.isStillBound(ctx); err != nil || bound {
			return bound, err
		}
	}
	return b.adopt(ctx, id)
}

// isStillBound reports whether the database is still bound to the namespace to which this process has bound
// it. The result is false if the database was restored: its binding is older than that of this process.
// isStillBound returns an error if the binding is newer.
func (b *Binding) isStillBound(ctx context.Context) (bool, error) {
	n, err := b.store.BoundNamespace(ctx)
	switch {
	case err != nil || n.ID == b.id:
		return err == nil, err
	case n.BoundAt.After(b.boundAt):
		return false, fmt.Errorf(
			"the database was bound at %s to another Temporal namespace (%s, ID %s) than %s (ID %s); restart this process to bind the database again",
			n.BoundAt.UTC().Format(time.RFC3339),
			cmp.Or(n.Name, "of unknown name"),
			n.ID,
			b.name,
			b.id,
		)
	}
	slog.WarnContext(
		ctx,
		"the database was restored from a backup that belongs to another Temporal namespace; binding the database again",
		"namespace", b.name, "restored_id", n.ID, "restored_bound_at", n.BoundAt,
	)
	return false, nil
}

// IsBound reports whether the database is bound to the current ID of the namespace. IsBound does not bind the
// database.
func (b *Binding) IsBound(ctx context.Context) (bool, error) {
	id, err := b.describe(ctx)
	if err != nil {
		return false, err
	}
	return b.store.IsBoundTo(ctx, id)
}

func (b *Binding) describe(ctx context.Context) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := b.client.WorkflowService().
		DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: b.name})
	if err != nil {
		return "", fmt.Errorf("describe Temporal namespace %s: %w", b.name, err)
	}
	return d.GetNamespaceInfo().GetId(), nil
}

// adopt binds the database to the namespace ID. adopt first creates missing search attributes, because no
// workflow starts without them. If the creation of the search attributes fails, the reconciler repeats it
// later.
func (b *Binding) adopt(ctx context.Context, id string) (bool, error) {
	if err := b.EnsureSearchAttributes(ctx); err != nil {
		slog.WarnContext(ctx, "creating the search attributes failed", "error", err)
	}
	n, err := b.store.Adopt(ctx, id)
	if err != nil {
		return false, err
	}
	if err := b.store.NameNamespace(ctx, id, b.name); err != nil {
		return false, err
	}
	bound, err := b.store.BoundNamespace(ctx)
	if err != nil || bound.ID != id { // another process has bound the database since
		return false, err
	}
	b.id, b.boundAt = id, bound.BoundAt
	if n > 0 {
		slog.InfoContext(ctx, "database bound to a new Temporal namespace; restarting all workflows",
			"namespace", b.name, "notes", n)
	}
	return true, nil
}

// create creates the namespace if the database was bound to a namespace with this name before. If the
// database was never bound to a namespace with this name, the name may be a mistake in the settings, so
// create does not create the namespace.
func (b *Binding) create(ctx context.Context) error {
	known, err := b.store.WasBoundToName(ctx, b.name)
	if err != nil || !known {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = b.client.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        b.name,
		Description:                      "berth: ports, leases and journal entries",
		WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	if exists := new(serviceerror.NamespaceAlreadyExists); errors.As(err, &exists) {
		return nil // another process has created the namespace, and Temporal's frontend does not see it yet
	}
	if err != nil {
		return fmt.Errorf("create Temporal namespace %s again: %w", b.name, err)
	}
	slog.WarnContext(ctx, "Temporal has lost the namespace; created it again", "namespace", b.name)
	return nil
}

// EnsureSearchAttributes creates berth's search attributes that the namespace does not have. If berth may not
// use the API of Temporal's operators, EnsureSearchAttributes does nothing.
func (b *Binding) EnsureSearchAttributes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	listed, err := b.client.OperatorService().
		ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: b.name})
	if isNotAllowed(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the search attributes of Temporal namespace %s: %w", b.name, err)
	}
	missing := map[string]enums.IndexedValueType{}
	for _, a := range contract.SearchAttributes {
		if _, ok := listed.GetCustomAttributes()[a.Name]; ok {
			continue
		}
		if missing[a.Name], err = enums.IndexedValueTypeFromString(a.Type); err != nil {
			return fmt.Errorf("search attribute %s: %w", a.Name, err)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = b.client.OperatorService().
		AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: b.name, SearchAttributes: missing})
	if isNotAllowed(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the search attributes of Temporal namespace %s again: %w", b.name, err)
	}
	slog.WarnContext(ctx, "Temporal namespace lacked search attributes; created them",
		"namespace", b.name, "number", len(missing))
	return nil
}

// isNotAllowed reports whether the error means that berth may not use the API of Temporal's operators, as in
// Temporal Cloud.
func isNotAllowed(err error) bool {
	var denied *serviceerror.PermissionDenied
	var unimplemented *serviceerror.Unimplemented
	return errors.As(err, &denied) || errors.As(err, &unimplemented)
}
