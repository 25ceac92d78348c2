package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"berth/internal/devstack"
	"berth/internal/notify/notifytest"
	"berth/internal/odl/odltest"
)

// standInCommand is the argument with which this program stands in for OpenDaylight and Nova, and serves what reads
// are compared with: a process of their own, as the real ones are.
const standInCommand = "serve-stand-ins"

// standIns are where they serve.
type standIns struct {
	ODL, Nova, Peer string
	Baseline        string // another controller, which berth knows nothing of
}

// serveStandIns prints where it serves, in one line, and serves until ctx ends.
func serveStandIns(ctx context.Context, out io.Writer) error {
	odl, err := devstack.Serve(0, odltest.New())
	if err != nil {
		return err
	}
	defer odl.Stop()
	baseline, err := devstack.Serve(0, odltest.New())
	if err != nil {
		return err
	}
	defer baseline.Stop()
	nova, err := devstack.Serve(0, &notifytest.Nova{})
	if err != nil {
		return err
	}
	defer nova.Stop()
	peer, err := servePeer(ctx)
	if err != nil {
		return err
	}
	defer peer.Stop()
	if err := json.NewEncoder(out).Encode(standIns{odl.URL, nova.URL, peer.URL, baseline.URL}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// startStandIns runs this program again.
func (s *stack) startStandIns(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, standInCommand)
	cmd.Env = append(os.Environ(), mainVariable+"=1", databaseVariable+"="+s.postgres.URL)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	ended := s.run(ctx, cmd)
	go func() { w.CloseWithError(fmt.Errorf("the stand-ins ended: %w", <-ended)) }()
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, &s.standIns)
}

// mirrored is what the controller has.
type mirrored struct {
	Objects    []odltest.Record `json:"objects"`
	Violations []string         `json:"violations"`
}

// mirrored asks the controller what it has, and whether all of it came in order.
func (s *stack) mirrored(ctx context.Context) (mirrored, error) {
	var m mirrored
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.standIns.ODL+"/_control/objects", nil)
	if err != nil {
		return m, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return m, err
	}
	defer func() { _ = answer.Body.Close() }()
	return m, json.NewDecoder(answer.Body).Decode(&m)
}

// startBerth runs berth as it is shipped over a database, in those roles, until the stack closes.
func (s *stack) startBerth(ctx context.Context, name, database, roles string) (*api, error) {
	port, err := devstack.Port(0)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	a := newAPI("http://" + address)
	a.log, a.roles = log.Name(), roles
	a.command = func() *exec.Cmd {
		cmd := exec.Command(s.worker, "-roles", a.roles)
		cmd.Env = []string{"BERTH_LISTEN=" + address, "BERTH_DATABASE_URL=" + database, "BERTH_LOG_LEVEL=warn", "BERTH_QUOTA=off",
			"BERTH_ODL_URL=" + s.standIns.ODL + odltest.BasePath, "BERTH_NOVA_URL=" + s.standIns.Nova, "BERTH_RABBITMQ_URL=" + a.brokers,
			"TEMPORAL_ADDRESS=" + s.server.Address, "TEMPORAL_CONFIG_FILE=" + os.DevNull}
		cmd.Stdout, cmd.Stderr = log, log
		return cmd
	}
	return a, s.boot(ctx, a)
}

// lastTroubles is how many lines of each log are worth showing when a figure has failed.
const lastTroubles = 5

// troubles are the last errors that the processes of berth wrote to their logs, each on a line of its own.
func (s *stack) troubles() string {
	logs, _ := filepath.Glob(filepath.Join(s.dir, "*.log"))
	var said strings.Builder
	for _, name := range logs {
		raw, _ := os.ReadFile(name)
		lines := slices.DeleteFunc(strings.Split(string(raw), "\n"), func(l string) bool { return !strings.Contains(l, "ERROR") })
		for _, l := range lines[max(0, len(lines)-lastTroubles):] {
			fmt.Fprintf(&said, "\n%s: %s", filepath.Base(name), l)
		}
	}
	return said.String()
}

// boot starts berth and waits until it is ready.
func (s *stack) boot(ctx context.Context, a *api) error {
	alive, stop := context.WithCancel(s.alive)
	cmd := a.command()
	ended := s.run(alive, cmd)
	a.stop = func() {
		stop()
		<-ended
	}
	a.kill = func() {
		_ = cmd.Process.Signal(syscall.SIGSTOP) // it does not live to see that it is asked to end
		stop()
		_ = cmd.Process.Kill()
		<-ended
	}
	return a.awaitReady(ctx, ended, a.log)
}
