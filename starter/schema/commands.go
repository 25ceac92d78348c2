package schema

import (
	"context"

	"github.com/spf13/pflag"

	"berth/internal/store/db"
	"berth/internal/version"
	"berth/starter/cli"
)

// Commands returns the commands of package schema.
func Commands() []cli.Command {
	return []cli.Command{
		{
			Words:   "migrate",
			Help:    "Migrate the database schema to the newest version",
			Details: migrateHelp,
			Bind:    migrateCommand,
		},
		{
			Words: "version",
			Help:  "Show the version of starter, the database schemas with which it works, and the versions of the APIs",
			Bind:  showVersion,
		},
		{
			Words: "authentication show",
			Help:  "Show the value of BERTH_AUTH that the database expects",
			Bind:  showAuthentication,
		},
		{
			Words:   "authentication set MODE",
			Help:    "Change the value of BERTH_AUTH that the database expects",
			Details: authenticationHelp,
			Bind:    setAuthentication,
		},
	}
}

// Groups maps the first word of commands to the help text of this group of commands.
var Groups = map[string]string{
	"authentication": "The value of BERTH_AUTH that the database expects of its processes",
}

// Version returns the output of `starter --version`: the build of the program, the database schemas that
// the program can migrate and check, and the versions of the APIs.
func Version() string { return version.Read().Text("starter", db.Window().String()) }

func showVersion(*pflag.FlagSet) cli.Action {
	return func(_ context.Context, s *cli.Session, _ []string) error {
		build, schemas := version.Read(), db.Window()
		apis := []any{}
		for _, a := range version.APIs() {
			apis = append(apis, cli.Object{"name": a.Name, "minimum": a.Minimum, "newest": a.Newest})
		}
		return s.Output.PrintObject(cli.Object{
			"version":        build.Version,
			"commit":         build.Commit,
			"commit_date":    build.CommitDate,
			"go":             build.Go,
			"schema_minimum": schemas.Minimum,
			"schema_newest":  schemas.Newest,
			"apis":           apis,
		}, []string{"version", "commit", "commit_date", "go", "schema_minimum", "schema_newest", "apis"})
	}
}
