package schema

import "berth/starter/cli"

// Commands are the commands of this package.
func Commands() []cli.Command {
	return []cli.Command{
		{Words: "migrate", Help: "Migrate the database schema to the newest version", Bind: migrateCommand},
	}
}
