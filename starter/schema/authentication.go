package schema

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"berth/internal/config"
	"berth/internal/store/db"
	"berth/starter/cli"
)

const authenticationHelp = "MODE is noauth or keystone. A process whose BERTH_AUTH differs from the database refuses to start, so that no process\n" +
	"without authentication runs beside others. Running processes keep their own value: stop them all, change the\n" +
	"value in the database, and start them with the same BERTH_AUTH."

func showAuthentication(f *pflag.FlagSet) cli.Action {
	return requireDatabase(f, func(ctx context.Context, s *cli.Session, _ []string) error {
		found, err := db.ReadAuthentication(ctx, s.DatabaseURL)
		if err != nil {
			return databaseError(err)
		}
		if found.Mode == "" {
			return s.Output.PrintMessage(cli.Object{"mode": nil, "set_at": nil},
				"the database has no value of BERTH_AUTH yet: the first process sets it")
		}
		return s.Output.PrintObject(
			cli.Object{"mode": found.Mode, "set_at": found.SetAt.UTC().Format(time.RFC3339)},
			[]string{"mode", "set_at"},
		)
	})
}

func setAuthentication(f *pflag.FlagSet) cli.Action {
	return requireDatabase(f, func(ctx context.Context, s *cli.Session, args []string) error {
		mode := args[0]
		if mode != config.Noauth && mode != config.Keystone {
			return cli.UsageError("%q is none of %s, %s", mode, config.Noauth, config.Keystone)
		}
		before, err := db.SetAuthentication(ctx, s.DatabaseURL, mode)
		if err != nil {
			return databaseError(err)
		}
		object, text := cli.Object{"mode": mode, "previous_mode": nil}, ""
		if before.Mode != "" {
			object["previous_mode"], text = before.Mode, fmt.Sprintf(", before %s", before.Mode)
		}
		return s.Output.PrintMessage(object,
			"the database expects BERTH_AUTH=%s%s; restart all processes with this value", mode, text)
	})
}

// databaseError returns the error of a command that could not read or write the database.
func databaseError(err error) error {
	return cli.Unavailable("the database",
		"Is BERTH_DATABASE_URL correct? `starter migrate` creates the tables.", err)
}
