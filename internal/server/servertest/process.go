package servertest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/internal/config"
	"berth/internal/devstack"
)

// Process is a child process whose output is recorded.
type Process struct {
	Cmd  *exec.Cmd
	Done chan struct{}
	mu   sync.Mutex
	out  bytes.Buffer
}

// Write appends bytes to the recorded output.
func (r *Process) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(b)
}

// Output returns everything that the process has written to stdout and stderr until now.
func (r *Process) Output() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

// StartDev starts `worker --dev` without the demo.
func StartDev(t *testing.T, settings ...string) *Process {
	t.Helper()
	return StartProgram(
		t, os.Args[0], []string{"--dev"},
		append([]string{answersUnwatched}, append(settings, "BERTH_DEMO=off", mainVariable+"=yes")...)...,
	)
}

// answersUnwatched is a setting for tests on machines that may be so slow that the database seems to hang.
const answersUnwatched = "BERTH_DATABASE_ANSWER_TIMEOUT=off"

// StartProgram starts a program; the parameter `settings` is added to the program's environment.
func StartProgram(t *testing.T, program string, args []string, settings ...string) *Process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), settings...)
	return StartCommand(t, cmd)
}

// StartCommand starts a command that ends with the test at the latest, even if the test process is killed.
// The kernel kills the command's process when the thread that forked the process ends, so StartCommand keeps
// that thread until the process ends.
func StartCommand(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	r := &Process{Cmd: cmd, Done: make(chan struct{})}
	r.Cmd.Stdout, r.Cmd.Stderr = r, r
	if r.Cmd.SysProcAttr == nil {
		r.Cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	r.Cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := r.Cmd.Start()
		started <- err
		if err == nil {
			_ = r.Cmd.Wait()
			close(r.Done)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop(t, os.Interrupt) })
	return r
}

// Stop sends the signal and waits until the process has ended.
func (r *Process) Stop(t *testing.T, sig os.Signal) {
	t.Helper()
	_ = r.Cmd.Process.Signal(sig)
	select {
	case <-r.Done:
	case <-time.After(10 * time.Minute):
		_ = r.Cmd.Process.Kill()
		t.Errorf("the process still runs ten minutes after signal %s:\n%s", sig, r.Output())
	}
}

// Addresses waits until a `worker --dev` is ready. Addresses returns the addresses that the worker wrote into
// its data folder.
func (r *Process) Addresses(t *testing.T, data string) map[string]string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); {
		found, err := config.ReadAddresses(data)
		if err != nil {
			t.Fatal(err)
		}
		if found != nil && strings.Contains(r.Output(), "Ctrl-C") {
			return found
		}
		select {
		case <-r.Done:
			t.Fatalf("`worker --dev` ended with %s before it was ready:\n%s", r.Cmd.ProcessState, r.Output())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("`worker --dev` is not ready after ten minutes:\n%s", r.Output())
	return nil
}

// DataFolder returns the path for a new data folder that unprivileged users, such as the users of PostgreSQL
// and dnsmasq, can enter. DataFolder does not create the data folder.
func DataFolder(t *testing.T) string {
	t.Helper()
	dir, err := devstack.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "data")
}

// FreePorts are the settings that let `worker --dev` choose free ports.
var FreePorts = []string{
	"BERTH_LISTEN=127.0.0.1:0",
	"BERTH_DEV_DATABASE_PORT=0",
	"BERTH_DEV_TEMPORAL_PORT=0",
	"BERTH_DEV_UI_PORT=0",
	"BERTH_DEV_ODL_PORT=0",
}
