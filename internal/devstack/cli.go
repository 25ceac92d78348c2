package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// CLIVariable names the temporal binary to use.
const CLIVariable = "BERTH_TEMPORAL_CLI"

// TemporalCLI finds the temporal binary: the one that CLIVariable names, one on PATH, else the pinned one of the
// source tree, which Go builds once and keeps in its cache. Progress is told of a build, which takes minutes.
func TemporalCLI(ctx context.Context, progress func(string)) (string, error) {
	if path := os.Getenv(CLIVariable); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			return "", fmt.Errorf("%s: %w", CLIVariable, err)
		}
		return path, nil
	}
	if path, err := exec.LookPath("temporal"); err == nil {
		return path, nil
	}
	module, err := toolModule("temporal")
	if err != nil {
		return "", fmt.Errorf("no temporal binary: put one on PATH, name it in %s, or start in berth's source tree so that it can be built", CLIVariable)
	}
	return buildTool(ctx, module, "temporal", "the temporal CLI", progress)
}

// TemporalPrograms are the binaries that production runs.
type TemporalPrograms struct {
	Server  string
	SQLTool string // makes the schema
}

// TemporalServer finds the pinned server of the source tree, which Go builds once and keeps in its cache.
// Progress is told of a build, which takes minutes.
func TemporalServer(ctx context.Context, progress func(string)) (TemporalPrograms, error) {
	module, err := toolModule("server")
	if err != nil {
		return TemporalPrograms{}, err
	}
	var s TemporalPrograms
	if s.Server, err = buildTool(ctx, module, "server", "the Temporal server", progress); err != nil {
		return s, err
	}
	s.SQLTool, err = buildTool(ctx, module, "sql", "the Temporal server's schema tool", progress)
	return s, err
}

// toolModule finds the module that pins a tool, here or in a folder above.
func toolModule(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		module := filepath.Join(dir, "tools", name)
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			return module, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("there is no tools/%s here or above: start in berth's source tree", name)
		}
		dir = filepath.Dir(dir)
	}
}

func buildTool(ctx context.Context, module, tool, what string, progress func(string)) (string, error) {
	var path, trouble bytes.Buffer
	cmd := exec.Command("go", "-C", module, "tool", "-n", tool)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // installing a C compiler must not make it stale
	cmd.Stdout, cmd.Stderr = &path, &trouble
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	p, err := start(cmd)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", what, err)
	}
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for begin := time.Now(); ; {
		select {
		case <-ctx.Done():
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
			<-p.done
			return "", ctx.Err()
		case <-tick.C:
			progress(fmt.Sprintf("building %s, which is kept for later (%s so far, about 4 minutes on two cores)", what, time.Since(begin).Round(time.Second)))
		case <-p.done:
			if p.err != nil {
				return "", errors.Join(fmt.Errorf("build %s: %w", what, p.err), errors.New(strings.TrimSpace(trouble.String())))
			}
			return strings.TrimSpace(path.String()), nil
		}
	}
}
