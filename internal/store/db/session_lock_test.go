package db_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"berth/internal/store/db"
	"berth/internal/store/storetest"
)

const (
	// leaderDatabase is the environment variable that makes the test program run runLeader with the URL that
	// the variable contains.
	leaderDatabase = "BERTH_TEST_LEADER_DATABASE"
	leaderLock     = "test of a stopped leader"
)

// runLeader is the main function of a process that acquires the lock, writes "leads", and writes "stopped"
// when its context ends.
func runLeader(url string) int {
	d, err := db.Open(context.Background(), url, db.Options{})
	if err != nil {
		fmt.Println("open the database:", err)
		return 1
	}
	defer d.Close()
	_, _ = d.InOneProcess(context.Background(), leaderLock, func(ctx context.Context) {
		fmt.Println("leads")
		<-ctx.Done()
		fmt.Println("stopped")
	})
	return 0
}

// TestInOneProcess_StoppedProcessLosesTheLock stops a process with SIGSTOP. The connection of the stopped
// process stays open, because the kernel still answers TCP keepalives.
func TestInOneProcess_StoppedProcessLosesTheLock(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	leader := exec.CommandContext(t.Context(), os.Args[0])
	leader.Env = append(os.Environ(), leaderDatabase+"="+url)
	out, err := leader.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = leader.Process.Kill()
		_ = leader.Wait()
	})
	lines := bufio.NewScanner(out)
	awaitLine := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("output of the first process: got %q, error %v; want %q",
				lines.Text(), lines.Err(), want)
		}
	}
	awaitLine("leads")
	d, err := db.Open(t.Context(), url, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	lead := func() bool {
		t.Helper()
		led, err := d.InOneProcess(t.Context(), leaderLock, func(context.Context) {})
		if err != nil {
			t.Fatal(err)
		}
		return led
	}
	if lead() {
		t.Fatal("a second process got the lock while the first one runs, want only one")
	}

	if err := leader.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}

	begin := time.Now()
	for !lead() {
		if time.Since(begin) > 5*time.Minute {
			t.Fatal("no other process got the lock within five minutes after the first process was stopped")
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("another process got the lock %s after the first process was stopped",
		time.Since(begin).Round(time.Millisecond))
	if err := leader.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awaitLine("stopped")
}
