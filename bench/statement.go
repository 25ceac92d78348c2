package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// statements counts what is asked of the databases while do runs, by the server's log: of so many things as it says
// that it did. What bench asks itself does not count.
func (s *stack) statements(ctx context.Context, each string, do func(context.Context) (int, error)) ([]detail, error) {
	log := filepath.Join(s.dir, "postgres", "log")
	if err := s.configure(ctx, `alter system set log_statement = 'all'`, `alter system set log_line_prefix = 'asked %d %a: '`); err != nil {
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
	berth, temporal := asked(string(written[before.Size():]))
	return []detail{
		{"SQL statements of berth for " + each, ratio(float64(berth), float64(n))},
		{"SQL statements of Temporal for " + each, ratio(float64(temporal), float64(n))},
	}, nil
}

// configure changes the server's settings.
func (s *stack) configure(ctx context.Context, settings ...string) error {
	for _, sql := range append(settings, `select pg_reload_conf()`) {
		if _, err := s.rows.Exec(ctx, sql); err != nil {
			return err
		}
	}
	pause(ctx, 300*time.Millisecond) // every process of the server reads them when it gets to it
	return nil
}

// question begins a statement in the server's log, with the names of the database and of who asks.
var question = regexp.MustCompile(`(?m)^asked (\S+) (.*?): LOG:  (?:statement|execute)`)

func asked(log string) (berth, temporal int) {
	for _, m := range question.FindAllStringSubmatch(log, -1) {
		switch {
		case strings.HasPrefix(m[1], "temporal"):
			temporal++
		case m[2] == "berth":
			berth++
		}
	}
	return berth, temporal
}
