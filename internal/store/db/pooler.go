package db

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A pooler in transaction mode, for example PgBouncer, may run each transaction of a client in another
// session of PostgreSQL. Through a pooler, berth therefore runs only transactions that need no state of a
// session: the statements have no name, and the pooler must give its sessions berth's settings. LISTEN, locks
// that a session holds, migrations and probes use connections to PostgreSQL itself.

var (
	// ErrPooled means that a connection leads to a pooler that must lead to PostgreSQL itself.
	ErrPooled = errors.New("the database URL leads to a connection pooler: name PostgreSQL itself in BERTH_DATABASE_URL, and the pooler in BERTH_DATABASE_POOLER_URL")
	// ErrPoolerSettings means that a pooler does not give berth's settings to its sessions.
	ErrPoolerSettings = errors.New("the pooler of BERTH_DATABASE_POOLER_URL does not give its sessions the settings of berth")
)

// PoolerSettings returns the SQL that a pooler must run in each of its sessions, unless the URL of the pooler
// has other values.
func PoolerSettings() string { return setStatements(sessionSettings) }

func setStatements(settings map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		all = append(all, fmt.Sprintf("set %s = %s", name, settings[name]))
	}
	return strings.Join(all, "; ")
}

// poolerConfig returns the configuration of a pool behind the pooler with the given URL, and the settings
// that the pooler must give to its sessions. The connections do not send these settings, because PgBouncer
// refuses or ignores parameters that it does not know.
func poolerConfig(url string) (*pgxpool.Config, map[string]string, error) {
	cfg, err := poolConfig(url)
	if err != nil {
		return nil, nil, err
	}
	required, sent := cfg.ConnConfig.RuntimeParams, map[string]string{}
	for _, name := range []string{"timezone", "application_name"} { // PgBouncer hands these on
		sent[name] = required[name]
		delete(required, name)
	}
	cfg.ConnConfig.RuntimeParams = sent
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	return cfg, required, nil
}

// CheckPooler connects to the database through the pooler with the given URL. CheckPooler returns
// ErrPoolerSettings if the pooler does not give berth's settings to its sessions.
func CheckPooler(ctx context.Context, url string) error {
	cfg, required, err := poolerConfig(url)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return err
	}
	defer CloseSession(ctx, conn)
	rows, err := conn.Query(ctx, `select name, setting from pg_settings where name = any($1)`,
		slices.Collect(maps.Keys(required)))
	if err != nil {
		return err
	}
	var differing []string
	var name, setting string
	_, err = pgx.ForEachRow(rows, []any{&name, &setting}, func() error {
		if setting != required[name] {
			differing = append(differing, fmt.Sprintf("%s is %s", name, setting))
		}
		return nil
	})
	if err != nil || len(differing) == 0 {
		return err
	}
	slices.Sort(differing)
	return fmt.Errorf("%w: %s; set connect_query of the database in PgBouncer's configuration to '%s'",
		ErrPoolerSettings, strings.Join(differing, ", "), setStatements(required))
}

// refusePooler returns ErrPooled if the connection leads to a pooler. A pooler does not know with which
// process of PostgreSQL it will connect a client, so it gives the client an ID of its own.
func refusePooler(ctx context.Context, c *pgconn.PgConn) error {
	results, err := c.Exec(ctx, `select pg_backend_pid()`).ReadAll()
	if err != nil {
		return err
	}
	if string(results[0].Rows[0][0]) != strconv.FormatUint(uint64(c.PID()), 10) {
		return ErrPooled
	}
	return nil
}
