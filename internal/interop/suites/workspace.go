package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"berth/internal/devstack"
)

// testRun runs the tests of a workspace against a cloud.
type testRun struct {
	workspace
	cloud  *cloud
	python python
}

func (r testRun) command(program string, arguments ...string) *exec.Cmd {
	cmd := r.python.command(program, arguments...)
	// HOME is a folder of this run, because Tempest writes a list of its workspaces into the home folder.
	// PATH begins with the folder bin, because the functional tests must run the program openstack of this
	// folder.
	cmd.Env = append(
		cmd.Env, "HOME="+r.cloud.dir, "PATH="+filepath.Join(r.cloud.dir, "bin")+":"+os.Getenv("PATH"),
		"OS_CLIENT_CONFIG_FILE="+filepath.Join(r.cloud.dir, "clouds.yaml"),
	)
	if r.env != nil {
		cmd.Env = append(cmd.Env, r.env(r.cloud)...)
	}
	if program != "tempest" || arguments[0] != "init" {
		cmd.Dir = r.dir(r.cloud)
	}
	return cmd
}

// prepare creates the folder of the workspace.
func (r testRun) prepare() error {
	if r.agents {
		return nil // the test has its own folder
	}
	dir := r.dir(r.cloud)
	if r.folder == "" {
		if _, err := output(r.cloud.ctx, r.command("tempest", "init", dir)); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "etc", "tempest.conf"), []byte(r.cloud.tempestConf()), 0o600)
	}
	folder, err := r.packageFolder()
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	top := folder
	if folder == r.cloud.dir {
		top = filepath.Join(folder, r.folder)
	}
	conf := fmt.Sprintf("[DEFAULT]\ntest_path=%s\ntop_dir=%s\ngroup_regex=([^\\.]+\\.)+\n",
		filepath.Join(folder, r.folder), top)
	if err := os.WriteFile(filepath.Join(dir, ".stestr.conf"), []byte(conf), 0o600); err != nil {
		return err
	}
	_, err = output(r.cloud.ctx, r.command("stestr", "init"))
	return err
}

// packageFolder returns the folder in which r.folder is.
func (r testRun) packageFolder() (string, error) {
	if strings.HasPrefix(r.folder, "libraries/") {
		return r.cloud.dir, nil
	}
	out, err := output(r.cloud.ctx,
		exec.Command(string(r.python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
	return strings.TrimSpace(string(out)), err
}

// list returns the names of the tests of the workspace.
func (r testRun) list() ([]string, error) {
	if r.agents {
		return []string{r.tests[0] + agentTest}, nil
	}
	command := r.command("stestr", "list")
	if r.folder == "" {
		command = r.command("tempest", "run", "--list-tests")
	}
	out, err := output(r.cloud.ctx, command)
	tests := slices.DeleteFunc(strings.Fields(string(out)),
		func(test string) bool { return workspaceOf(test) != r.name })
	return sortTests(tests), err
}

// runTests runs the tests and adds their results.
func (r testRun) runTests(tests []string, found results) error {
	if len(tests) == 0 {
		return nil
	}
	if r.agents {
		return r.runAgents(tests[0], found)
	}
	ctx := r.cloud.ctx
	list := filepath.Join(r.dir(r.cloud), "tests")
	if err := os.WriteFile(list, []byte(strings.Join(tests, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	progress("%s: run %d tests", r.name, len(tests))
	program := "stestr"
	if r.folder == "" {
		program = "tempest"
	}
	command := r.command(program, "run", "--concurrency", r.concurrency, "--load-list", list)
	read, write := io.Pipe()
	command.Stdout, command.Stderr = write, os.Stderr
	go printOutcomes(read)
	// The error is ignored, because the program also exits with an error if only a test has failed;
	// parseResults reads the results below.
	_ = devstack.Run(ctx, command)
	_ = write.Close()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	stream, err := output(ctx, r.command("stestr", "last", "--subunit"))
	if err != nil {
		return err
	}
	convert := exec.Command(string(r.cloud.pythons["suites"]), "-c", resultsProgram)
	convert.Stdin = bytes.NewReader(stream)
	lines, err := output(ctx, convert)
	if err != nil {
		return err
	}
	return parseResults(lines, found)
}

// resultsProgram converts the results of the tests to JSON.
//
//go:embed results.py
var resultsProgram string
