// Teststack starts one PostgreSQL and one Temporal server, runs a program, and stops both servers when the
// program ends. The servers run in their own folder and on free ports. Example: `teststack -- go test ./...`.
// Environment variables tell the tests the addresses of both servers, so that a test run of many packages
// starts each server only once. Another variable names the folder of teststack, which also contains berth's
// programs, so that no package builds them again. Several runs at the same time do not share servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"berth/internal/devstack"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: teststack -- program [argument ...]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, args)
	var exit *exec.ExitError
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "teststack: interrupted")
		os.Exit(130)
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "teststack:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	begin := time.Now()
	dir, err := devstack.Scratch()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cli, err := devstack.TemporalCLI(ctx, progress)
	if err != nil {
		return err
	}
	postgres, err := devstack.StartPostgres(ctx,
		devstack.PostgresOptions{Dir: filepath.Join(dir, "postgres"), Unsafe: true})
	if err != nil {
		return err
	}
	defer postgres.Stop()
	temporal, err := devstack.StartTestTemporal(ctx, filepath.Join(dir, "temporal"), progress)
	if err != nil {
		return err
	}
	defer temporal.Close()
	fmt.Fprintf(os.Stderr, "teststack: PostgreSQL and Temporal are ready after %.1f s\n",
		time.Since(begin).Seconds())
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		"BERTH_TEST_DATABASE_URL="+postgres.URL,
		"BERTH_TEST_TEMPORAL_ADDRESS="+temporal.Address,
		devstack.CLIVariable+"="+cli)
	if folder, ok := programs(); ok {
		cmd.Env = append(cmd.Env, devstack.ProgramsVariable+"="+folder)
	}
	return devstack.Run(ctx, cmd)
}

func progress(message string) { fmt.Fprintln(os.Stderr, "teststack:", message) }

// programs returns the folder of this program if it also contains worker and starter.
func programs() (string, bool) {
	self, err := os.Executable()
	if err != nil {
		return "", false
	}
	folder := filepath.Dir(self)
	for _, name := range []string{"worker", "starter"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return "", false
		}
	}
	return folder, true
}
