package devstack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// PgBouncerOptions are the options of a PgBouncer.
type PgBouncerOptions struct {
	Dir          string // holds the configuration and the log; created if missing, kept after Stop
	Postgres     string // URL of a database, whose server and user all databases of the pooler use
	ConnectQuery string // SQL without quotes that runs on each new connection to PostgreSQL; empty: none
}

// PgBouncer is a running PgBouncer, a connection pooler, in transaction mode.
type PgBouncer struct {
	// URL is the URL of the database of the options through the pooler. Clients need no password.
	URL  string
	proc *process
}

// pgbouncer is the program in Debian's package.
const pgbouncer = "/usr/sbin/pgbouncer"

// poolerConnections is the number of connections to PostgreSQL that all clients of a database share. It is
// small, so that the transactions of one client soon use different connections.
const poolerConnections = 4

// StartPgBouncer starts a PgBouncer on a free port.
func StartPgBouncer(ctx context.Context, o PgBouncerOptions) (*PgBouncer, error) {
	if _, err := os.Stat(pgbouncer); err != nil {
		return nil, errors.New("PgBouncer is not installed: install pgbouncer, or run make deps")
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	as, err := accountFor(o.Dir) // PgBouncer refuses to run as root
	if err != nil {
		return nil, err
	}
	p := &PgBouncer{}
	return p, withPort(0, func(port int) error {
		u, err := url.Parse(o.Postgres)
		if err != nil {
			return err
		}
		file := filepath.Join(o.Dir, "pgbouncer.ini")
		if err := os.WriteFile(file, []byte(o.configuration(u, port)), 0o644); err != nil {
			return err
		}
		// PgBouncer refuses most parameters
		u.User, u.Host, u.RawQuery = url.User("berth"), fmt.Sprintf("127.0.0.1:%d", port), ""
		p.URL = u.String()
		cmd := exec.Command(pgbouncer, file)
		cmd.Dir, cmd.SysProcAttr = "/", as.attributes()
		return p.run(ctx, o.Dir, cmd)
	})
}

// configuration returns the configuration of a PgBouncer that listens on the port.
func (o PgBouncerOptions) configuration(postgres *url.URL, port int) string {
	password, _ := postgres.User.Password()
	server := fmt.Sprintf("host=%s port=%s user=%s password=%s",
		postgres.Hostname(), postgres.Port(), postgres.User.Username(), password)
	if o.ConnectQuery != "" {
		server += " connect_query='" + o.ConnectQuery + "'"
	}
	return fmt.Sprintf(`[databases]
* = %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 1000
`, server, port, poolerConnections)
}

func (p *PgBouncer) run(ctx context.Context, dir string, cmd *exec.Cmd) error {
	log, err := openLog(dir)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log.File, log.File
	if p.proc, err = start(cmd); err != nil {
		return fmt.Errorf("start PgBouncer: %w", err)
	}
	err = p.proc.await(ctx, "PgBouncer (log: "+log.Name()+")", func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, p.URL)
		if err != nil {
			return err
		}
		return c.Close(ctx)
	})
	if err != nil {
		err = log.explain(err)
		p.Stop()
	}
	return err
}

// Stop ends PgBouncer, which does not wait for its clients.
func (p *PgBouncer) Stop() { p.proc.stop(os.Kill, time.Minute) }
