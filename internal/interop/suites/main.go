// Suites runs test suites of OpenStack that call berth's APIs: the suites of Tempest and its plugins, and the
// functional tests of openstacksdk and of the openstack client. It starts berth with all servers that berth
// needs, a Keystone, and agents that only send heartbeats. All servers listen on free ports of the loopback
// interface, and all files are in a private folder. The file out_of_scope.txt lists the tests that need a
// feature that berth does not have. The program prints a table of the results. It exits with the code 1 if a
// test fails, if a suite skips a test that out_of_scope.txt does not list, or if a line of out_of_scope.txt
// matches no test.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
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
		fmt.Fprintln(os.Stderr, "suites:", err)
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
	c, err := startCloud(ctx, dir)
	if c != nil {
		defer c.stop()
	}
	if err != nil {
		return err
	}
	runs, tests, err := c.prepareRuns()
	if err != nil {
		return err
	}
	if unused := exceptions.unused(tests); len(unused) > 0 {
		return fmt.Errorf("out_of_scope.txt: no test matches %q; remove the lines", unused)
	}
	tests = slices.DeleteFunc(tests, func(test string) bool { return !selected.MatchString(test) })
	found := results{}
	for _, r := range runs {
		own := slices.DeleteFunc(slices.Clone(tests),
			func(test string) bool { return workspaceOf(test) != r.name || exceptions.excludes(test) })
		if err := r.runTests(own, found); err != nil {
			return err
		}
	}
	versions, err := c.versions()
	if err != nil {
		return err
	}
	return report(os.Stdout, versions, tests, exceptions, found)
}

// prepareRuns creates the workspaces and returns them with the names of all tests.
func (c *cloud) prepareRuns() (runs []testRun, tests []string, err error) {
	for _, w := range workspaces {
		r := testRun{w, c, c.pythons[w.packages]}
		progress("%s: list the tests", w.name)
		if err := r.prepare(); err != nil {
			return nil, nil, err
		}
		own, err := r.list()
		if err != nil {
			return nil, nil, err
		}
		runs, tests = append(runs, r), append(tests, own...)
	}
	return runs, sortTests(tests), nil
}
