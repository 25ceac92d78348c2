// Package temporaltrace carries traces through Temporal: from the call that starts or signals a workflow,
// over the workflow, to its activities. Package temporaltrace uses the header of Temporal's SDKs, so that
// clients and agents with another SDK take part.
package temporaltrace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"berth/internal/tracing"
)

// headerKey is the header in which Temporal's SDKs carry a trace.
const headerKey = "_tracer-data"

// New returns the interceptor of a Temporal client and its workers. New makes no spans for calls without a
// sampled trace; such calls have no header either.
func New(tracer trace.Tracer) (interceptor.Interceptor, error) {
	// Queries and baggage are left out: the consoles send queries all the time, and baggage would copy
	// headers of clients into histories.
	spans, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer:                  tracer,
		DisableQueryTracing:     true,
		DisableBaggage:          true,
		AllowInvalidParentSpans: true,
		HeaderKey:               headerKey,
		SpanStarter: func(ctx context.Context, t trace.Tracer, name string, options ...trace.SpanStartOption) trace.Span {
			if !trace.SpanContextFromContext(ctx).IsSampled() {
				return noop.Span{}
			}
			_, span := t.Start(ctx, name, options...)
			return span
		},
	})
	if err != nil {
		return nil, err
	}
	return &tracingInterceptor{Interceptor: spans, tracer: tracer}, nil
}

// tracingInterceptor makes the spans of calls and activities as Temporal's interceptor does, but the spans of
// workflows itself: a port workflow runs for years, so its span must not end with the workflow, and its
// activities belong to the trace of the last signal.
type tracingInterceptor struct {
	interceptor.Interceptor
	tracer trace.Tracer
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (t *tracingInterceptor) InterceptWorkflow(
	_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &inbound{
		WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next},
		run:                            &run{tracer: t.tracer},
	}
}

// traceAge is how long the activities of a workflow belong to the trace of the last start, signal or update
// that had one. Without this limit, a trace of a port's creation would grow for years.
const traceAge = time.Hour

// run is the trace of one run of a workflow. The methods of run issue no commands and depend only on the
// history, so they are deterministic.
type run struct {
	tracer trace.Tracer
	// header for activities, from the last start, signal or update with a sampled trace; nil: none
	current *commonpb.Payload
	since   time.Time
}

// enter makes the trace of the workflow's header the current one, and records a span without duration. A
// replay computes the same ID of this span, but does not record the span again. A header without a sampled
// trace changes nothing: for example, the signal that wakes a blocked journal entry has none, and the entry
// still belongs to the request that recorded it.
func (r *run) enter(ctx workflow.Context, name string) {
	var carrier map[string]string
	execution := workflow.GetInfo(ctx).WorkflowExecution
	header := interceptor.WorkflowHeader(ctx)[headerKey]
	if header == nil || converter.GetDefaultDataConverter().FromPayload(header, &carrier) != nil {
		return
	}
	parent := tracing.WithTraceparent(context.Background(), carrier["traceparent"])
	sampled := trace.SpanContextFromContext(parent)
	if !sampled.IsSampled() {
		return
	}
	id := tracing.SpanIDOf(execution.RunID, name, carrier["traceparent"])
	if !workflow.IsReplaying(ctx) {
		_, span := r.tracer.Start(
			tracing.WithSpanID(parent, id),
			name,
			trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(
				attribute.String("temporalWorkflowID", execution.ID),
				attribute.String("temporalRunID", execution.RunID),
			),
		)
		span.End()
	}
	own := trace.ContextWithSpanContext(context.Background(), sampled.WithSpanID(id))
	r.current, _ = converter.GetDefaultDataConverter().ToPayload(tracing.InjectMap(own))
	r.since = workflow.Now(ctx)
}

// leave writes the current trace to the header of a command.
func (r *run) leave(ctx workflow.Context) {
	header := interceptor.WorkflowHeader(ctx)
	if header != nil && r.current != nil && workflow.Now(ctx).Sub(r.since) <= traceAge {
		header[headerKey] = r.current
	}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	run *run
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: next}, i.run})
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	i.run.enter(ctx, "RunWorkflow:"+workflow.GetInfo(ctx).WorkflowType.Name)
	return i.Next.ExecuteWorkflow(ctx, in)
}

// HandleSignal implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	i.run.enter(ctx, "HandleSignal:"+in.SignalName)
	return i.Next.HandleSignal(ctx, in)
}

// ExecuteUpdate implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	i.run.enter(ctx, "HandleUpdate:"+in.Name)
	return i.Next.ExecuteUpdate(ctx, in)
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	run *run
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o.run.leave(ctx)
	return o.Next.ExecuteActivity(ctx, name, args...)
}

// ExecuteLocalActivity implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) ExecuteLocalActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o.run.leave(ctx)
	return o.Next.ExecuteLocalActivity(ctx, name, args...)
}

// SignalExternalWorkflow implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) SignalExternalWorkflow(
	ctx workflow.Context,
	id, runID, signal string,
	arg any,
) workflow.Future {
	o.run.leave(ctx)
	return o.Next.SignalExternalWorkflow(ctx, id, runID, signal, arg)
}

// NewContinueAsNewError implements interceptor.WorkflowOutboundInterceptor. The new run continues the current
// trace.
func (o *outbound) NewContinueAsNewError(ctx workflow.Context, workflowType any, args ...any) error {
	o.run.leave(ctx)
	return o.Next.NewContinueAsNewError(ctx, workflowType, args...)
}
