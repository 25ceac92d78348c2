package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"berth/internal/devstack"
	"berth/internal/odl/odltest"
)

// StartBerth runs berth's worker program with the given roles, database and further settings until the stack
// closes. StartBerth waits until the program is ready. The started process logs to the file NAME.log in the
// stack's folder, where NAME is the parameter `name`.
func (s *Stack) StartBerth(
	ctx context.Context,
	name, database, roles string,
	settings ...string,
) (*API, error) {
	port, err := devstack.Port(0)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	a := NewAPI("http://" + address)
	a.log, a.roles = log.Name(), roles
	a.command = func() *exec.Cmd {
		cmd := exec.Command(s.worker, "-roles", a.roles)
		cmd.Env = []string{
			"BERTH_AUTH=noauth",
			"BERTH_LISTEN=" + address,
			"BERTH_DATABASE_URL=" + database,
			"BERTH_LOG_LEVEL=warn",
			"BERTH_QUOTA=off",
			"BERTH_LEASE_QUOTA=off",
			"BERTH_ODL_URL=" + s.Stubs.ODL + odltest.BasePath,
			"BERTH_NOVA_URL=" + s.Stubs.Nova,
			"BERTH_RABBITMQ_URL=" + a.brokers,
			"TEMPORAL_ADDRESS=" + s.server.Address,
			"TEMPORAL_CONFIG_FILE=" + os.DevNull,
		}
		cmd.Env = append(cmd.Env, settings...)
		cmd.Stdout, cmd.Stderr = log, log
		return cmd
	}
	return a, s.Boot(ctx, a)
}

// Boot starts the berth process to which the API client `a` sends its requests, and waits until the process
// is ready.
func (s *Stack) Boot(ctx context.Context, a *API) error {
	running, stop := context.WithCancel(s.Context)
	cmd := a.command()
	ended := s.runProcess(running, cmd)
	a.Stop = func() {
		stop()
		<-ended
	}
	a.Kill = func() {
		// after SIGSTOP, the process cannot shut down gracefully before it gets SIGKILL
		_ = cmd.Process.Signal(syscall.SIGSTOP)
		stop()
		_ = cmd.Process.Kill()
		<-ended
	}
	return a.awaitReady(ctx, ended, a.log)
}

// RestartBerth stops berth and starts berth again with the given roles and AMQP brokers.
func (s *Stack) RestartBerth(ctx context.Context, roles, brokers string) error {
	s.API.Stop()
	s.API.roles, s.API.brokers = roles, brokers
	return s.Boot(ctx, s.API)
}

// readyTimeout is how long berth may take to become ready.
const readyTimeout = 5 * time.Minute

// awaitReady waits until berth is ready. awaitReady returns an error if berth's process ends earlier.
func (a *API) awaitReady(ctx context.Context, ended <-chan error, log string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("/readyz was not requested yet")
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("berth is not ready after %s: %w", readyTimeout, last)
		case err := <-ended:
			output, _ := os.ReadFile(log)
			return fmt.Errorf("berth ended while starting: %w: %s", err, bytes.TrimSpace(output))
		case <-tick.C:
		}
		if last = a.checkReady(ctx); last == nil {
			return nil
		}
	}
}

// checkReady requests /readyz. If the status of the answer is not 200, checkReady returns an error that
// contains the answer.
func (a *API) checkReady(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Base+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := a.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(body))
	}
	return err
}
