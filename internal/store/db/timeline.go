package db

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"berth/internal/coalesce"
)

// errReplaced means that a failover has replaced the server by another one.
var errReplaced = errors.New("a failover has replaced this server")

// timelineFence refuses connections to a former primary. If the database URL names several servers, and a
// former primary starts again without becoming a standby of the promoted server, both accept writes. A
// promotion begins a new timeline with a higher number, so the fence asks all servers, and refuses a server
// whose timeline is lower than the highest one that the process has seen.
type timelineFence struct {
	servers []*pgconn.Config // each accepts any role of its server
	timeout time.Duration    // how long a survey waits for a server
	surveys *coalesce.Group[uint64]
	highest atomic.Uint64
}

// maxSurveyTimeout is the maximum time that a survey waits for a server: a lost server must not delay a
// failover.
const maxSurveyTimeout = time.Second

// addTimelineFence makes the connections of the configuration pass a fence. If the database URL names one
// server, addTimelineFence does nothing, because then another service chooses the server. The configuration
// must have a timeout to connect.
func addTimelineFence(cfg *pgx.ConnConfig) {
	if len(addresses(cfg)) == 1 {
		return
	}
	f := &timelineFence{
		// A connection may wait for two surveys, and must have time for its other steps.
		timeout: min(maxSurveyTimeout, cfg.ConnectTimeout/4),
		surveys: coalesce.NewGroup[uint64](0),
	}
	for _, s := range targets(cfg) {
		one := cfg.Config.Copy()
		one.Host, one.Port, one.TLSConfig = s.Host, s.Port, s.TLSConfig
		one.Fallbacks, one.ValidateConnect, one.ConnectTimeout = nil, nil, f.timeout
		f.servers = append(f.servers, one)
	}
	suits := cfg.ValidateConnect // checks target_session_attrs
	cfg.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		var err error
		if suits != nil {
			err = suits(ctx, c)
		}
		// pgconn uses a server that is not preferred if there is no other one.
		var notPreferred *pgconn.NotPreferredError
		if err != nil && !errors.As(err, &notPreferred) {
			return err
		}
		if refused := f.check(ctx, c); refused != nil {
			return refused
		}
		return err
	}
}

// targets returns the servers of the configuration, in the order in which a connection tries them. A server
// occurs twice if a connection tries it with and without TLS.
func targets(cfg *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, cfg.Fallbacks...)
}

// addresses returns the addresses of the servers of the configuration.
func addresses(cfg *pgx.ConnConfig) map[string]bool {
	all := map[string]bool{}
	for _, s := range targets(cfg) {
		all[net.JoinHostPort(s.Host, strconv.Itoa(int(s.Port)))] = true
	}
	return all
}

// check refuses a primary whose timeline is lower than the highest one.
func (f *timelineFence) check(ctx context.Context, c *pgconn.PgConn) error {
	timeline, err := readTimeline(ctx, c)
	if err != nil {
		return fmt.Errorf("read the timeline of the server: %w", err)
	}
	if timeline == 0 {
		return nil
	}
	highest, err := f.surveys.Do(ctx, f.survey)
	if err != nil {
		return err
	}
	if timeline < highest {
		return fmt.Errorf(
			"%w: its timeline is %d, and the timeline of the promoted server is %d",
			errReplaced, timeline, highest,
		)
	}
	return nil
}

// survey asks all servers, and returns the highest timeline that the process has seen.
func (f *timelineFence) survey(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	timelines := make([]uint64, len(f.servers))
	var answers sync.WaitGroup
	for i, s := range f.servers {
		answers.Go(func() {
			c, err := pgconn.ConnectConfig(ctx, s)
			if err != nil {
				return
			}
			defer func() { _ = c.Close(ctx) }()
			if timeline, err := readTimeline(ctx, c); err == nil {
				timelines[i] = timeline
			}
		})
	}
	answers.Wait()
	f.highest.Store(max(f.highest.Load(), slices.Max(timelines)))
	return f.highest.Load(), nil
}

// readTimeline returns the number of the timeline that the server writes, or 0 if the server is a standby.
func readTimeline(ctx context.Context, c *pgconn.PgConn) (uint64, error) {
	results, err := c.Exec(ctx, `
		select case when pg_is_in_recovery() then '0' else substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) end`).
		ReadAll()
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(results[0].Rows[0][0]), 16, 32)
}
