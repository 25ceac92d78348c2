package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"berth/internal/store"
)

func migrate(f *pflag.FlagSet) action {
	status := f.Bool("status", false, "only list the steps and whether they are taken")
	database := f.String("database-url", "", "PostgreSQL (BERTH_DATABASE_URL)")
	return func(ctx context.Context, s *session, _ []string) error {
		if *database != "" {
			s.database = *database
		}
		if s.database == "" {
			return fail(exitUsage, "Set BERTH_DATABASE_URL or --database-url.", "which database?")
		}
		steps, err := store.Migrations(ctx, s.database)
		if err != nil {
			return away("the database", "Is PostgreSQL running, and is BERTH_DATABASE_URL right?", err)
		}
		if !*status {
			if steps, err = store.Migrate(ctx, s.database); err != nil {
				return &trouble{code: exitOther, what: "the schema is not up to date", err: err,
					next: "What was done stays; repeat the command when the cause is gone."}
			}
		}
		return printSteps(s, steps, *status)
	}
}

func printSteps(s *session, steps []store.Migration, status bool) error {
	if len(steps) == 0 && !status {
		return s.out.say([]object{}, "the schema is up to date")
	}
	all := []object{}
	for _, m := range steps {
		all = append(all, object{"version": fmt.Sprint(m.Version), "name": m.Name, "applied": m.Applied})
	}
	return s.out.list(all, []string{"version", "name", "applied"})
}
