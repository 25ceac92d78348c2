package db

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"
)

// Time limits of berth's SQL statements, lock waits and idle transactions. If a client of the database hangs
// or is lost, the time limits make PostgreSQL release the locks of that client. The limit for lock waits is
// shorter than the other two, so that a session that waits for another session's lock gets the error for a
// lock wait.
const (
	StatementTimeout = 30 * time.Second
	LockTimeout      = 10 * time.Second
	idleTimeout      = 15 * time.Second
)

// goneClientCheck is the interval at which PostgreSQL checks, while it runs a statement, whether the client
// is still there. A request to cancel the statement may be lost, or may arrive before the statement begins; a
// process that was killed sends none.
const goneClientCheck = time.Second

// connectTimeout is the maximum time to connect to the database, including the authentication.
const connectTimeout = 5 * time.Second

// stallTimeout is how long the kernel waits for the acknowledgement of sent data before it ends a connection.
const stallTimeout = 20 * time.Second

// sessionSettings are the settings of the sessions that run transactions. Parameters of the database URL have
// priority.
var sessionSettings = map[string]string{
	"statement_timeout":                   milliseconds(StatementTimeout),
	"lock_timeout":                        milliseconds(LockTimeout),
	"idle_in_transaction_session_timeout": milliseconds(idleTimeout),
	"client_connection_check_interval":    milliseconds(goneClientCheck),
	// A connection keeps the plans of its statements. The default of random_page_cost is for rotating
	// disks: with this default, a plan that PostgreSQL makes for a small table reads the table
	// sequentially, even after the table has grown.
	"random_page_cost": "1.1",
	// Compiling a plan (JIT) takes longer than any query of berth.
	"jit": "off",
}

func poolConfig(url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("parse the database URL: %w", err)
	}
	params := cfg.ConnConfig.RuntimeParams
	for name, value := range sessionSettings {
		if _, given := params[name]; !given {
			params[name] = value
		}
	}
	params["timezone"] = "UTC"
	params["application_name"] = "berth"
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	cfg.ConnConfig.DialFunc = dialer(cfg.ConnConfig.ConnectTimeout).DialContext
	if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = int32(max(minPoolSize, runtime.NumCPU()))
	}
	cfg.ConnConfig.Tracer = sqlTracer{}
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		encodeUUIDs(conn.TypeMap())
		return nil
	}
	return cfg, nil
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// dialer returns a dialer whose connections end within half a minute if the machine of the database no longer
// answers. With the kernel's default settings, this takes a quarter of an hour for a connection with
// unacknowledged data, and two hours for an idle one.
func dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout: timeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable:   true,
			Idle:     10 * time.Second,
			Interval: 5 * time.Second,
			Count:    3,
		},
		Control: func(network, _ string, c syscall.RawConn) error {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			var failed error
			err := c.Control(func(fd uintptr) {
				failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT,
					int(stallTimeout.Milliseconds()))
			})
			if err != nil {
				return err
			}
			return failed
		},
	}
}
