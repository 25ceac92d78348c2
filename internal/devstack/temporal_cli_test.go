package devstack_test

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"berth/internal/devstack"
)

// Each command must reach the server. Only if the field `fails` is not empty, the command must fail with an
// error that contains the text of this field.
func TestTemporalCLI_ReadsFlagsBeforeVariables(t *testing.T) {
	t.Parallel()
	cli, err := devstack.TemporalCLI(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	s := temporal(t, devstack.TemporalOptions{CLI: cli, Dir: folder(t), Memory: true})
	const nowhere = "127.0.0.1:1"
	for name, c := range map[string]struct {
		environ []string
		args    []string
		fails   string
	}{
		"address in a flag":                      {nil, []string{"--address", s.Address}, ""},
		"address in a variable":                  {[]string{"TEMPORAL_ADDRESS=" + s.Address}, nil, ""},
		"flag before variable":                   {[]string{"TEMPORAL_ADDRESS=" + nowhere}, []string{"--address", s.Address}, ""},
		"flag with an address without server":    {[]string{"TEMPORAL_ADDRESS=" + s.Address}, []string{"--address", nowhere}, nowhere},
		"namespace in a variable":                {[]string{"TEMPORAL_ADDRESS=" + s.Address, "TEMPORAL_NAMESPACE=wrong"}, nil, "wrong"},
		"namespace in a flag before a variable":  {[]string{"TEMPORAL_ADDRESS=" + s.Address, "TEMPORAL_NAMESPACE=wrong"}, []string{"-n", "default"}, ""},
		"TLS with a server that does not use it": {nil, []string{"--address", s.Address, "--tls"}, "tls"},
		"unknown level of the log":               {nil, []string{"--address", s.Address, "--log-level", "loud"}, "loud"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(
				[]string{"workflow", "list", "--disable-config-file", "--client-connect-timeout", "60s"},
				c.args...)
			cmd := exec.CommandContext(t.Context(), cli, args...)
			cmd.Env = append(c.environ, "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			switch {
			case c.fails == "" && err != nil:
				t.Errorf("temporal %s: %v: %s", strings.Join(args, " "), err, out)
			case c.fails != "" && (err == nil || !strings.Contains(strings.ToLower(string(out)), c.fails)):
				t.Errorf("temporal %s: got error %v and output %q, want an error with the text %q",
					strings.Join(args, " "), err, out, c.fails)
			}
		})
	}
}

// A cancelled request interrupts a statement of the dev server's database. The interruption must not reach
// later statements.
func TestDevServer_AnswersAfterCancelledRequests(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]bool{"in memory": true, "in a file": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := temporal(t, devstack.TemporalOptions{Dir: folder(t), Memory: memory})
			conn, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			service := workflowservice.NewWorkflowServiceClient(conn)

			cancelRequests(t.Context(), service)

			answer := retryAfterCancellation(t.Context(), service)
			if answer != nil {
				t.Errorf("describe the namespace after cancelled requests: %v", answer)
			}
		})
	}
}

// cancelRequests sends requests whose deadlines are too short for most of them.
func cancelRequests(ctx context.Context, service workflowservice.WorkflowServiceClient) {
	const clients, requests = 20, 250
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for i := range requests {
				short, cancel := context.WithTimeout(ctx, time.Duration(1+rand.IntN(30))*time.Millisecond)
				if i%2 == 0 {
					_, _ = service.ListNamespaces(short, &workflowservice.ListNamespacesRequest{})
				} else {
					_, _ = service.ListWorkflowExecutions(short, &workflowservice.ListWorkflowExecutionsRequest{Namespace: "default"})
				}
				cancel()
			}
		})
	}
	all.Wait()
}

// retryAfterCancellation returns nil as soon as one of ten requests succeeds.
func retryAfterCancellation(ctx context.Context, service workflowservice.WorkflowServiceClient) (err error) {
	for range 10 {
		if _, err = service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "default"}); err == nil {
			return nil
		}
	}
	return err
}
