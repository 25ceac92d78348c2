package devstack

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
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

// namespace is the Temporal namespace of berth's workflows.
const namespace = "default"

// services are the services of the server. The frontend, which comes first, also serves HTTP.
var services = []string{"frontend", "history", "matching", "worker"}

// portCount is the number of ports of a server: two of each service, and the frontend's HTTP port.
var portCount = 2*len(services) + 1

// postgresTemporal is a Temporal server that stores all its data in PostgreSQL, as in production.
type postgresTemporal struct {
	programs TemporalPrograms
	dir      string
	service  string   // the only service of the process; empty means all services
	dynamic  []string // dynamic configuration: name=value
	environ  []string // environment variables besides HOME
	database *url.URL // URL with the user and password of the PostgreSQL role that the Temporal server uses
	ports    []int    // the frontend's port comes first
}

// productionConfig is the dynamic configuration of a server whose performance bench measures. Only the limit
// of requests differs from the defaults.
var productionConfig = []string{"frontend.namespaceRPS=100000"}

// StartTemporalOnPostgres starts a Temporal server with databases of its own in a running PostgreSQL.
// StartTemporalOnPostgres registers the namespace "default" and berth's search attributes. The folder `dir`
// holds the server's configuration and log. The server listens on free ports.
func StartTemporalOnPostgres(
	ctx context.Context,
	programs TemporalPrograms,
	dir string,
	p *Postgres,
) (*Temporal, error) {
	s, err := preparePostgresTemporal(ctx, programs, dir, p, productionConfig)
	if err != nil {
		return nil, err
	}
	t, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	// A running server loads new search attributes with a delay and fails workflow tasks until then. A
	// restarted server has the new search attributes immediately.
	t.Kill()
	if err := t.Start(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

func preparePostgresTemporal(
	ctx context.Context,
	programs TemporalPrograms,
	dir string,
	p *Postgres,
	dynamic []string,
) (*postgresTemporal, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &postgresTemporal{programs: programs, dir: dir, dynamic: dynamic}
	if err := s.prepare(ctx, p); err != nil {
		return nil, fmt.Errorf("prepare Temporal's databases: %w", err)
	}
	return s, nil
}

// address returns the address of a service.
func (s *postgresTemporal) address(service string) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.ports[2*slices.Index(services, service)]))
}

// start runs the server on free ports. If another process takes one of the ports first, start tries other
// ports.
func (s *postgresTemporal) start(ctx context.Context) (*Temporal, error) {
	for attempt := 1; ; attempt++ {
		var err error
		if s.ports, err = freePorts(portCount); err != nil {
			return nil, err
		}
		address := s.address("frontend")
		if err := s.writeConfig(address); err != nil {
			return nil, err
		}
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

// prepare writes the dynamic configuration, and creates or updates Temporal's role, databases and schemas in
// PostgreSQL.
func (s *postgresTemporal) prepare(ctx context.Context, p *Postgres) error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := s.writeDynamicConfig(); err != nil {
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
	return s.createDatabases(ctx, c)
}

// createDatabases creates Temporal's databases unless they exist, and brings their schemas up to date.
func (s *postgresTemporal) createDatabases(ctx context.Context, c *pgx.Conn) error {
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

func (s *postgresTemporal) dynamicConfig() string { return filepath.Join(s.dir, "dynamic.yaml") }

func (s *postgresTemporal) writeDynamicConfig() error {
	var lines strings.Builder
	for _, setting := range s.dynamic {
		name, value, _ := strings.Cut(setting, "=")
		fmt.Fprintf(&lines, "%s:\n- value: %s\n", name, value)
	}
	return os.WriteFile(s.dynamicConfig(), []byte(lines.String()), 0o644)
}

//go:embed temporal_server.yaml
var serverConfig string

var serverConfigTemplate = template.Must(template.New("").Parse(serverConfig))

// writeConfig writes the configuration of a server that listens on s.ports.
func (s *postgresTemporal) writeConfig(address string) error {
	type service struct {
		Name                   string
		GRPC, Membership, HTTP int
	}
	var all []service
	for i, name := range services {
		all = append(all, service{Name: name, GRPC: s.ports[2*i], Membership: s.ports[2*i+1]})
	}
	all[0].HTTP = s.ports[portCount-1]
	password, _ := s.database.User.Password()
	var config bytes.Buffer
	err := serverConfigTemplate.Execute(&config, map[string]any{
		"Database": s.database,
		"Password": password,
		"Services": all,
		"Frontend": address,
		"Databases": map[string]string{
			"executions": temporalDatabase,
			"visibility": visibilityDatabase,
		},
		"DynamicConfig": s.dynamicConfig(),
	})
	if err != nil {
		return err
	}
	// contains the password
	return os.WriteFile(filepath.Join(s.dir, serverEnvironment+".yaml"), config.Bytes(), 0o600)
}

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
	cmd.Env = []string{
		"SQL_PLUGIN=postgres12",
		"SQL_HOST=" + s.database.Hostname(),
		"SQL_PORT=" + s.database.Port(),
		"SQL_USER=" + temporalRole,
		"SQL_PASSWORD=" + password,
		"SQL_DATABASE=" + database,
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := Run(ctx, cmd); err != nil {
		return fmt.Errorf("run %s on Temporal's database %s: %w: %s",
			args[0], database, err, strings.TrimSpace(out.String()))
	}
	return nil
}

// serverEnvironment is the name of the server's configuration file without the extension.
const serverEnvironment = "berth"

// command returns the command that runs the server. The command has no environment variables but HOME and
// s.environ, so that the configuration file has all settings of Temporal.
func (s *postgresTemporal) command() *exec.Cmd {
	cmd := exec.Command(s.programs.Server,
		"--root", s.dir, "--config", ".", "--env", serverEnvironment, "--allow-no-auth", "start")
	if s.service != "" {
		cmd.Args = append(cmd.Args, "--service", s.service)
	}
	cmd.Env = append([]string{"HOME=" + s.dir}, s.environ...)
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
	has, err := operator.ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: namespace})
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
	_, err = operator.AddSearchAttributes(ctx,
		&operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: attributes})
	return err
}
