package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/internal/config"
	"berth/internal/devstack"
	"berth/internal/store/storetest"
)

// devRun is a real process of the worker.
type devRun struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	out  bytes.Buffer
}

// Write keeps what the process says.
func (r *devRun) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(b)
}

func (r *devRun) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

func startDev(t *testing.T, settings ...string) *devRun {
	t.Helper()
	return spawn(t, os.Args[0], []string{"--dev"}, append(settings, "BERTH_DEMO=off", mainVariable+"=yes")...)
}

// spawn starts a program.
func spawn(t *testing.T, program string, args []string, settings ...string) *devRun {
	t.Helper()
	r := &devRun{cmd: exec.Command(program, args...), done: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), settings...)
	r.begin(t)
	return r
}

// begin starts the process, which ends with the test at the latest, even if that has no time to clean up: the
// kernel kills it when the thread that forked ends, which therefore has to last.
func (r *devRun) begin(t *testing.T) {
	t.Helper()
	r.cmd.Stdout, r.cmd.Stderr = r, r
	if r.cmd.SysProcAttr == nil {
		r.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	r.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := r.cmd.Start()
		started <- err
		if err == nil {
			_ = r.cmd.Wait()
			close(r.done)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.end(t, os.Interrupt) })
}

// end sends the signal and waits.
func (r *devRun) end(t *testing.T, sig os.Signal) {
	t.Helper()
	_ = r.cmd.Process.Signal(sig)
	select {
	case <-r.done:
	case <-time.After(3 * time.Minute):
		_ = r.cmd.Process.Kill()
		t.Errorf("still runs long after %s:\n%s", sig, r.said())
	}
}

// addresses waits until the run is up and returns what it wrote for other terminals.
func (r *devRun) addresses(t *testing.T, data string) map[string]string {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		found, err := config.ReadAddresses(data)
		if err != nil {
			t.Fatal(err)
		}
		if found != nil && strings.Contains(r.said(), "Ctrl-C") {
			return found
		}
		select {
		case <-r.done:
			t.Fatalf("ended with %s:\n%s", r.cmd.ProcessState, r.said())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("not up in time:\n%s", r.said())
	return nil
}

// devFolder is a folder that accounts without rights, those of PostgreSQL and dnsmasq, may enter. It has to be made.
func devFolder(t *testing.T) string {
	t.Helper()
	dir, err := devstack.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "data")
}

var anyPorts = []string{"BERTH_LISTEN=127.0.0.1:0", "BERTH_DEV_DATABASE_PORT=0", "BERTH_DEV_TEMPORAL_PORT=0", "BERTH_DEV_UI_PORT=0", "BERTH_DEV_ODL_PORT=0"}

func TestDevelopmentRunAnswersAgentsIfThereIsRabbitMQ(t *testing.T) {
	t.Parallel()
	without, with := config.Config{}, config.Config{RabbitMQ: []string{"amqp://127.0.0.1/"}}

	if slices.Contains(devRoles(without), config.RPC) || !slices.Contains(devRoles(with), config.RPC) {
		t.Errorf("without RabbitMQ it is %v, with it %v", devRoles(without), devRoles(with))
	}
}

func TestDevelopmentRunIsReachableAndKeepsItsData(t *testing.T) {
	t.Parallel()
	data := devFolder(t)
	settings := append([]string{"BERTH_DATA=" + data}, anyPorts...)
	first := startDev(t, settings...)
	found := first.addresses(t, data)

	for name, url := range map[string]string{"API": found["BERTH_URL"] + "/readyz", "UI": found["TEMPORAL_UI"]} {
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(name, err)
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", name, r.Status)
		}
	}
	for _, url := range found {
		if url == found["BERTH_DATABASE_URL"] || url == data {
			continue
		}
		if !strings.Contains(first.said(), url) {
			t.Errorf("%s is not printed", url)
		}
	}
	second := startDev(t, settings...)
	<-second.done
	if second.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(second.said(), "another run (process "+strconv.Itoa(first.cmd.Process.Pid)+") uses "+data) {
		t.Errorf("a second run on the same data: %s", second.said())
	}
	storetest.Exec(t, found["BERTH_DATABASE_URL"], `create table kept ()`)

	first.end(t, syscall.SIGTERM)

	if code := first.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, first.said())
	}
	if left, _ := config.ReadAddresses(data); left != nil {
		t.Errorf("addresses are left: %v", left)
	}
	third := startDev(t, settings...)
	storetest.Exec(t, third.addresses(t, data)["BERTH_DATABASE_URL"], `drop table kept`)
}

func TestDevelopmentRunComesBackAfterAKill(t *testing.T) {
	t.Parallel()
	data := devFolder(t)
	settings := []string{"BERTH_DATA=" + data}
	for _, name := range []string{"BERTH_DEV_DATABASE_PORT", "BERTH_DEV_TEMPORAL_PORT", "BERTH_DEV_UI_PORT", "BERTH_DEV_ODL_PORT"} {
		port, err := devstack.Port(0)
		if err != nil {
			t.Fatal(err)
		}
		settings = append(settings, name+"="+strconv.Itoa(port))
	}
	settings = append(settings, "BERTH_LISTEN=127.0.0.1:0")
	first := startDev(t, settings...)
	first.addresses(t, data)

	first.end(t, syscall.SIGKILL)

	second := startDev(t, settings...)
	for !strings.Contains(second.said(), "Ctrl-C") {
		select {
		case <-second.done:
			t.Fatalf("did not come back:\n%s", second.said())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestTakenPortIsNamedWithItsSetting(t *testing.T) {
	t.Parallel()
	s, err := devstack.Serve(0, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	address := strings.TrimPrefix(s.URL, "http://")
	_, port, _ := strings.Cut(address, ":")
	for setting, name := range map[string]string{
		"BERTH_LISTEN=" + address:         "port " + port + " (BERTH_LISTEN) is already in use",
		"BERTH_DEV_DATABASE_PORT=" + port: "port " + port + " (BERTH_DEV_DATABASE_PORT) is already in use",
		"BERTH_DEV_TEMPORAL_PORT=" + port: "port " + port + " (BERTH_DEV_TEMPORAL_PORT) is already in use",
		"BERTH_DEV_UI_PORT=" + port:       "port " + port + " (BERTH_DEV_UI_PORT) is already in use",
		"BERTH_DEV_ODL_PORT=" + port:      "port " + port + " (BERTH_DEV_ODL_PORT) is already in use",
	} {
		r := startDev(t, append(append([]string{"BERTH_DATA=" + devFolder(t)}, anyPorts...), setting)...)
		<-r.done
		if r.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(r.said(), name) {
			t.Errorf("%s: %s", setting, r.said())
		}
	}
}
