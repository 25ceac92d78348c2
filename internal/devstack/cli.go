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
	"sync"
	"syscall"
	"time"
)

// CLIVariable is the environment variable with the path of the temporal CLI binary.
const CLIVariable = "BERTH_TEMPORAL_CLI"

// TemporalCLI returns the path of the temporal binary. The path is the value of CLIVariable or, if that is
// not set, the binary on PATH. If there is neither, TemporalCLI builds the version of the CLI that the source
// tree pins; Go caches the binary. The build takes minutes; meanwhile TemporalCLI passes a message to
// `progress` every ten seconds.
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
		return "", fmt.Errorf(
			"no temporal binary: put one on PATH, name it in %s, or run this in berth's source tree, which can build it",
			CLIVariable,
		)
	}
	return buildTool(ctx, module, "temporal", "the temporal CLI", progress)
}

// TemporalPrograms are the paths of the binaries that run Temporal in production.
type TemporalPrograms struct {
	Server  string
	SQLTool string // creates and updates the database schema
}

// TemporalServer builds the Temporal server and returns the paths of its programs. The programs have the same
// version as the dev server in the CLI, because one Go module of the source tree pins both versions. Go
// compiles most packages only once for the CLI and the server. Go caches the binaries. The build can take
// minutes; meanwhile TemporalServer passes a message to `progress` every ten seconds. Later calls in a
// process return the same programs, because Go needs seconds of CPU time to find them in its cache.
func TemporalServer(ctx context.Context, progress func(string)) (TemporalPrograms, error) {
	builtServer.Lock()
	defer builtServer.Unlock()
	if builtServer.programs != (TemporalPrograms{}) {
		return builtServer.programs, nil
	}
	module, err := toolModule("temporal")
	if err != nil {
		return TemporalPrograms{}, err
	}
	var s TemporalPrograms
	if s.Server, err = buildTool(ctx, module, "server", "the Temporal server", progress); err != nil {
		return TemporalPrograms{}, err
	}
	if s.SQLTool, err = buildTool(ctx, module, "sql", "the Temporal server's schema tool", progress); err != nil {
		return TemporalPrograms{}, err
	}
	builtServer.programs = s
	return s, nil
}

// builtServer has the programs that TemporalServer has built, or none.
var builtServer struct {
	sync.Mutex
	programs TemporalPrograms
}

// toolModule returns the folder of the module that pins a tool.
func toolModule(name string) (string, error) {
	path, err := toolPath(filepath.Join(name, "go.mod"))
	return filepath.Dir(path), err
}

// toolPath returns the path of a file in the folder tools, which is in the working directory or in a folder
// above.
func toolPath(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, "tools", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf(
				"no file tools/%s in the working directory or above: run this in berth's source tree",
				name,
			)
		}
		dir = filepath.Dir(dir)
	}
}

func buildTool(ctx context.Context, module, tool, what string, progress func(string)) (string, error) {
	var path, stderr bytes.Buffer
	cmd := exec.Command("go", "-C", module, "tool", "-n", tool)
	// so that the installation of a C compiler does not invalidate the cached build
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = &path, &stderr
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
			progress(fmt.Sprintf(
				"building %s once (%s elapsed; the first build takes minutes)",
				what,
				time.Since(begin).Round(time.Second),
			))
		case <-p.done:
			if p.err != nil {
				return "", errors.Join(
					fmt.Errorf("build %s: %w", what, p.err),
					errors.New(strings.TrimSpace(stderr.String())),
				)
			}
			return strings.TrimSpace(path.String()), nil
		}
	}
}
