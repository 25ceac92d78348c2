package main

import (
	"bytes"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"berth/starter/cli"
)

func TestSignal_EndsACommandThatWaitsWithItsOwnExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command, read string // the command waits until the API answers the request `read`
		signal        syscall.Signal
		code          int
		stderr        string
	}{
		{"port wait web-1 --timeout 30m", "GET /networking/v2.0/ports/", syscall.SIGINT, 130, "starter: interrupted\n"},
		{"port wait web-1 --timeout 30m", "GET /networking/v2.0/ports/", syscall.SIGTERM, 143, "starter: interrupted\n"},
		{"port watch web-1", "GET /networking/v2.0/ports/", syscall.SIGINT, 130, "starter: interrupted\n"},
		{"lease wait gold --for terminated", "GET /reservation/v1/leases/", syscall.SIGINT, 130, "starter: interrupted\n"},
		{"odl sync", "GET /journal/v1/runs/1", syscall.SIGINT, 130, "The full-sync 1 is running.\nstarter: interrupted\n  It continues; `starter odl show 1` shows its progress.\n"},
		{"doctor", "GET /healthz", syscall.SIGINT, 130, "starter: interrupted\n"},
	} {
		t.Run(c.command+" "+c.signal.String(), func(t *testing.T) {
			t.Parallel()
			s, url := newAPIStub(t)
			reads := make(chan bool, 1)
			s.mu.Lock() // so that the goroutines of the stub see the changes
			s.add("ports", cli.Object{"name": "web-1"})
			s.add("leases", cli.Object{"name": "gold"})
			s.onRequest = func(r *http.Request) {
				if !strings.HasPrefix(r.Method+" "+r.URL.Path, c.read) {
					return
				}
				select {
				case reads <- true:
				default:
				}
				<-r.Context().Done()
			}
			s.mu.Unlock()
			cmd := exec.Command("starter", strings.Fields(c.command)...)
			cmd.Env = append(cmd.Environ(),
				"BERTH_DATA="+t.TempDir(), "BERTH_URL="+url, "TEMPORAL_ADDRESS=127.0.0.1:1")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })

			<-reads
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()

			if got := cmd.ProcessState.ExitCode(); got != c.code || stderr.String() != c.stderr {
				t.Errorf("starter %s after %s: got exit code %d and stderr %q, want %d and %q",
					c.command, c.signal, got, stderr.String(), c.code, c.stderr)
			}
		})
	}
}
