package schema

import (
	"berth/internal/store/db"
	"berth/internal/version"
	"berth/starter/cli"
)

// Commands returns the command migrate.
func Commands() []cli.Command {
	return []cli.Command{
		{Words: "migrate", Help: "Migrate the database schema to the newest version", Bind: migrateCommand},
	}
}

// Version returns the output of `starter --version`: the build of the program, and the database schemas that the program can migrate and check.
func Version() string { return version.Read().Text("starter", db.Window().String()) }
