// Package devstack brings berth's neighbours to life on one machine, for `worker --dev` and for tests:
// PostgreSQL, a Temporal dev server and the stand-ins for OpenDaylight and Nova. Each is a real process or a
// real HTTP server on a port of its own, and none outlives the process that started it.
package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Port returns port if it is free on loopback, or a free one for 0. A taken port is a PortTaken.
func Port(port int) (int, error) {
	l, err := listen(port)
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// PortTaken is the error of a port on which somebody else listens.
type PortTaken struct{ Port int }

func (e PortTaken) Error() string { return fmt.Sprintf("port %d is already in use", e.Port) }

func listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, PortTaken{Port: port}
	case err != nil:
		return nil, fmt.Errorf("port %d: %w", port, err)
	}
	return l, nil
}

// withPort calls f with the port, or with a free one for 0. Between finding a free port and using it somebody
// else may take it, so another one is tried then.
func withPort(port int, f func(port int) error) error {
	for attempt := 1; ; attempt++ {
		p, err := Port(port)
		if err == nil {
			err = f(p)
		}
		if err == nil || port != 0 || attempt == 3 {
			return err
		}
		if _, taken := Port(p); taken == nil {
			return err
		}
	}
}

// process is a child that ends with us.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how, once done is closed
}

// start runs the command from a thread that lives as long as the child does: the kernel sends Pdeathsig when
// the thread that forked ends, which for the runtime's other threads may be before the process does.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// stop sends the signal and waits; after the grace it kills.
func (p *process) stop(sig os.Signal, grace time.Duration) {
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// await calls ready until it succeeds, the process ends or the time is over.
func (p *process) await(ctx context.Context, what string, within time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		if last = ready(ctx); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended while starting: %w", what, p.err)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s: %w", what, within, last)
		case <-tick.C:
		}
	}
}
