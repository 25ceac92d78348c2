// Tempest runs the suites of Tempest that call the Networking API against berth: tempest.api.network, and neutron_tempest_plugin.api. It
// starts berth with all servers that berth needs, a Keystone, and agents that only send heartbeats. All servers listen on free ports of the
// loopback interface, and all files are in a private folder. The file out_of_scope.txt lists the tests that need a feature that berth does
// not have. Tempest prints a table of the results. It exits with the code 1 if a test fails, if Tempest skips a test that the file does not
// list, or if a line of the file matches no test.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"berth/internal/devstack"
)

func main() {
	only := flag.String("run", "", "run only the tests whose name matches the regular expression")
	flag.Parse()
	selected, err := regexp.Compile(*only)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		err = run(ctx, selected)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tempest:", err)
		os.Exit(1)
	}
}

// run starts the cloud, runs the selected tests and prints the results.
func run(ctx context.Context, selected *regexp.Regexp) error {
	dir, err := devstack.Scratch()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	exceptions, err := parseScope(outOfScope)
	if err != nil {
		return err
	}
	python, err := findPython(ctx)
	if err != nil {
		return err
	}
	c, err := startCloud(ctx, dir, python)
	if c != nil {
		defer c.stop()
	}
	if err != nil {
		return err
	}
	s := suite{c.ctx, python, filepath.Join(dir, "tempest")}
	if err := s.prepare(c.tempestConf()); err != nil {
		return err
	}
	tests, err := s.list()
	if err != nil {
		return err
	}
	if unused := exceptions.unused(tests); len(unused) > 0 {
		return fmt.Errorf("out_of_scope.txt: no test matches %q; remove the lines", unused)
	}
	tests = slices.DeleteFunc(tests, func(test string) bool { return !selected.MatchString(test) })
	found, err := s.run(slices.DeleteFunc(slices.Clone(tests), exceptions.excludes))
	if err != nil {
		return err
	}
	versions, err := s.versions()
	if err != nil {
		return err
	}
	return report(os.Stdout, versions, tests, exceptions, found)
}
