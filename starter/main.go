// Command starter is berth's command line: everything that ends. It speaks to the API over HTTP and to the
// workflows through Temporal, as any client does; it reaches no row by itself but to migrate the schema.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	if err != nil {
		report(os.Stderr, err)
	}
	os.Exit(exitCode(err))
}

// run executes one command line. Its error says what, why and what to do next, and carries the exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	set, err := readSettings(environ)
	s := &session{settings: &set, wrong: err, stderr: stderr}
	defer s.close()
	root := tree(s, commands())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}
