package schema

import "berth/starter/cli"

// Commands returns the command migrate.
func Commands() []cli.Command {
	return []cli.Command{
		{Words: "migrate", Help: "Migrate the database schema to the newest version", Bind: migrateCommand},
	}
}
