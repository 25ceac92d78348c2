package schema

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"berth/internal/store/db"
	"berth/starter/cli"
)

const migrateHelp = "If BERTH_AUTH is set and the database has no value yet, the command also stores the value, as the first process of berth does."

// requireDatabase declares the flag --database-url, and returns an action that runs only if a database is
// set.
func requireDatabase(f *pflag.FlagSet, act cli.Action) cli.Action {
	database := f.String("database-url", "", "URL of the PostgreSQL database (BERTH_DATABASE_URL)")
	return func(ctx context.Context, s *cli.Session, args []string) error {
		if *database != "" {
			s.DatabaseURL = *database
		}
		if s.DatabaseURL == "" {
			return cli.Errorf(cli.ExitUsage,
				"Set BERTH_DATABASE_URL or --database-url.", "no database is set")
		}
		return act(ctx, s, args)
	}
}

func migrateCommand(f *pflag.FlagSet) cli.Action {
	listOnly := f.Bool("status", false, "list the migrations and whether they are applied; change nothing")
	dryRun := f.Bool("dry-run", false, "print the SQL of the migrations that are not applied; change nothing")
	return requireDatabase(f, func(ctx context.Context, s *cli.Session, _ []string) error {
		switch {
		case *listOnly && *dryRun:
			return cli.UsageError("--dry-run and --status are mutually exclusive")
		case *listOnly:
			migrations, err := db.Migrations(ctx, s.DatabaseURL)
			if err != nil {
				return databaseUnavailable(err)
			}
			return printMigrations(s, migrations)
		}
		pending, err := db.PendingMigrations(ctx, s.DatabaseURL)
		if err != nil {
			return migrationError(err, databaseUnavailable(err))
		}
		if *dryRun && len(pending) > 0 {
			return printSQL(s, pending)
		}
		if !*dryRun {
			if pending, err = db.Migrate(ctx, s.DatabaseURL); err != nil {
				return migrationError(err, &cli.Error{
					Code: cli.ExitOther,
					What: "the migration of the schema failed",
					Err:  err,
					Next: "Applied migrations stay; repeat the command when the cause is fixed.",
				})
			}
			if err := bindAuthentication(ctx, s); err != nil {
				return err
			}
		}
		if len(pending) == 0 {
			return printNothingToMigrate(ctx, s)
		}
		return printMigrations(s, pending)
	})
}

// databaseUnavailable returns the error of a command that could not read the schema of the database.
func databaseUnavailable(err error) error {
	return cli.Unavailable("the database", "Is PostgreSQL running, and is BERTH_DATABASE_URL correct?", err)
}

// migrationError explains the refusal of a migration. migrationError returns `other` for every other error.
func migrationError(err, other error) error {
	switch {
	case errors.Is(err, db.ErrSchemaTooNew):
		return cli.Errorf(
			cli.ExitOther,
			"Use the version of starter that belongs to the newest version of berth.",
			"nothing was migrated: %v",
			err,
		)
	case errors.Is(err, db.ErrSchemaUnreleased):
		return cli.Errorf(
			cli.ExitOther,
			"Create an empty database, and name it with BERTH_DATABASE_URL or --database-url.",
			"nothing was migrated: %v",
			err,
		)
	}
	return other
}

// bindAuthentication stores the value of BERTH_AUTH in a database that has none.
func bindAuthentication(ctx context.Context, s *cli.Session) error {
	if s.Auth == "" {
		return nil
	}
	err := db.BindAuthentication(ctx, s.DatabaseURL, s.Auth)
	if errors.Is(err, db.ErrOtherAuthentication) {
		return &cli.Error{
			Code: cli.ExitConflict,
			What: "the schema is up to date, but no process can start with these settings",
			Err:  err,
		}
	}
	return err
}

// printNothingToMigrate says that the schema needs no migration of this program. A schema that is newer than
// this program stays as it is.
func printNothingToMigrate(ctx context.Context, s *cli.Session) error {
	schema, err := db.ReadSchema(ctx, s.DatabaseURL)
	if err != nil {
		return databaseUnavailable(err)
	}
	if known := db.Window().Newest; schema.Version > known {
		return s.Output.PrintMessage([]cli.Object{},
			"nothing to migrate: the schema has version %d, which is newer than version %d of this program and supports this program",
			schema.Version, known)
	}
	return s.Output.PrintMessage([]cli.Object{}, "the schema is up to date")
}

func printMigrations(s *cli.Session, migrations []db.Migration) error {
	all := []cli.Object{}
	for _, m := range migrations {
		all = append(all, cli.Object{"version": fmt.Sprint(m.Version), "name": m.Name, "applied": m.Applied})
	}
	return s.Output.PrintList(all, []string{"version", "name", "applied"})
}

// printSQL prints the SQL of migrations in the order in which `starter migrate` applies them.
func printSQL(s *cli.Session, migrations []db.Migration) error {
	if s.Output.Format != "table" {
		all := []cli.Object{}
		for _, m := range migrations {
			all = append(all, cli.Object{"version": fmt.Sprint(m.Version), "name": m.Name, "sql": m.SQL})
		}
		return s.Output.PrintDocument(all)
	}
	for _, m := range migrations {
		if _, err := fmt.Fprintf(s.Output.Writer, "-- %s\n%s\n", m.Name, m.SQL); err != nil {
			return err
		}
	}
	return nil
}
