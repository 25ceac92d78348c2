// Package devstack starts the servers that berth needs on one machine, for `worker --dev` and for tests:
// PostgreSQL, Temporal, RabbitMQ, and HTTP stubs such as those of OpenDaylight and Nova. Each server has its
// own port and ends when the process that started it ends.
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

// Port returns the port if it is free on loopback. If the port is 0, Port returns any free port, and reserves
// it: no process of berth gets the same port again before this process ends. If the port is in use, Port
// returns a PortTaken error.
func Port(port int) (int, error) {
	l, err := listen(port)
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// PortTaken is the error that another process listens on the port.
type PortTaken struct{ Port int }

func (e PortTaken) Error() string { return fmt.Sprintf("port %d is already in use", e.Port) }

// berth chooses free ports below the kernel's range of ephemeral ports. Otherwise an outgoing connection of
// any process could take a port after berth chose it and before berth uses it. Another reason for these
// limits: Temporal's cluster membership table cannot store higher ports.
const lowestPort, portLimit = 10_000, 1 << 15

// listen opens a TCP listener for the port on loopback. For port 0 listen chooses any free port.
func listen(port int) (net.Listener, error) {
	if port != 0 {
		return listenOn(port)
	}
	const tries = 1000
	for range tries {
		port := lowestPort + rand.IntN(portLimit-lowestPort)
		if !reserve(port) {
			continue
		}
		l, err := listenOn(port)
		var taken PortTaken
		if !errors.As(err, &taken) {
			return l, err
		}
	}
	return nil, fmt.Errorf("no free port found: %d random ports from %d to %d are in use",
		tries, lowestPort, portLimit-1)
}

// reserve reports whether no process of berth has reserved the port. The reservation is a socket with an
// abstract name, which is unique on the machine, needs no file, and exists until the process ends.
func reserve(port int) bool {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return true // the process has too many open files; the port is probably free
	}
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: fmt.Sprintf("@berth/port/%d", port)}); err != nil {
		_ = syscall.Close(fd)
		return !errors.Is(err, syscall.EADDRINUSE)
	}
	return true
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
		port, err := Port(0)
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// withPort calls f with the port. If the port is 0, withPort calls f with a free port. If another process
// takes that free port before f uses it, withPort tries another free port.
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

// process is a child process that ends when this process ends.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed after the end of the process
	err  error         // result of cmd.Wait; valid after done is closed
}

// start runs the command from a thread that exists as long as the child process. The reason is that the
// kernel sends Pdeathsig to the child when the thread that forked the child ends, and that the Go runtime may
// end other threads earlier.
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

// stop sends the signal to the process and waits until the process has ended. After the grace period stop
// sends SIGKILL.
func (p *process) stop(sig os.Signal, grace time.Duration) {
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// startWithin is how long the start of a server may take. The start takes a second or two on an idle machine,
// and minutes on a busy one.
const startWithin = 10 * time.Minute

// errEnded means that a server process ended before it was ready.
var errEnded = errors.New("ended while starting")

// await calls the function `ready` until it succeeds, the process ends or startWithin has passed.
func (p *process) await(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		last := ready(ctx)
		select {
		// checked before the result of ready, because another server may have answered on the port
		case <-p.done:
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
