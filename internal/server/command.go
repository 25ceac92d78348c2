// Package server wires berth's processes: the HTTP API, the relay from the database to Temporal, the workers
// of every task queue, and the server that answers agents over RabbitMQ. Package server only connects other
// packages and contains no business rules; worker/main.go calls Main.
package server

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"berth/internal/config"
	"berth/internal/safeurl"
	"berth/internal/store/db"
	"berth/internal/tracing"
	"berth/internal/version"
)

// Main runs the worker with the command line and the environment of the process, and ends the process with
// its exit code.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process immediately
	if err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr); err != nil {
		os.Exit(reportError(os.Stderr, err))
	}
}

// reportError prints the error with which the worker ends, and returns the exit code. Errors of other
// packages may contain the URL of a setting, so reportError hides the user and the password of each URL.
func reportError(w io.Writer, err error) (code int) {
	fmt.Fprintln(w, "worker:", safeurl.Redact(err.Error()))
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// errUsage means that the command line is invalid; the process then exits with code 2.
var errUsage = errors.New("usage")

// run runs the worker until ctx ends. run writes help and the progress of a development run to `out`, and the
// log to `logOutput`.
func run(ctx context.Context, args, environ []string, out, logOutput io.Writer) error {
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	roles := flags.String("roles", "",
		"comma-separated `list` of the roles of this process: api, relay, temporal, rpc (default: BERTH_ROLES)")
	showVersion := flags.Bool("version", false,
		"print the version, the commit and the database schemas with which this program works")
	dev := flags.Bool("dev", false,
		"start PostgreSQL, Temporal and stubs of OpenDaylight, Nova and Neutron, with all data in BERTH_DATA")
	err := flags.Parse(args)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		writeUsage(out, flags)
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w; see worker -h", errUsage, err)
	case *showVersion:
		fmt.Fprint(out, version.Read().Text("worker", db.Window().String()))
		return nil
	}
	cfg, err := config.Load(environ)
	if err != nil {
		return err
	}
	if *roles != "" {
		if cfg.Roles, err = config.ParseRoles(*roles); err != nil {
			return fmt.Errorf("-roles %s: %w", *roles, err)
		}
	}
	if *dev {
		cfg.Auth = cmp.Or(cfg.Auth, config.Noauth)
		return runDev(ctx, cfg, environ, out)
	}
	slog.SetDefault(newLogger(logOutput, cfg))
	logStart(cfg)
	if cfg.DatabaseURL == "" {
		return errors.New("BERTH_DATABASE_URL is not set; `worker --dev` starts a database of its own")
	}
	if err := checkDatabase(ctx, cfg); err != nil {
		return err
	}
	a, err := Open(ctx, cfg, environ)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}

// newLogger returns the logger of the process, in the format of BERTH_LOG_FORMAT. The logger hides the user
// and the password of each URL.
func newLogger(w io.Writer, cfg config.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel, ReplaceAttr: redactAttribute}
	if cfg.LogFormat == config.LogJSON {
		return slog.New(tracing.NewLogHandler(slog.NewJSONHandler(w, options)))
	}
	return slog.New(tracing.NewLogHandler(slog.NewTextHandler(w, options)))
}

// redactAttribute hides the user and the password of each URL in an attribute of the log.
func redactAttribute(_ []string, a slog.Attr) slog.Attr {
	switch value := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(safeurl.Redact(value))
	case error:
		a.Value = slog.StringValue(safeurl.Redact(value.Error()))
	}
	return a
}

func writeUsage(w io.Writer, flags *flag.FlagSet) {
	flags.SetOutput(w)
	fmt.Fprint(w, "usage: worker [-roles list] [--dev] [--version]\n\n")
	flags.PrintDefaults()
	fmt.Fprint(w, "\nEnvironment variables and their defaults:\n")
	config.Usage(w)
	fmt.Fprint(
		w,
		"\nThe connection to Temporal is set by TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS… or by a profile of the temporal CLI.\n",
	)
}
