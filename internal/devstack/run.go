package devstack

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// grace is what a program of Run has to tidy up once it was asked to end.
const grace = 15 * time.Second

// Run runs a program to its end. When ctx ends first, the program and all its children are interrupted, and
// killed if they stay. It ends when we are killed.
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
