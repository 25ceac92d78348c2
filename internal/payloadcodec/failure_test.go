package payloadcodec_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"berth/internal/devstack/temporaltest"
	"berth/internal/payloadcodec"
)

// quoteAnswer fails as an activity does that quotes the answer of another service.
func quoteAnswer(context.Context) error {
	return errors.New("the service answered \xff\xfe with 500")
}

// readFailures returns the texts of the failures of a local and of a regular activity.
func readFailures(ctx workflow.Context) (string, error) {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: time.Hour,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	first := workflow.ExecuteLocalActivity(local, quoteAnswer).Get(ctx, nil)
	regular := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	second := workflow.ExecuteActivity(regular, quoteAnswer).Get(ctx, nil)
	var texts []string
	for _, err := range []error{first, second} {
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || !utf8.ValidString(app.Message()) {
			return "", temporal.NewApplicationError("the workflow got a text that is not UTF-8", "Failed", err)
		}
		texts = append(texts, app.Message())
	}
	return strings.Join(texts, "|"), nil
}

// Temporal accepts only texts in UTF-8. If a failure had another text, the worker could not report it: the
// workflow task of a local activity would fail again and again.
func TestFailure_AnyTextReachesTheWorkflow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]payloadcodec.Codec{
		"no keys":   {},
		"encrypted": newCodec(t, true, newKey(1)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with := connect(t, temporaltest.New(t), c)
			w := worker.New(with, queue, worker.Options{DeadlockDetectionTimeout: time.Hour})
			w.RegisterWorkflow(readFailures)
			w.RegisterActivity(quoteAnswer)
			if err := w.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			run, err := with.ExecuteWorkflow(t.Context(),
				client.StartWorkflowOptions{ID: "w", TaskQueue: queue}, readFailures)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			err = run.Get(t.Context(), &got)
			if err != nil || strings.Count(got, "with 500") != 2 {
				t.Errorf("texts of the failures: got %q, error %v; want both", got, err)
			}
		})
	}
}
