package devstack

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// StartStandby starts a second server in the folder `dir` that replicates p, and makes p wait with each
// commit until the standby has stored it. Both servers have the same password. StartStandby restarts p.
func (p *Postgres) StartStandby(ctx context.Context, dir string) (*Postgres, error) {
	// pg_rewind of Rejoin needs both
	for _, setting := range []string{`wal_log_hints = on`, `wal_keep_size = '256MB'`} {
		if err := p.exec(ctx, `alter system set `+setting); err != nil {
			return nil, err
		}
	}
	p.Stop()
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Postgres{options: PostgresOptions{Dir: dir}, bin: p.bin, as: p.as}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := s.as.chown(dir); err != nil {
		return nil, err
	}
	cmd := s.command(ctx, "pg_basebackup", "-D", s.cluster(), "-d", p.adminURL(), "--checkpoint=fast", "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, out)
	}
	if err := s.follow(p); err != nil {
		return nil, err
	}
	err = withPort(0, func(port int) error {
		s.options.Port = port
		s.URL = strings.Replace(p.URL, p.address(), fmt.Sprintf("127.0.0.1:%d", port), 1)
		return s.run(ctx)
	})
	if err != nil {
		return nil, err
	}
	return s, p.awaitStandby(ctx)
}

// Promote makes a standby a primary, which waits for no standby until Rejoin gives it one. Promote returns
// when the server accepts writes.
func (p *Postgres) Promote(ctx context.Context) error {
	c, err := p.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	var promoted bool
	if err := c.QueryRow(ctx, `select pg_promote(true, 600)`).Scan(&promoted); err != nil || !promoted {
		return fmt.Errorf("promote the standby: done %v, error %w", promoted, err)
	}
	return setSynchronous(ctx, c, "")
}

// Rejoin starts a killed server as the standby of the server that was promoted in its place. What only the
// killed server has stored is lost, which no client was told to be committed.
func (p *Postgres) Rejoin(ctx context.Context, primary *Postgres) error {
	// pg_rewind needs a checkpoint of the new timeline
	if err := primary.exec(ctx, `checkpoint`); err != nil {
		return err
	}
	// pg_rewind first starts the killed server alone, to recover it
	cmd := p.command(ctx, "pg_rewind", "-D", p.cluster(), "--source-server", primary.adminURL(), "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_rewind: %w: %s", err, out)
	}
	if err := p.follow(primary); err != nil {
		return err
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	return primary.awaitStandby(ctx)
}

// Start starts a killed server again on the same port, with the role that it had.
func (p *Postgres) Start(ctx context.Context) error { return p.run(ctx) }

// follow makes the server a standby of the primary at its next start.
func (p *Postgres) follow(primary *Postgres) error {
	signal := filepath.Join(p.cluster(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return err
	}
	if err := p.as.chown(signal); err != nil {
		return err
	}
	settings, err := os.OpenFile(filepath.Join(p.cluster(), "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(settings, "primary_conninfo = '%s'\nsynchronous_standby_names = ''\n", primary.adminURL())
	if closed := settings.Close(); err == nil {
		err = closed
	}
	return err
}

// awaitStandby waits until a standby replicates p, and from then on each commit of p waits for the standby.
func (p *Postgres) awaitStandby(ctx context.Context) error {
	c, err := p.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	for {
		var streaming bool
		err := c.QueryRow(ctx, `select exists (select from pg_stat_replication where state = 'streaming')`).
			Scan(&streaming)
		if err != nil {
			return fmt.Errorf("wait for the standby: %w", err)
		}
		if streaming {
			return setSynchronous(ctx, c, "*")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func setSynchronous(ctx context.Context, c *pgx.Conn, names string) error {
	for _, sql := range []string{
		`alter system set synchronous_standby_names = '` + names + `'`,
		`select pg_reload_conf()`,
	} {
		if _, err := c.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

func (p *Postgres) exec(ctx context.Context, sql string) error {
	c, err := p.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	_, err = c.Exec(ctx, sql)
	return err
}

// address returns host:port of the server.
func (p *Postgres) address() string { return fmt.Sprintf("127.0.0.1:%d", p.options.Port) }

// adminURL returns the URL of the database that every server has.
func (p *Postgres) adminURL() string {
	return strings.TrimSuffix(p.URL, "/berth") + "/postgres"
}

// FailoverURL returns the URL of a database on several servers, of which clients use the one that accepts
// writes.
func FailoverURL(servers ...*Postgres) string {
	u, err := url.Parse(servers[0].URL)
	if err != nil {
		panic(err) // StartPostgres has made the URL
	}
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.address())
	}
	u.Host = strings.Join(hosts, ",")
	u.RawQuery = "target_session_attrs=read-write"
	return u.String()
}
