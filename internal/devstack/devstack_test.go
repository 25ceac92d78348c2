package devstack_test

import (
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
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"

	"berth/internal/devstack"
)

// victimVariable is an environment variable with the path of a folder. If it is set, the test binary starts
// PostgreSQL and Temporal in that folder and waits to be killed.
const victimVariable = "BERTH_TEST_DEVSTACK_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimVariable); dir != "" {
		victim(dir)
		return
	}
	os.Exit(m.Run())
}

func victim(dir string) {
	ctx := context.Background()
	p, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{Dir: filepath.Join(dir, "postgres")})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	s, err := devstack.StartTemporal(ctx, devstack.TemporalOptions{Dir: filepath.Join(dir, "temporal")})
	if err != nil {
		p.Stop()
		fmt.Println("error", err)
		return
	}
	fmt.Println(p.URL, s.Address)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// folder is like t.TempDir, but PostgreSQL's user can enter the folder.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func postgres(t *testing.T, o devstack.PostgresOptions) *devstack.Postgres {
	t.Helper()
	p, err := devstack.StartPostgres(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func temporal(t *testing.T, o devstack.TemporalOptions) *devstack.Temporal {
	t.Helper()
	s, err := devstack.StartTemporal(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func query(t *testing.T, url, sql string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	var answer string
	if err := c.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestTakenPortIsNamed(t *testing.T) {
	t.Parallel()
	s, err := devstack.Serve(0, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	_, text, _ := net.SplitHostPort(strings.TrimPrefix(s.URL, "http://"))
	port, _ := strconv.Atoi(text)

	_, portErr := devstack.Port(port)
	_, postgresErr := devstack.StartPostgres(t.Context(),
		devstack.PostgresOptions{Dir: folder(t), Port: port})
	_, temporalErr := devstack.StartTemporal(t.Context(),
		devstack.TemporalOptions{Dir: folder(t), Memory: true, Port: port})
	_, serveErr := devstack.Serve(port, http.NotFoundHandler())

	for who, err := range map[string]error{
		"Port":       portErr,
		"PostgreSQL": postgresErr,
		"Temporal":   temporalErr,
		"Serve":      serveErr,
	} {
		var taken devstack.PortTaken
		if !errors.As(err, &taken) || taken.Port != port ||
			!strings.Contains(err.Error(), "port "+text+" is already in use") {
			t.Errorf("start %s on a port in use: got error %v, want a PortTaken error with the port",
				who, err)
		}
	}
}

// TestPort_IsReserved asks for so many ports that two of them would be equal without a reservation: the
// probability of different ports is below 0.0001.
func TestPort_IsReserved(t *testing.T) {
	t.Parallel()
	chosen := map[int]bool{}
	for range 700 {
		port, err := devstack.Port(0)
		if err != nil {
			t.Fatal(err)
		}
		if chosen[port] {
			t.Fatalf("choose a free port: got port %d a second time, want a reserved port", port)
		}
		chosen[port] = true
	}
}

func TestTwoStacksStandSideBySide(t *testing.T) {
	t.Parallel()
	for range 2 {
		t.Run("stack", func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			p := postgres(t, devstack.PostgresOptions{Dir: filepath.Join(dir, "postgres"), Unsafe: true})
			s := temporal(t,
				devstack.TemporalOptions{Dir: filepath.Join(dir, "temporal"), Memory: true, UI: true})

			if got := query(t, p.URL, `select current_database()`); got != "berth" {
				t.Errorf("connect to the URL of PostgreSQL: got database %q, want berth", got)
			}
			c, err := client.DialContext(t.Context(), client.Options{HostPort: s.Address})
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			r, err := http.Get(s.UI)
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Body.Close()
			if r.StatusCode != http.StatusOK {
				t.Errorf("GET the Temporal UI: got status %s, want 200", r.Status)
			}
		})
	}
}

func TestKilledParentTakesItsChildrenAlongAndTheNextStartRecovers(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"="+dir)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var url, address string
	if _, err := fmt.Fscanln(out, &url, &address); err != nil || url == "error" {
		_ = cmd.Process.Kill()
		t.Fatalf(
			"read the URL of PostgreSQL and the address of Temporal from the process that is to be killed: got %q and %q, error %v",
			url, address, err,
		)
	}
	execute(t, url, `create table fact (word text)`, `insert into fact values ('kept')`)

	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	p := postgres(t, devstack.PostgresOptions{Dir: filepath.Join(dir, "postgres")})

	if got := query(t, p.URL, `select word from fact`); got != "kept" {
		t.Errorf("read a row after the restart of PostgreSQL: got %q, want kept", got)
	}
	awaitSilence(t, address)
	awaitSilence(t, hostOf(t, url))
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for _, s := range statements {
		if _, err := c.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

func hostOf(t *testing.T, url string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port))
}

// awaitSilence waits until no process listens on the TCP address.
func awaitSilence(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		_ = c.Close()
		if time.Now().After(deadline) {
			t.Fatalf("wait until no process listens on %s: a process still listens", address)
		}
	}
}

func TestPostgresKeepsItsRowsThroughACrash(t *testing.T) {
	t.Parallel()
	p := postgres(t, devstack.PostgresOptions{Dir: folder(t)})
	execute(t, p.URL, `create table fact (word text)`, `insert into fact values ('kept')`)

	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}

	if got := query(t, p.URL, `select word from fact`); got != "kept" {
		t.Errorf("read a row after the restart of PostgreSQL: got %q, want kept", got)
	}
}

func TestTemporalKeepsItsWorkflowsThroughACrash(t *testing.T) {
	t.Parallel()
	s := temporal(t, devstack.TemporalOptions{Dir: folder(t)})
	c, err := client.DialContext(t.Context(), client.Options{HostPort: s.Address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "w", TaskQueue: "q"}, "Any")
	if err != nil {
		t.Fatal(err)
	}

	s.Kill()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	found, err := c.DescribeWorkflowExecution(t.Context(), "w", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := found.WorkflowExecutionInfo.Execution.RunId; got != run.GetRunID() {
		t.Errorf(
			"run ID of the workflow: %s before the restart of Temporal, %s after it; want the same",
			run.GetRunID(),
			got,
		)
	}
}

// troubled returns the path of a script that runs Temporal's dev server. The first `times` starts of the
// script end immediately with an error; later starts run the server.
func troubled(t *testing.T, times int) (cli string) {
	t.Helper()
	genuine, err := devstack.TemporalCLI(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join("testdata", "troubled.sh"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	links := map[string]string{"temporal": script, "genuine": genuine}
	for i := range times {
		links[fmt.Sprint("trouble", i)] = script
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "temporal")
}

func TestTemporalThatLosesAPortWhileStartingIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := temporal(t, devstack.TemporalOptions{CLI: troubled(t, 2), Dir: folder(t), Memory: true})
	c, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

func TestTemporalThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	cli := troubled(t, 10)

	_, err := devstack.StartTemporal(t.Context(),
		devstack.TemporalOptions{CLI: cli, Dir: folder(t), Memory: true})

	const end = "ended while starting: exit status 1; last output: Error: listen: address already in use"
	if err == nil || !strings.HasSuffix(err.Error(), end) {
		t.Errorf(
			"StartTemporal with a server that never starts: got error %v, want an error that ends with the server's last output",
			err,
		)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(cli), "trouble*")); len(left) != 7 {
		t.Errorf(
			"StartTemporal with a server that never starts: it started the server %d times, want 3",
			10-len(left),
		)
	}
}

func TestStandInComesBackOnItsPort(t *testing.T) {
	t.Parallel()
	s, err := devstack.Serve(
		0,
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }),
	)
	if err != nil {
		t.Fatal(err)
	}
	url := s.URL

	s.Stop()
	if _, err := http.Get(url); err == nil {
		t.Error("GET a stopped HTTP stub: got an answer, want an error")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()

	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if body, _ := io.ReadAll(r.Body); string(body) != "here" || s.URL != url {
		t.Errorf(
			"GET the stub %s after its restart: got body %q, URL of the stub %s; want the body here and the same URL",
			url, body, s.URL,
		)
	}
}

func TestMissingCLIIsNamed(t *testing.T) {
	t.Setenv(devstack.CLIVariable, "/nonexistent/temporal")
	_, err := devstack.TemporalCLI(t.Context(), func(string) {})
	if err == nil || !strings.Contains(err.Error(), devstack.CLIVariable+": ") {
		t.Errorf(
			"TemporalCLI with a CLI that does not exist: got error %v, want an error that names the environment variable",
			err,
		)
	}
}

func TestInterruptedProgramTakesItsChildrenAlong(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "sleep 600 & echo up; wait")
	cmd.Stdout = w
	ended := make(chan error, 1)
	go func() { ended <- devstack.Run(ctx, cmd) }()
	if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}

	cancel()

	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("end the context of Run: got error %v, want context.Canceled", err)
	}
	_ = w.Close()
	// the end of the file: no grandchild holds the pipe
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf(
			"read the program's output after its end: got %q, error %v; want the end of the output, because no grandchild process may be left",
			rest,
			err,
		)
	}
}

// TestServerPortsFitTheTableOfItsMembers checks that free ports are at most 32767, because Temporal's cluster
// membership table cannot store higher ports.
func TestServerPortsFitTheTableOfItsMembers(t *testing.T) {
	t.Parallel()
	ports, err := devstack.FreePorts(9)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if p < 1024 || p > 32767 || seen[p] {
			t.Errorf("choose free ports: got %v, want different ports from 1024 to 32767", ports)
		}
		seen[p] = true
	}
	if len(ports) != 9 {
		t.Errorf("choose 9 free ports: got %d", len(ports))
	}
}
