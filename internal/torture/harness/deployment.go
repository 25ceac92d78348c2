package harness

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"berth/internal/api/openapi/openapitest"
	"berth/internal/devstack"
	"berth/internal/server/servertest"
)

// RandomDeployment is a whole installation for one run of random faults: several processes of berth, and
// servers for this run alone, which the faults may stop, disconnect and damage.
type RandomDeployment struct {
	*servertest.Deployment
	Postgres    *devstack.Postgres
	temporal    *devstack.TestTemporal
	copied      bool // the fault "Temporal restored from a copy" has copied Temporal's data
	rabbit      *devstack.RabbitMQ
	client      client.Client // connected with Temporal directly, not through slowLink
	slowLink    Link          // between all processes of berth and Temporal
	Processes   []*BerthProcess
	nova, odl   *faultyServer
	clientFault clientFault
	ledger      *ledger
	samples     samples
}

// NewRandomDeployment starts the servers, then one process of berth for each element of `roles`. The folder
// `programs` contains the programs worker and starter that migrate the database and run.
func NewRandomDeployment(t *testing.T, programs string, roles ...string) *RandomDeployment {
	t.Helper()
	d := &RandomDeployment{ledger: newLedger()}
	dir := filepath.Dir(servertest.DataFolder(t))
	d.startServers(t, dir)
	MigrateWith(t, programs, d.Postgres.URL)
	d.Deployment = servertest.NewDeployment(t, d.Postgres.URL)
	d.slowLink = NewLink(t, d.temporal.Address)
	d.nova, d.odl = &faultyServer{handler: d.Nova}, &faultyServer{handler: d.Controller}
	odlURL := servertest.Serve(t, d.odl)
	settings := append(
		d.Settings,
		"TEMPORAL_ADDRESS="+d.slowLink.Listen,
		"BERTH_NOVA_URL="+servertest.Serve(t, d.nova),
		"BERTH_ODL_URL="+odlURL+"/controller/nb/v2/neutron",
		"BERTH_ODL_TIMEOUT=3s",
		"BERTH_RABBITMQ_URL="+d.rabbit.URL(0),
	)
	for _, r := range roles {
		d.Processes = append(d.Processes, d.newProcess(programs, r, settings))
	}
	for _, p := range d.Processes {
		p.awaitServing()
	}
	return d
}

// startServers starts PostgreSQL, Temporal and RabbitMQ.
func (d *RandomDeployment) startServers(t *testing.T, dir string) {
	t.Helper()
	var starts sync.WaitGroup
	var err error
	t.Cleanup(func() {
		starts.Wait()
		if d.rabbit != nil {
			d.rabbit.Kill()
		}
	})
	starts.Go(func() { d.rabbit, err = devstack.StartRabbitMQ(t.Context(), filepath.Join(dir, "rabbitmq"), 1) })
	d.temporal, d.client = StartOwnTemporal(t)
	d.Postgres = startEmptyPostgres(t)
	starts.Wait()
	if err != nil {
		t.Fatal(err)
	}
}

// MigrateWith migrates a database with the program starter of a folder.
func MigrateWith(t *testing.T, programs, url string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "starter"), "migrate", "--database-url", url)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// CurrentPrograms returns the folder of the programs that are built from this source.
func CurrentPrograms(t *testing.T) string { return filepath.Dir(servertest.Program(t, "worker")) }

// urls returns the URLs of the processes with the role.
func (d *RandomDeployment) urls(role string) (urls []string) {
	for _, p := range d.Processes {
		if strings.Contains(p.roles, role) {
			urls = append(urls, p.url)
		}
	}
	return urls
}

// BerthProcess is a process of berth. The test starts the process again whenever it has ended, as a service
// manager does. Its answers are compared with its OpenAPI documents. The process reaches PostgreSQL through a
// TCP proxy of its own (Link), so a test can disturb the connections of this process only.
type BerthProcess struct {
	deployment *RandomDeployment
	roles, url string
	database   Link
	settings   []string
	mu         sync.Mutex
	programs   string // folder of the program worker that starts next
	process    *servertest.Process
	crashes    []string
}

func (d *RandomDeployment) newProcess(programs, roles string, settings []string) *BerthProcess {
	d.Helper()
	port, err := devstack.Port(0)
	if err != nil {
		d.Fatal(err)
	}
	_, address, _ := strings.Cut(d.Postgres.URL, "@")
	address, _, _ = strings.Cut(address, "/")
	p := &BerthProcess{
		deployment: d,
		programs:   programs,
		roles:      roles,
		url:        fmt.Sprintf("http://127.0.0.1:%d", port),
		database:   NewLink(d.T, address),
	}
	if programs == CurrentPrograms(d.T) { // other versions have other documents
		p.url = openapitest.Proxy(d.T, p.url)
	}
	p.settings = append(append([]string{}, settings...), fmt.Sprintf("BERTH_LISTEN=127.0.0.1:%d", port),
		"BERTH_DATABASE_URL="+strings.Replace(d.Postgres.URL, address, p.database.Listen, 1))
	p.start()
	var supervisor sync.WaitGroup
	// the context ends before the cleanup stops the processes
	supervisor.Go(func() { p.supervise(d.Context()) })
	d.Cleanup(func() {
		supervisor.Wait()
		p.kill()
		if d.Failed() {
			d.writeOutput(p)
		}
	})
	return p
}

func (p *BerthProcess) start() {
	p.process = servertest.StartProgram(
		p.deployment.T,
		filepath.Join(p.programs, "worker"),
		[]string{"-roles", p.roles},
		p.settings...)
}

// supervise starts the process again half a second after its end, and keeps the output of a process that has
// crashed.
func (p *BerthProcess) supervise(ctx context.Context) {
	for {
		p.mu.Lock()
		current := p.process
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-current.Done:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(500 * time.Millisecond):
		}
		p.mu.Lock()
		if hasCrashed(current.Output()) {
			p.crashes = append(p.crashes, current.Output())
		}
		p.start()
		p.mu.Unlock()
	}
}

// hasCrashed reports whether the output of a process tells of a panic, or of workflow code that does not
// agree with a history: TMPRL1100 is the code of this error in Temporal's SDK.
func hasCrashed(output string) bool {
	for _, sign := range []string{"panic:", "fatal error:", "TMPRL1100"} {
		if strings.Contains(output, sign) {
			return true
		}
	}
	return false
}

// Replace ends the process as a service manager does, and waits until the program of another folder serves in
// its place.
func (p *BerthProcess) Replace(programs string) {
	p.deployment.Helper()
	p.mu.Lock()
	p.programs = programs
	old := p.process
	_ = old.Cmd.Process.Signal(syscall.SIGTERM)
	p.mu.Unlock()
	select {
	case <-old.Done:
	case <-p.deployment.Context().Done():
		p.deployment.Fatal("the test has ended before the process with the roles " + p.roles)
	}
	p.awaitServing()
}

func (p *BerthProcess) kill() { p.signal(syscall.SIGKILL) }

// signal sends a signal to the process.
func (p *BerthProcess) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.process.Cmd.Process.Signal(sig)
}

// awaitServing waits until the process serves HTTP.
func (p *BerthProcess) awaitServing() {
	p.deployment.Helper()
	p.deployment.Await("the process with the roles "+p.roles+" serves", func() string {
		r, err := http.Get(p.url + "/healthz")
		if err != nil {
			return err.Error()
		}
		return WaitingFor("it is healthy", r.Body.Close() == nil && r.StatusCode == http.StatusOK)
	})
}

// writeOutput writes the output of the latest operating system process of p into a file that stays after the
// test.
func (d *RandomDeployment) writeOutput(p *BerthProcess) {
	name := fmt.Sprintf(
		"berth-torture-%d-%s.log",
		os.Getpid(),
		strings.ReplaceAll(strings.TrimPrefix(p.url, "http://"), ":", "-"),
	)
	path := filepath.Join(os.TempDir(), name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := os.WriteFile(path, []byte(p.process.Output()), 0o600); err == nil {
		d.Logf("output of the last process with the roles %s: %s", p.roles, path)
	}
}
