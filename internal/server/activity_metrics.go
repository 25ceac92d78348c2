package server

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"berth/activities"
	"berth/internal/store/db"
)

// activityMetrics measures the attempts of all activities, regular and local ones. The activities of one name
// form a class of database work, so that activities that wait for locks leave connections for those of other
// names.
type activityMetrics struct {
	interceptor.WorkerInterceptorBase
	attempts  *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

func newActivityMetrics(registry prometheus.Registerer) *activityMetrics {
	m := &activityMetrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_activity_attempts_total",
			Help: "Attempts of activities, by registered name of the activity and outcome: success, conflict (a fenced write found that the row has left the expected state), not_found (the row is deleted), invalid (the input belongs to no row), refused (Nova, Neutron or Placement refused a step of a lease), retry (the attempt is repeated as planned), interrupted, error.",
		}, []string{"activity", "outcome"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "berth_activity_duration_seconds",
			Help:    "Duration of the attempts of activities, in seconds, by registered name of the activity.",
			Buckets: []float64{0.002, 0.01, 0.05, 0.2, 1, 5, 20, 60},
		}, []string{"activity"}),
	}
	registry.MustRegister(m.attempts, m.durations)
	return m
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (m *activityMetrics) InterceptActivity(
	_ context.Context,
	next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &measuredActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, m}
}

type measuredActivity struct {
	interceptor.ActivityInboundInterceptorBase
	metrics *activityMetrics
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *measuredActivity) ExecuteActivity(
	ctx context.Context,
	in *interceptor.ExecuteActivityInput,
) (any, error) {
	begin, name := time.Now(), activity.GetInfo(ctx).ActivityType.Name
	result, err := a.Next.ExecuteActivity(db.WithClass(ctx, "activity "+name), in)
	a.metrics.durations.WithLabelValues(name).Observe(time.Since(begin).Seconds())
	a.metrics.attempts.WithLabelValues(name, activityOutcome(err)).Inc()
	return result, err
}

// activityOutcome returns the outcome of an attempt of an activity that returned the error err.
func activityOutcome(err error) string {
	var known *temporal.ApplicationError
	switch {
	case err == nil:
		return "success"
	case errors.As(err, &known):
		switch known.Type() {
		case activities.Conflict:
			return "conflict"
		case activities.NotFound:
			return "not_found"
		case activities.Invalid:
			return "invalid"
		case activities.BackendError:
			return "refused"
		}
		if known.NextRetryDelay() > 0 {
			return "retry"
		}
	case errors.Is(err, context.Canceled), temporal.IsCanceledError(err):
		return "interrupted"
	}
	return "error"
}
