package workflows_test

import (
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// patientAttemptTimeout is the shortest timeout of an attempt with the interceptor patient. If the answer
// with which the server hands an activity to a worker is lost, the server repeats the activity after this
// time, so it must be well below the ten minutes for which a scenario waits.
const patientAttemptTimeout = 2 * time.Minute

// patient is an interceptor that gives each attempt of a regular activity patientAttemptTimeout, and each
// single attempt of a local activity an hour, because the machine that runs the tests may be slow. The local
// activities that the SDK retries keep their timeout, because it also ends the retries.
type patient struct {
	interceptor.WorkerInterceptorBase
}

func (*patient) InterceptWorkflow(
	_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &patientInbound{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type patientInbound struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (i *patientInbound) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&patientOutbound{interceptor.WorkflowOutboundInterceptorBase{Next: outbound}})
}

type patientOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

func (o *patientOutbound) ExecuteActivity(
	ctx workflow.Context,
	activity string,
	args ...any,
) workflow.Future {
	options := workflow.GetActivityOptions(ctx)
	options.StartToCloseTimeout = max(options.StartToCloseTimeout, patientAttemptTimeout)
	if options.HeartbeatTimeout > 0 {
		options.HeartbeatTimeout = patientAttemptTimeout
	}
	return o.Next.ExecuteActivity(workflow.WithActivityOptions(ctx, options), activity, args...)
}

func (o *patientOutbound) ExecuteLocalActivity(
	ctx workflow.Context,
	activity string,
	args ...any,
) workflow.Future {
	options := workflow.GetLocalActivityOptions(ctx)
	if options.RetryPolicy.MaximumAttempts == 1 {
		options.StartToCloseTimeout = time.Hour
	}
	return o.Next.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, options), activity, args...)
}
