package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"berth/internal/devstack"
)

// Python programs; tools/venv.sh has moved the folder of the scripts, so the scripts cannot run.
const (
	readVersions = `
import platform
from importlib.metadata import version
print(version("openstack-placement"), platform.python_version(), version("pyuwsgi"))`
	syncDatabase = `
import sys
from placement.cmd.manage import main
sys.argv = ["placement-manage", "--config-file", sys.argv[1], "db", "sync"]
sys.exit(main())`
	runUWSGI = `
import sys
import pyuwsgi
pyuwsgi.run(sys.argv[1:])`
)

// uwsgiSettings are the settings of uWSGI, except its address: two processes with four threads each, which
// load the application after the fork so that they share no connections to the database. With http11-socket,
// a client keeps its connection.
var uwsgiSettings = []string{
	"--master",
	"--die-on-term",
	"--need-app",
	"--lazy-apps",
	"--thunder-lock",
	"--enable-threads",
	"--disable-logging",
	"--socket-timeout=120", // otherwise it closes a connection that is idle for 4 seconds
	"--processes=2",
	"--threads=4",
	"--buffer-size=65535",
	"--module=placement.wsgi.api:application",
}

// startPlacement starts OpenStack Placement behind uWSGI. Settings that are not needed to start it have their
// defaults.
func (s *stack) startPlacement(ctx context.Context, database string) (*peer, error) {
	dir := filepath.Join(s.dir, "placement")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	connection := strings.Replace(database, "postgres://", "postgresql+psycopg2://", 1)
	configuration := "[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = " + connection + "\n"
	file := filepath.Join(dir, "placement.conf")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	python := func(program string, arguments ...string) *exec.Cmd {
		cmd := exec.Command(s.settings.python, append([]string{"-c", program}, arguments...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "OS_PLACEMENT_CONFIG_DIR="+dir, "PYTHONWARNINGS=ignore")
		return cmd
	}
	versions, err := output(ctx, python(readVersions))
	if err != nil {
		return nil, err
	}
	m := &s.machine
	if _, err := fmt.Sscan(versions, &m.Placement, &m.Python, &m.UWSGI); err != nil {
		return nil, err
	}
	if _, err := output(ctx, python(syncDatabase, file)); err != nil {
		return nil, err
	}
	port, err := devstack.Port(0)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	p := newPeer(placementName, address, "", s.settings.Clients)
	return p, s.serve(ctx, p, python(runUWSGI, append([]string{"--http11-socket=" + address}, uwsgiSettings...)...))
}

// output runs a command and returns what it prints to stdout. The error of a failed command contains what it
// prints to stderr.
func output(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := devstack.Run(ctx, cmd); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd.Path, err, &stderr)
	}
	return stdout.String(), nil
}
