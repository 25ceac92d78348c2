package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// sessionCheck is the interval at which InOneProcess checks whether the PostgreSQL session that holds the
// advisory lock is still connected.
const sessionCheck = 5 * time.Second

// silenceLimit is the time after which PostgreSQL ends the session that holds the advisory lock if the
// session sends no query. Thus a process that is stopped, for example by SIGSTOP, loses the lock, although
// the kernel of its machine keeps the TCP connection alive.
const silenceLimit = 15 * time.Second

// pingSession returns an error unless the database answers within the time between two checks.
func pingSession(ctx context.Context, session *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, sessionCheck)
	defer cancel()
	return session.Ping(ctx)
}

// CloseSession closes a session, and waits at most sessionCheck for a connection that does not answer.
func CloseSession(ctx context.Context, session *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionCheck)
	defer cancel()
	_ = session.Close(ctx)
}

// InOneProcess runs f in at most one process at a time, and returns false if another process is running f. A
// PostgreSQL session holds an advisory lock while f runs. If the process ends or is silent for silenceLimit,
// PostgreSQL releases the lock. If the session is lost, the context of f ends.
func (d *DB) InOneProcess(ctx context.Context, name string, f func(context.Context)) (bool, error) {
	session, err := d.Session(ctx)
	if err != nil {
		return false, fmt.Errorf("acquire the session lock %s: %w", name, err)
	}
	defer CloseSession(ctx, session)
	// These settings make PostgreSQL end the session soon after the process falls silent or its machine dies.
	// With the default settings, the session of a silent process never ends, and the session of a dead
	// machine ends only after hours.
	if _, err := session.Exec(ctx, fmt.Sprintf(`set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 4; set idle_session_timeout = %d`,
		silenceLimit.Milliseconds())); err != nil {
		return false, fmt.Errorf("acquire the session lock %s: %w", name, err)
	}
	var locked bool
	if err := session.QueryRow(ctx, `select pg_try_advisory_lock(hashtextextended($1, 0))`, "alone "+name).Scan(&locked); err != nil ||
		!locked {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		f(ctx)
	}()
	for {
		select {
		case <-ended:
			return true, nil
		case <-time.After(sessionCheck):
		}
		if err := pingSession(ctx, session); err != nil {
			cancel()
			<-ended
			return true, err
		}
	}
}
