// Package devstack brings berth's neighbours to life on one machine, for `worker --dev` and for tests:
// PostgreSQL, a Temporal dev server and the stand-ins for OpenDaylight and Nova. Each is a real process or a
// real HTTP server on a port of its own, and none outlives the process that started it.
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

// Free ports are found below those that the kernel hands out by itself: any process may get one of these for a
// mere connection between the moment when it was found free, or given up for a restart, and the moment of its use.
// Temporal's table of members has no room for higher ones either.
const lowestPort, beyondPorts = 10_000, 1 << 15

// listen takes the port, or a free one for 0.
func listen(port int) (net.Listener, error) {
	if port != 0 {
		return listenOn(port)
	}
	const tries = 1000
	for range tries {
		l, err := listenOn(lowestPort + rand.IntN(beyondPorts-lowestPort))
		var taken PortTaken
		if !errors.As(err, &taken) {
			return l, err
		}
	}
	return nil, fmt.Errorf("%d ports from %d to %d are taken", tries, lowestPort, beyondPorts-1)
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

// freePorts finds that many different ones.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := listen(0)
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // held until there are enough, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
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

// startWithin bounds the start of a server. An idle machine needs a second or two, a busy one minutes.
const startWithin = 10 * time.Minute

// errEnded means that a server ended by itself before it served.
var errEnded = errors.New("ended while starting")

// await calls ready until it succeeds, the process ends or the time is over.
func (p *process) await(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		last := ready(ctx)
		select {
		case <-p.done: // whoever answers then is another one
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
