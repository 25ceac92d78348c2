package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/internal/devstack"
	"berth/internal/identity/keystonetest"
	"berth/internal/odl/odltest"
)

// serviceHost runs the services of the Compose file as processes on this machine. In the settings of the
// services, serviceHost replaces the host names of containers by addresses of this machine.
type serviceHost struct {
	keystone *keystonetest.Server
	odl      *odltest.Controller
	services map[string]service
	database string // address of PostgreSQL
	temporal string // address
	broker   string // address of RabbitMQ
}

func newServiceHost(t *testing.T) *serviceHost {
	t.Helper()
	nowhere := "127.0.0.1:1" // nothing listens there unless the test has started the service
	h := &serviceHost{
		keystone: keystonetest.New(t),
		odl:      odltest.New(),
		database: nowhere,
		temporal: startTemporal(t),
		broker:   nowhere,
	}
	h.keystone.User("berth", "secret", "service", "service")
	h.odl.User, h.odl.Password = "odl", "hunter2"
	odl := httptest.NewServer(h.odl)
	t.Cleanup(odl.Close)
	c, err := readRepository(t).compose(map[string]string{
		"BERTH_RABBITMQ_IDENTITIES": "off",
		"OS_AUTH_URL":               h.keystone.URL + "/v3",
		"OS_USERNAME":               "berth",
		"OS_PROJECT_NAME":           "service",
		"BERTH_ODL_URL":             odl.URL + odltest.BasePath,
		"BERTH_ODL_USERNAME":        "odl",
		"BERTH_NOVA_URL":            "http://127.0.0.1:1/v2.1",
	})
	if err != nil {
		t.Fatal(err)
	}
	h.services = c.Services
	return h
}

// environment returns the environment variables of a service. In their values, environment replaces the host
// names of containers by addresses of this machine, and the paths in mounted folders by paths of this
// machine.
func (h *serviceHost) environment(t *testing.T, name, listen string) map[string]string {
	t.Helper()
	env := hostEnvironment(h.services[name])
	env["PATH"], env["HOME"] = os.Getenv("PATH"), t.TempDir()
	h.replaceHost(t, env, "BERTH_DATABASE_URL_FILE", "@postgres:5432/", h.database)
	h.replaceHost(t, env, "BERTH_RABBITMQ_URL_FILE", "@rabbitmq:5671/", h.broker)
	if env["TEMPORAL_ADDRESS"] == "temporal:7233" {
		env["TEMPORAL_ADDRESS"] = h.temporal
	}
	if env["BERTH_LISTEN"] == "0.0.0.0:8778" {
		env["BERTH_LISTEN"] = listen
	}
	if env["BERTH_OPERATOR_LISTEN"] == "0.0.0.0:8779" {
		env["BERTH_OPERATOR_LISTEN"] = "127.0.0.1:" + freePort(t)
	}
	env["BERTH_RABBITMQ_URL"] = strings.Replace(env["BERTH_RABBITMQ_URL"], "rabbitmq:5671", h.broker, 1)
	return env
}

// replaceHost replaces the host in a file with a URL by an address of this machine. The variable names a copy
// of the file afterwards.
func (h *serviceHost) replaceHost(t *testing.T, env map[string]string, variable, host, address string) {
	t.Helper()
	if env[variable] == "" {
		return
	}
	raw, err := os.ReadFile(env[variable])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), host) {
		t.Fatalf("%s: got a URL without the host %q", variable, host)
	}
	env[variable] = filepath.Join(t.TempDir(), variable)
	if err := os.WriteFile(env[variable], []byte(strings.Replace(string(raw), host, "@"+address+"/", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command returns the command of a service in a form that runs as a process on this machine. The command is
// one of berth's programs or a script in the folder deploy.
func (h *serviceHost) command(
	t *testing.T,
	words []string,
	env map[string]string,
) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	program := filepath.Join(programs, words[0])
	if script, ok := strings.CutPrefix(words[0], "/deploy/"); ok {
		program = script
		cli, err := devstack.TemporalCLI(t.Context(), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		if err := os.Symlink(cli, filepath.Join(folder, "temporal")); err != nil {
			t.Fatal(err)
		}
		env["PATH"] = folder + ":" + env["PATH"]
		program = "./" + program
	}
	cmd := exec.Command(program, words[1:]...)
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// runOneShot runs a service until the process of the service exits.
func (h *serviceHost) runOneShot(t *testing.T, name string) {
	t.Helper()
	cmd, out := h.command(t, h.services[name].Command, h.environment(t, name, ""))
	if err := cmd.Run(); err != nil {
		t.Fatalf("run the one-shot service %s: want exit status 0, got error %v and the output:\n%s",
			name, err, out)
	}
}

// start runs a service until the test ends. start waits until the health check of the service succeeds, and
// then returns the service's address.
func (h *serviceHost) start(t *testing.T, name string) string {
	t.Helper()
	listen := "127.0.0.1:" + freePort(t)
	env := h.environment(t, name, listen)
	cmd, out := h.command(t, h.services[name].Command, env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.stop(t, name, cmd, out) })
	await(t, func() error {
		probe, output := h.command(t, h.services[name].Healthcheck.Test[1:], env)
		if err := probe.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, output)
		}
		return nil
	})
	return listen
}

// stop ends a service as a container engine does: SIGTERM, then SIGKILL after stop_grace_period.
func (h *serviceHost) stop(t *testing.T, name string, cmd *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	grace, err := time.ParseDuration(h.services[name].Grace)
	if err != nil {
		t.Error(err)
	}
	kill := time.AfterFunc(grace, func() {
		t.Errorf(
			"want that service %s exits within stop_grace_period (%s) after SIGTERM, but it did not",
			name,
			grace,
		)
		_ = cmd.Process.Kill()
	})
	defer kill.Stop()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || t.Failed() {
		t.Errorf("stop service %s with SIGTERM: got exit error %v, want none; output:\n%s", name, err, out)
	}
}

// await repeats a check until the check succeeds, for at most four minutes.
func await(t *testing.T, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// call sends an HTTP request with a Keystone token. call returns the response and the decoded JSON body of
// the response.
func call(t *testing.T, method, address, token, body string) (*http.Response, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer map[string]any
	_ = json.NewDecoder(res.Body).Decode(&answer)
	return res, answer
}

// TestServices_MirrorANetworkWithTheComposeEnvironment runs the services with their commands, environments
// and health checks from the Compose file. TestServices_MirrorANetworkWithTheComposeEnvironment creates a
// network at the service api and checks that the service worker mirrors the network to the controller.
func TestServices_MirrorANetworkWithTheComposeEnvironment(t *testing.T) {
	t.Parallel()
	h := newServiceHost(t)
	h.database = startPostgres(t, h.services["postgres"])
	h.broker = startRabbitMQ(t, h.services["rabbitmq"])
	for _, name := range []string{"temporal-namespace", "temporal-namespace", "migrate", "migrate"} {
		h.runOneShot(t, name) // twice, because compose runs them at every start
	}
	networks := "http://" + h.start(t, "api") + "/networking/v2.0/networks"
	h.start(t, "worker")
	// its health check needs the broker, because the test uses no virtual hosts of single hosts
	h.start(t, "rpc")
	member := h.keystone.Issue(keystonetest.Token{User: "u1", Project: "p1", Roles: []string{"member"}})

	unauthenticated, _ := call(t, "GET", networks, "", "")
	created, answer := call(t, "POST", networks, member, `{"network": {"name": "n1"}}`)

	if want := `Keystone uri="` + h.keystone.URL + `/v3"`; unauthenticated.StatusCode != 401 ||
		unauthenticated.Header.Get("WWW-Authenticate") != want {
		t.Errorf(
			"list networks without a token: got status %d with WWW-Authenticate %q, want 401 with the URL of Keystone",
			unauthenticated.StatusCode,
			unauthenticated.Header.Get("WWW-Authenticate"),
		)
	}
	if created.StatusCode != 201 {
		t.Fatalf("create a network: got status %d, body %v; want 201", created.StatusCode, answer)
	}
	network, _ := answer["network"].(map[string]any)
	id, _ := network["id"].(string)
	await(t, func() error {
		if r := h.odl.Record("network", id); r.Object == nil {
			return fmt.Errorf(
				"want that the controller has the network %s, but it does not; requests that the controller received: %+v",
				id,
				h.odl.Requests(),
			)
		}
		return nil
	})
	h.keystone.Fail(http.StatusServiceUnavailable)
	if unavailable, _ := call(t, "GET", networks, "another", ""); unavailable.StatusCode != 503 {
		t.Errorf("list networks while Keystone is unavailable: got status %d, want 503",
			unavailable.StatusCode)
	}
}
