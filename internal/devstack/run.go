package devstack

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// grace is the time in which a program must end after the interrupt.
const grace = 15 * time.Second

// Run runs a program until it exits. When ctx ends, Run interrupts the program and all its child processes,
// and kills those processes that still run after the grace period. The program also ends if this process is
// killed.
func Run(ctx context.Context, cmd *exec.Cmd) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	p, err := start(cmd)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
	}
	group := -cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGINT)
	select {
	case <-p.done:
	case <-time.After(grace):
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-p.done
	return ctx.Err()
}
