package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// OpenDaylightVariable is the environment variable with the path of the program that serves OpenDaylight's
// Neutron northbound API.
const OpenDaylightVariable = "BERTH_TEST_OPENDAYLIGHT"

// OpenDaylightPath is the path of the northbound API below the server's URL.
const OpenDaylightPath = "/controller/nb/v2/neutron"

// OpenDaylight is a running server with OpenDaylight's northbound API for Neutron. The server accepts all
// credentials and keeps its data in memory.
type OpenDaylight struct {
	dir     string
	program string
	port    int
	proc    *process
	stdin   io.Closer
}

// OpenDaylightProgram returns the path of the program that serves the northbound API. The path is the value
// of OpenDaylightVariable. If the variable is not set, tools/opendaylight.sh of the source tree builds the
// program once and caches it. The build takes minutes.
func OpenDaylightProgram(ctx context.Context) (string, error) {
	if path := os.Getenv(OpenDaylightVariable); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			return "", fmt.Errorf("%s: %w", OpenDaylightVariable, err)
		}
		return path, nil
	}
	script, err := toolPath("opendaylight.sh")
	if err != nil {
		return "", err
	}
	var path, stderr bytes.Buffer
	cmd := exec.Command(script)
	cmd.Stdout, cmd.Stderr = &path, &stderr
	if err := Run(ctx, cmd); err != nil {
		return "", errors.Join(
			fmt.Errorf("build OpenDaylight's northbound: %w", err),
			errors.New(strings.TrimSpace(stderr.String())),
		)
	}
	return strings.TrimSpace(path.String()), nil
}

// StartOpenDaylight starts the server. The folder `dir` holds the server's log; StartOpenDaylight creates the
// folder if it does not exist.
func StartOpenDaylight(ctx context.Context, dir string) (*OpenDaylight, error) {
	program, err := OpenDaylightProgram(ctx)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	o := &OpenDaylight{dir: dir, program: program}
	err = withPort(0, func(port int) error {
		o.port = port
		return o.Start(ctx)
	})
	if err != nil {
		return nil, err
	}
	return o, nil
}

// URL returns the URL of the northbound API.
func (o *OpenDaylight) URL() string { return "http://" + o.address() + OpenDaylightPath }

func (o *OpenDaylight) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)) }

// Start starts a stopped server on the same port. The started server has no objects.
func (o *OpenDaylight) Start(ctx context.Context) error {
	log, err := openLog(o.dir)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(o.program, "--listen", o.address())
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.dir, log.File, log.File
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if o.stdin, err = cmd.StdinPipe(); err != nil { // the program ends when the pipe is closed
		return err
	}
	if o.proc, err = start(cmd); err != nil {
		return fmt.Errorf("start OpenDaylight: %w", err)
	}
	if err := o.proc.await(ctx, "OpenDaylight (log: "+log.Name()+")", o.ready); err != nil {
		err = log.explain(err)
		o.Kill()
		return err
	}
	return nil
}

func (o *OpenDaylight) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL()+"/networks", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /networks answers %s", answer.Status)
	}
	return nil
}

// Stop shuts the server down.
func (o *OpenDaylight) Stop() { o.end(syscall.SIGTERM, 10*time.Second) }

// Kill sends SIGKILL to the server.
func (o *OpenDaylight) Kill() { o.end(syscall.SIGKILL, time.Second) }

func (o *OpenDaylight) end(sig os.Signal, grace time.Duration) {
	o.proc.stop(sig, grace)
	_ = o.stdin.Close()
}
