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
	"strconv"
	"syscall"
	"time"
)

// Port returns port if it is free on loopback, or a free one for 0. A taken port is an error that says which.
func Port(port int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return 0, fmt.Errorf("port %d is already in use", port)
		}
		return 0, fmt.Errorf("port %d: %w", port, err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// process is a child that ends with us.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how, once done is closed
}

func start(cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
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
