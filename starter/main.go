// Command starter is berth's command line. The program starter is a client of the API and of Temporal. Only
// `starter migrate`, `starter authentication` and `starter doctor` connect to the database.
package main

import (
	"context"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"berth/starter/cli"
	"berth/starter/demo"
	"berth/starter/diagnosis"
	"berth/starter/resource"
	"berth/starter/schema"
	"berth/starter/top"
)

func main() {
	err := run(untilSignal(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	if err != nil {
		cli.ReportError(os.Stderr, err)
	}
	os.Exit(cli.ExitCode(err))
}

// untilSignal returns a context that ends when the process gets SIGINT or SIGTERM. A second signal ends the
// process at once.
func untilSignal() context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		received := <-signals
		signal.Stop(signals)
		end(cli.Interruption{Signal: received.(syscall.Signal)})
	}()
	return ctx
}

// commandTree returns the tree of all commands of starter.
func commandTree() cli.Tree {
	return cli.Tree{
		Commands: slices.Concat(
			resource.Commands(),
			diagnosis.Commands(),
			schema.Commands(),
			demo.Commands(),
			top.Commands(),
		),
		Groups:      groups(),
		Completable: resource.Completable,
		Version:     schema.Version(),
	}
}

// groups returns the help texts of all groups of commands.
func groups() map[string]string {
	all := maps.Clone(resource.Groups)
	maps.Copy(all, schema.Groups)
	return all
}

// run executes one command line. cli.ExitCode converts the error that run returns to the exit code of the
// process.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	return runIn(ctx, &cli.Session{}, args, environ, stdout, stderr)
}

// runIn does the same as run, with the options of the session s.
func runIn(ctx context.Context, s *cli.Session, args, environ []string, stdout, stderr io.Writer) error {
	settings, err := cli.ReadSettings(environ)
	s.Settings, s.SettingsError, s.Stderr = &settings, err, cli.TextWriter(stderr)
	defer s.Close()
	root := commandTree().Root(s)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return cli.Interrupted(ctx, root.ExecuteContext(ctx))
}
