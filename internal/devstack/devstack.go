// Package devstack starts the servers that berth needs on one machine, for `worker --dev` and for tests: PostgreSQL, Temporal, RabbitMQ,
// and HTTP stubs such as those of OpenDaylight and Nova. Each server has its own port and ends with the process that started it.
package devstack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// Port returns the port if it is free on loopback, or any free port for 0. A port in use is a PortTaken error.
func Port(port int) (int, error) {
	l, err := listen(port)
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// PortTaken means that another process listens on the port.
type PortTaken struct{ Port int }

func (e PortTaken) Error() string { return fmt.Sprintf("port %d is already in use", e.Port) }

// Free ports are chosen below the kernel's range of ephemeral ports. Otherwise an outgoing connection of any process could take a port between its
// choice and its use. Temporal's cluster membership table cannot store higher ports either.
const lowestPort, portLimit = 10_000, 1 << 15

// listen listens on the port. For port 0 it chooses any free port.
func listen(port int) (net.Listener, error) {
	if port != 0 {
		return listenOn(port)
	}
	const tries = 1000
	for range tries {
		l, err := listenOn(lowestPort + rand.IntN(portLimit-lowestPort))
		var taken PortTaken
		if !errors.As(err, &taken) {
			return l, err
		}
	}
	return nil, fmt.Errorf("no free port found: %d random ports from %d to %d are in use", tries, lowestPort, portLimit-1)
}

func listenOn(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, PortTaken{Port: port}
	case err != nil:
		return nil, fmt.Errorf("port %d: %w", port, err)
	}
	return l, nil
}

// freePorts returns n different free ports.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := listen(0)
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // open until all are chosen, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// withPort calls f with the port, or with a free port for 0. It tries another free port if a process takes the port before f uses it.
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

// process is a child process that ends with this process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed after the end of the process
	err  error         // result of cmd.Wait; valid after done is closed
}

// start runs the command from a thread that lives as long as the child. The kernel sends Pdeathsig at the end of the thread that forked, and the Go
// runtime may end other threads earlier.
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

// stop sends the signal and waits for the end of the process. After the grace period it sends SIGKILL.
func (p *process) stop(sig os.Signal, grace time.Duration) {
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// startWithin is the maximum duration of a server's start. An idle machine needs a second or two, a busy one minutes.
const startWithin = 10 * time.Minute

// errEnded means that a server process ended before it was ready.
var errEnded = errors.New("ended while starting")

// await calls ready until it succeeds, the process ends or startWithin is over.
func (p *process) await(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		last := ready(ctx)
		select {
		case <-p.done: // another server answers on the port
			return fmt.Errorf("%s %w: %w", what, errEnded, p.err)
		default:
		}
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s: %w", what, startWithin, last)
		case <-tick.C:
		}
	}
}
