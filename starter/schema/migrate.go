package schema

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"berth/internal/store/db"
	"berth/starter/cli"
)

func migrateCommand(f *pflag.FlagSet) cli.Action {
	listOnly := f.Bool("status", false, "list the migrations and whether they are applied; change nothing")
	database := f.String("database-url", "", "URL of the PostgreSQL database (BERTH_DATABASE_URL)")
	return func(ctx context.Context, s *cli.Session, _ []string) error {
		if *database != "" {
			s.DatabaseURL = *database
		}
		if s.DatabaseURL == "" {
			return cli.Errorf(cli.ExitUsage, "Set BERTH_DATABASE_URL or --database-url.", "no database is set")
		}
		migrations, err := db.Migrations(ctx, s.DatabaseURL)
		if err != nil {
			return cli.Unavailable("the database", "Is PostgreSQL running, and is BERTH_DATABASE_URL correct?", err)
		}
		if !*listOnly {
			if migrations, err = db.Migrate(ctx, s.DatabaseURL); err != nil {
				return &cli.Error{Code: cli.ExitOther, What: "the migration of the schema failed", Err: err,
					Next: "Applied migrations stay; repeat the command when the cause is fixed."}
			}
		}
		return printMigrations(s, migrations, *listOnly)
	}
}

// printMigrations prints the list of migrations. If the command ran no migration and has no flag --status, printMigrations prints
// one sentence instead of the list.
func printMigrations(s *cli.Session, migrations []db.Migration, listOnly bool) error {
	if len(migrations) == 0 && !listOnly {
		return s.Output.PrintMessage([]cli.Object{}, "the schema is up to date")
	}
	all := []cli.Object{}
	for _, m := range migrations {
		all = append(all, cli.Object{"version": fmt.Sprint(m.Version), "name": m.Name, "applied": m.Applied})
	}
	return s.Output.PrintList(all, []string{"version", "name", "applied"})
}
