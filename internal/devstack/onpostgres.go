package devstack

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"berth/internal/contract"
)

// The names of the Temporal server's role and databases in PostgreSQL.
const (
	temporalRole       = "temporal"
	temporalDatabase   = "temporal"
	visibilityDatabase = "temporal_visibility"
)

// historyShards is the number of Temporal's history shards. historyShards is small because the server runs on one machine.
const historyShards = "4"

// namespace is the Temporal namespace of berth's workflows.
const namespace = "default"

// portVariables are the environment variables with the ports of Temporal's services. The frontend's variable comes first.
var portVariables = []string{"FRONTEND_GRPC_PORT", "FRONTEND_HTTP_PORT", "FRONTEND_MEMBERSHIP_PORT", "HISTORY_GRPC_PORT",
	"HISTORY_MEMBERSHIP_PORT", "MATCHING_GRPC_PORT", "MATCHING_MEMBERSHIP_PORT", "WORKER_GRPC_PORT", "WORKER_MEMBERSHIP_PORT"}

// postgresTemporal is a Temporal server that stores all its data in PostgreSQL, as in production.
type postgresTemporal struct {
	programs TemporalPrograms
	dir      string
	database *url.URL // as the server's role
	ports    []int    // frontend first
}

// StartTemporalOnPostgres starts a Temporal server with databases of its own in a running PostgreSQL. StartTemporalOnPostgres registers the
// namespace "default" and berth's search attributes. The folder `dir` holds the server's configuration and log. The server listens on free
// ports.
func StartTemporalOnPostgres(ctx context.Context, programs TemporalPrograms, dir string, p *Postgres) (*Temporal, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &postgresTemporal{programs: programs, dir: dir}
	if err := s.prepare(ctx, p); err != nil {
		return nil, fmt.Errorf("prepare Temporal's databases: %w", err)
	}
	t, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	// A running server loads new search attributes with a delay and fails workflow tasks until then. A restarted server has the new search
	// attributes immediately.
	t.Kill()
	if err := t.Start(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// start runs the server on free ports. If another process takes one of the ports first, start tries other ports.
func (s *postgresTemporal) start(ctx context.Context) (*Temporal, error) {
	for attempt := 1; ; attempt++ {
		var err error
		if s.ports, err = freePorts(len(portVariables)); err != nil {
			return nil, err
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.ports[0]))
		t := &Temporal{Address: address, options: TemporalOptions{Dir: s.dir}, command: s.command}
		t.ready = func(ctx context.Context) error { return registered(ctx, address) }
		if err = t.run(ctx); err == nil {
			return t, nil
		}
		taken := slices.ContainsFunc(s.ports, func(port int) bool { _, err := Port(port); return err != nil })
		if !taken || attempt == 3 {
			return nil, err
		}
	}
}

// prepare creates Temporal's role, databases and schemas in PostgreSQL, or updates them from an earlier version.
func (s *postgresTemporal) prepare(ctx context.Context, p *Postgres) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(s.settings(), []byte("frontend.namespaceRPS:\n- value: 100000\n"), 0o644); err != nil {
		return err
	}
	c, err := p.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	if s.database, err = url.Parse(p.URL); err != nil {
		return err
	}
	if err := s.setPassword(ctx, c); err != nil {
		return err
	}
	for _, d := range []struct{ name, schema string }{
		{temporalDatabase, "postgresql/v12/temporal"},
		{visibilityDatabase, "postgresql/v12/visibility"},
	} {
		var exists bool
		if err := c.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, d.name).Scan(&exists); err != nil {
			return err
		}
		if !exists {
			if _, err := c.Exec(ctx, `create database `+d.name+` owner `+temporalRole); err != nil {
				return err
			}
			if err := s.runSchemaTool(ctx, d.name, "setup-schema", "-v", "0.0"); err != nil {
				return err
			}
		}
		if err := s.runSchemaTool(ctx, d.name, "update-schema", "--schema-name", d.schema); err != nil {
			return err
		}
	}
	return nil
}

func (s *postgresTemporal) settings() string { return filepath.Join(s.dir, "dynamic.yaml") }

// setPassword gives Temporal's role in PostgreSQL a new random password.
func (s *postgresTemporal) setPassword(ctx context.Context, c *pgx.Conn) error {
	var exists bool
	if err := c.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1)`, temporalRole).Scan(&exists); err != nil {
		return err
	}
	password := rand.Text()
	s.database.User = url.UserPassword(temporalRole, password)
	verb := "create"
	if exists {
		verb = "alter"
	}
	_, err := c.Exec(ctx, verb+` role `+temporalRole+` login password '`+password+`'`)
	return err
}

// runSchemaTool runs Temporal's schema tool on one of the databases.
func (s *postgresTemporal) runSchemaTool(ctx context.Context, database string, args ...string) error {
	cmd := exec.Command(s.programs.SQLTool, args...)
	password, _ := s.database.User.Password()
	cmd.Env = []string{"SQL_PLUGIN=postgres12", "SQL_HOST=" + s.database.Hostname(), "SQL_PORT=" + s.database.Port(),
		"SQL_USER=" + temporalRole, "SQL_PASSWORD=" + password, "SQL_DATABASE=" + database}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := Run(ctx, cmd); err != nil {
		return fmt.Errorf("run %s on Temporal's database %s: %w: %s", args[0], database, err, strings.TrimSpace(out.String()))
	}
	return nil
}

// command returns the command that runs the server. The environment of the command has only the server's settings.
func (s *postgresTemporal) command() *exec.Cmd {
	password, _ := s.database.User.Password()
	cmd := exec.Command(s.programs.Server, "--allow-no-auth", "start")
	cmd.Env = []string{"HOME=" + s.dir, "DB=postgres12_pgx", "POSTGRES_SEEDS=" + s.database.Hostname(), "DB_PORT=" + s.database.Port(),
		"POSTGRES_USER=" + temporalRole, "POSTGRES_PWD=" + password, "DBNAME=" + temporalDatabase, "VISIBILITY_DBNAME=" + visibilityDatabase,
		"NUM_HISTORY_SHARDS=" + historyShards, "BIND_ON_IP=127.0.0.1", "LOG_LEVEL=warn",
		"DYNAMIC_CONFIG_FILE_PATH=" + s.settings()}
	for i, name := range portVariables {
		cmd.Env = append(cmd.Env, name+"="+strconv.Itoa(s.ports[i]))
	}
	return cmd
}

// registered creates the namespace and the search attributes unless they exist.
func registered(ctx context.Context, address string) error {
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	service := workflowservice.NewWorkflowServiceClient(c)
	_, err = service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if status.Code(err) == codes.NotFound {
		_, err = service.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)})
	}
	if err != nil {
		return err
	}
	operator := operatorservice.NewOperatorServiceClient(c)
	has, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return err
	}
	attributes := map[string]enums.IndexedValueType{}
	for _, a := range contract.SearchAttributes {
		if _, ok := has.CustomAttributes[a.Name]; ok {
			continue
		}
		if attributes[a.Name], err = enums.IndexedValueTypeFromString(a.Type); err != nil {
			return fmt.Errorf("add search attribute %s: %w", a.Name, err)
		}
	}
	if len(attributes) == 0 {
		return nil
	}
	_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: attributes})
	return err
}
