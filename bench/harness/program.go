package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// ErrUsage means that the command line is invalid.
var ErrUsage = errors.New("usage")

// program is the function that runs a program with its arguments.
type program func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Main runs a program with its arguments until it ends or gets SIGINT or SIGTERM, and then ends the process.
// The exit code is 2 if the error of the program wraps ErrUsage, and 1 after any other error but
// flag.ErrHelp.
func Main(name string, run program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	if errors.Is(err, ErrUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// WithStubs returns a program that serves the stubs if its only argument is StubCommand, and otherwise runs
// `run`. A program that starts a Stack needs this, because the stack runs it a second time for the stubs.
func WithStubs(run program) program {
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		if len(args) == 1 && args[0] == StubCommand {
			return serveStubs(ctx, stdout)
		}
		return run(ctx, args, stdout, stderr)
	}
}

// NewProgressLog returns a function that writes a line to w, with the time since now before it.
func NewProgressLog(w io.Writer) func(format string, args ...any) {
	begin := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(w, "%6.1fs  %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
}

// WorkerProgram returns the path of berth's worker program in the folder of this program.
func WorkerProgram() (string, error) {
	self, err := os.Executable()
	return filepath.Join(filepath.Dir(self), "worker"), err
}

// DiskFolder returns /var/tmp if that folder exists, because /tmp is often a memory file system, where a
// commit does not wait for a disk.
func DiskFolder() string {
	if info, err := os.Stat("/var/tmp"); err == nil && info.IsDir() {
		return "/var/tmp"
	}
	return os.TempDir()
}
