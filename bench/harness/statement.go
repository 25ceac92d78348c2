package harness

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// CountStatements counts the SQL statements of berth and of Temporal in PostgreSQL's log while the function
// `do` runs. The function `do` returns the number of operations that it has executed; the returned details
// are averages over these operations. CountStatements does not count the statements that bench itself
// executes.
func (s *Stack) CountStatements(
	ctx context.Context,
	each string,
	do func(context.Context) (int, error),
) ([]Detail, error) {
	log := filepath.Join(s.dir, "postgres", "log")
	if err := s.configure(ctx, `alter system set log_statement = 'all'`, `alter system set log_line_prefix = 'sql %d %a: '`); err != nil {
		return nil, err
	}
	before, err := os.Stat(log)
	if err != nil {
		return nil, err
	}
	n, err := do(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.configure(ctx, `alter system reset log_statement`, `alter system reset log_line_prefix`); err != nil {
		return nil, err
	}
	written, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	berth, temporal := parseStatements(string(written[before.Size():]))
	return []Detail{
		{"SQL statements of berth for " + each, Ratio(float64(berth), float64(n))},
		{"SQL statements of Temporal for " + each, Ratio(float64(temporal), float64(n))},
	}, nil
}

// configure changes settings of the PostgreSQL server.
func (s *Stack) configure(ctx context.Context, settings ...string) error {
	for _, sql := range append(settings, `select pg_reload_conf()`) {
		if _, err := s.Rows.Exec(ctx, sql); err != nil {
			return err
		}
	}
	// pg_reload_conf returns before the PostgreSQL backends have the new settings
	Pause(ctx, 300*time.Millisecond)
	return nil
}

// statementPattern matches the start of a statement in PostgreSQL's log, with the names of the database and
// the application.
var statementPattern = regexp.MustCompile(`(?m)^sql (\S+) (.*?): LOG:  (?:statement|execute)`)

// parseStatements counts the SQL statements in a log of PostgreSQL by application and database.
func parseStatements(log string) (berth, temporal int) {
	for _, m := range statementPattern.FindAllStringSubmatch(log, -1) {
		switch {
		case strings.HasPrefix(m[1], "temporal"):
			temporal++
		case m[2] == "berth":
			berth++
		}
	}
	return berth, temporal
}
