package server

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"berth/internal/store/db"
)

// The activities of one name are a class of database work, so that those that wait for locks leave
// connections for the activities of other names.
func TestActivity_EachNameIsAClassOfDatabaseWork(t *testing.T) {
	t.Parallel()
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{
		Interceptors: []interceptor.WorkerInterceptor{newActivityMetrics(prometheus.NewRegistry())},
	})
	classOf := func(ctx context.Context) (string, error) {
		class, _ := db.CallerOf(ctx)
		return class, nil
	}
	for _, name := range []string{"TryEntry", "ApplyPortReports"} {
		env.RegisterActivityWithOptions(classOf, activity.RegisterOptions{Name: name})
		result, err := env.ExecuteActivity(name)
		if err != nil {
			t.Fatal(err)
		}
		var class string
		if err := result.Get(&class); err != nil {
			t.Fatal(err)
		}
		if want := "activity " + name; class != want {
			t.Errorf("class of the activity %s: got %q, want %q", name, class, want)
		}
	}
}
