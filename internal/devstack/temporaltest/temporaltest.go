// Package temporaltest gives every test a namespace of its own on a real Temporal server. With its own
// namespace, a test can use the same task queue names and workflow IDs as other tests that run at the same
// time. A package that uses temporaltest has
//
//	func TestMain(m *testing.M) { os.Exit(temporaltest.Main(m)) }
//
// or, if it needs databases too, temporaltest.Main(m, storetest.Main).
package temporaltest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"berth/internal/contract"
	"berth/internal/devstack"
)

// ServerVariable is the environment variable with the address of a Temporal server that all packages of a
// test run use. If the variable is not set, Main starts a server for the package.
const ServerVariable = "BERTH_TEST_TEMPORAL_ADDRESS"

var address string

// Namespace is the Temporal namespace of one test.
type Namespace struct {
	Client  client.Client
	Address string // host:port of the server
	Name    string
}

// Main runs a package's tests against the server that ServerVariable names. If the variable is not set, Main
// starts a server and stops it after the tests. If the parameter `inner` is given, for example
// storetest.Main, Main calls it to run the tests.
func Main(m *testing.M, inner ...func(*testing.M) int) int {
	run := (*testing.M).Run
	if len(inner) > 0 {
		run = inner[0]
	}
	if address = os.Getenv(ServerVariable); address != "" {
		return run(m)
	}
	dir, err := os.MkdirTemp("", "berth-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "temporaltest:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := devstack.StartTemporal(context.Background(),
		devstack.TemporalOptions{Dir: dir, Memory: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, "temporaltest:", err)
		return 1
	}
	defer server.Stop()
	address = server.Address
	return run(m)
}

// New creates a Temporal namespace with berth's search attributes for a test.
func New(t testing.TB) Namespace {
	t.Helper()
	if address == "" {
		t.Fatal("a package that uses temporaltest needs a function TestMain that calls temporaltest.Main")
	}
	n := Namespace{Address: address, Name: "t-" + strings.ToLower(rand.Text())}
	c, err := Dial(t.Context(), client.Options{
		HostPort:  n.Address,
		Namespace: n.Name,
		Identity:  "test", // in histories, instead of the name of the machine
		Logger: log.NewStructuredLogger(
			slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		),
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}},
	})
	if err != nil {
		t.Fatalf("connect to the Temporal server: %v", err)
	}
	t.Cleanup(c.Close)
	n.Client = c
	if err := Register(t.Context(), c, n.Name); err != nil {
		t.Fatalf("register the test's namespace: %v", err)
	}
	return n
}

// callTimeout limits one call to the server. It is long because the machine that runs the tests may be slow.
const callTimeout = 10 * time.Minute

// Dial connects to a Temporal server with a client that gives each call the time callTimeout. Without this,
// Temporal's SDK gives up most calls after ten seconds.
func Dial(ctx context.Context, o client.Options) (client.Client, error) {
	o.ConnectionOptions.GetSystemInfoTimeout = callTimeout
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions,
		grpc.WithChainUnaryInterceptor(extendDeadline))
	return client.DialContext(ctx, o)
}

// extendDeadline is an interceptor that replaces the deadline of a call by callTimeout. Updates of workflows
// keep their deadline, because the SDK gives them a minute, and because a test may limit the time of an
// update.
func extendDeadline(
	ctx context.Context,
	method string,
	req, reply any,
	cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	if strings.HasSuffix(method, "/UpdateWorkflowExecution") ||
		strings.HasSuffix(method, "/PollWorkflowExecutionUpdate") {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	extended, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	defer stop()
	return invoke(extended, method, req, reply, cc, opts...)
}

// Register creates a Temporal namespace with berth's search attributes.
func Register(ctx context.Context, c client.Client, name string) error {
	_, err := c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        name,
		WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		return err
	}
	attributes := map[string]enums.IndexedValueType{}
	for _, a := range contract.SearchAttributes {
		kind, err := enums.IndexedValueTypeFromString(a.Type)
		if err != nil {
			return fmt.Errorf("add search attribute %s: %w", a.Name, err)
		}
		attributes[a.Name] = kind
	}
	for {
		_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace:        name,
			SearchAttributes: attributes,
		})
		if err == nil || !strings.Contains(err.Error(), namespaceConflict) {
			return err
		}
	}
}

// namespaceConflict is a part of the error with which the server refuses a change of a namespace while
// another client changes any namespace.
const namespaceConflict = "conditional update error"
