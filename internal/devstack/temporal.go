package devstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"berth/internal/contract"
)

// TemporalOptions are the options of a Temporal dev server.
type TemporalOptions struct {
	CLI    string // path of the binary; empty means that TemporalCLI finds it
	Dir    string // holds the log and, unless Memory, the database; created if missing, kept after Stop
	Memory bool   // keep no data after the end of the server
	Port   int    // 0: a free one
	UI     bool   // with the web UI
	UIPort int    // 0: a free one
}

// Temporal is a running Temporal server. One process runs all services of the server.
type Temporal struct {
	Address string // host:port of the frontend
	UI      string // URL of the web UI, empty without one
	options TemporalOptions
	// path of the dev server's database, empty if the database is in memory
	database string
	command  func() *exec.Cmd            // returns the command line of the server
	ready    func(context.Context) error // returns nil if the server is ready
	proc     *process
}

// dynamicConfig makes new search attributes and namespaces visible to the next request, and raises the
// server's rate limits.
var dynamicConfig = []string{
	"system.forceSearchAttributesCacheRefreshOnRead=true",
	"frontend.namespaceRPS.visibility=1000",
	"frontend.namespaceRPS=100000",
}

// StartTemporal starts Temporal's dev server with berth's search attributes and waits until requests can use
// these attributes.
func StartTemporal(ctx context.Context, o TemporalOptions) (*Temporal, error) {
	var err error
	if o.CLI == "" {
		if o.CLI, err = TemporalCLI(ctx, func(string) {}); err != nil {
			return nil, err
		}
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	var t *Temporal
	var database string
	if !o.Memory {
		if database, err = databasePath(ctx, o); err != nil {
			return nil, err
		}
	}
	err = withPort(o.Port, func(port int) error {
		t = &Temporal{options: o, database: database}
		t.command, t.ready = t.devServer, t.devReady
		return t.startOnPort(ctx, port)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// startOnPort chooses the port of the UI and starts the server.
func (t *Temporal) startOnPort(ctx context.Context, port int) error {
	t.options.Port = port
	t.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if t.options.UI {
		ui, err := Port(t.options.UIPort)
		if err != nil {
			return fmt.Errorf("choose the port of the Temporal UI: %w", err)
		}
		t.options.UIPort = ui
		t.UI = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(ui))
	}
	return t.run(ctx)
}

// Stop shuts the server down.
func (t *Temporal) Stop() { t.proc.stop(syscall.SIGTERM, 5*time.Second) }

// Kill sends SIGKILL to the server.
func (t *Temporal) Kill() { t.proc.stop(syscall.SIGKILL, time.Second) }

// Start starts a stopped or killed server on the same ports.
func (t *Temporal) Start(ctx context.Context) error { return t.run(ctx) }

// Ended returns a channel that is closed after the end of the server process.
func (t *Temporal) Ended() <-chan struct{} { return t.proc.done }

// run starts the server and waits until it is ready. The dev server chooses ports for its internal services.
// If another process takes one of these ports first, the dev server ends, and run starts it again.
func (t *Temporal) run(ctx context.Context) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		err := t.launch(ctx)
		if !errors.Is(err, errEnded) || attempt == attempts {
			return err
		}
		// another process uses the frontend's port, so another attempt would fail, too
		if _, taken := Port(t.options.Port); taken != nil {
			return err
		}
	}
}

func (t *Temporal) launch(ctx context.Context) error {
	lock, err := t.awaitPredecessor(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	log, err := openLog(t.options.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := t.command()
	cmd.Dir = t.options.Dir
	cmd.Stdout, cmd.Stderr = log.File, log.File
	cmd.ExtraFiles = []*os.File{lock} // the folder is locked until the server ends
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if t.proc, err = start(cmd); err != nil {
		return fmt.Errorf("start Temporal: %w", err)
	}
	if err := t.proc.await(ctx, "Temporal (log: "+log.Name()+")", t.ready); err != nil {
		err = log.explain(err)
		t.Stop()
		return err
	}
	return nil
}

// awaitPredecessor waits until an earlier server in the same folder, which was killed, has ended. Then
// awaitPredecessor locks the folder for the next server, and returns the lock file.
func (t *Temporal) awaitPredecessor(ctx context.Context) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(t.options.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	const patience = 10 * time.Minute
	for begin := time.Now(); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) && time.Since(begin) < patience && ctx.Err() == nil {
			time.Sleep(25 * time.Millisecond)
			continue
		}
		_ = f.Close()
		return nil, fmt.Errorf("another Temporal server uses %s: %w", t.options.Dir, err)
	}
}

func (t *Temporal) devServer() *exec.Cmd {
	cmd := exec.Command(t.options.CLI, t.args()...)
	cmd.Env = withoutTemporal(os.Environ())
	return cmd
}

func (t *Temporal) args() []string {
	args := []string{
		"server",
		"start-dev",
		"--ip",
		"127.0.0.1",
		"--port",
		strconv.Itoa(t.options.Port),
		"--log-level",
		"warn",
	}
	if t.options.UI {
		args = append(args, "--ui-port", strconv.Itoa(t.options.UIPort))
	} else {
		args = append(args, "--headless")
	}
	if t.database != "" {
		// In SQLite's WAL mode with synchronous=NORMAL, a commit is safe if the process crashes, but not if
		// the machine crashes. Flushing each commit to the disk would make the server several times slower.
		args = append(args, "--db-filename", t.database,
			"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL")
	}
	for _, a := range contract.SearchAttributes {
		args = append(args, "--search-attribute", a.Name+"="+a.Type)
	}
	for _, d := range dynamicConfig {
		args = append(args, "--dynamic-config-value", d)
	}
	return args
}

// devReady checks that the frontend answers and has berth's search attributes. Without these attributes
// workflow tasks would fail.
func (t *Temporal) devReady(ctx context.Context) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.Address)
	if err != nil {
		return err
	}
	_ = c.Close()
	cmd := exec.CommandContext(
		ctx,
		t.options.CLI,
		"operator",
		"search-attribute",
		"list",
		"--address",
		t.Address,
		"--namespace",
		"default",
		"--output",
		"json",
		"--disable-config-file",
		"--command-timeout",
		"60s",
	)
	cmd.Env = withoutTemporal(os.Environ())
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the search attributes: %w", err)
	}
	return hasSearchAttributes(out)
}

// hasSearchAttributes checks that the CLI's list of search attributes contains all search attributes that
// berth uses.
func hasSearchAttributes(list []byte) error {
	var listed struct {
		Custom map[string]string `json:"customAttributes"`
	}
	if err := json.Unmarshal(list, &listed); err != nil {
		return fmt.Errorf("decode the list of search attributes: %w", err)
	}
	for _, a := range contract.SearchAttributes {
		if _, ok := listed.Custom[a.Name]; !ok {
			return fmt.Errorf("search attribute %s is missing", a.Name)
		}
	}
	return nil
}

// withoutTemporal removes the environment variables that would make the CLI use another server.
func withoutTemporal(environ []string) []string {
	var rest []string
	for _, pair := range environ {
		if !strings.HasPrefix(pair, "TEMPORAL_") {
			rest = append(rest, pair)
		}
	}
	return rest
}
