package deploy_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"berth/internal/devstack"
)

// temporalPorts are the variables with the ports of the Temporal server. The port of the frontend comes
// first.
var temporalPorts = []string{
	"FRONTEND_GRPC_PORT",
	"FRONTEND_HTTP_PORT",
	"FRONTEND_MEMBERSHIP_PORT",
	"HISTORY_GRPC_PORT",
	"HISTORY_MEMBERSHIP_PORT",
	"MATCHING_GRPC_PORT",
	"MATCHING_MEMBERSHIP_PORT",
	"WORKER_GRPC_PORT",
	"WORKER_MEMBERSHIP_PORT",
	"INTERNAL_FRONTEND_GRPC_PORT",
	"INTERNAL_FRONTEND_HTTP_PORT",
	"INTERNAL_FRONTEND_MEMBERSHIP_PORT",
}

// startTemporal runs the service temporal of the Compose file as a process until the test ends, and returns
// the address of its frontend. The server has the environment of the Compose file, with other ports, and with
// SQLite in memory instead of PostgreSQL.
func startTemporal(t *testing.T) string {
	t.Helper()
	address, _ := startTemporalService(t, nil)
	return address
}

// startTemporalService is like startTemporal, and also returns all ports of the server by their variables.
// The variables in `change` replace those of the server.
func startTemporalService(t *testing.T, change map[string]string) (address string, ports map[string]string) {
	t.Helper()
	built, err := devstack.TemporalServer(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	c, err := readRepository(t).compose(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Services["temporal"]
	env := hostEnvironment(s)
	ports = map[string]string{}
	for _, name := range temporalPorts {
		ports[name] = freePort(t)
	}
	maps.Copy(env, ports)
	maps.Copy(env, map[string]string{
		"DB":                       "sqlite",
		"SQLITE_MODE":              "memory",
		"SQLITE_CACHE":             "shared",
		"NUM_HISTORY_SHARDS":       "4",
		"BIND_ON_IP":               "127.0.0.1",
		"DYNAMIC_CONFIG_FILE_PATH": dynamicConfig(t),
		"HOME":                     t.TempDir(),
		"PATH":                     os.Getenv("PATH"),
	})
	maps.Copy(env, change)
	// read-secrets.sh runs the server instead of the entrypoint of the image
	words := s.Command[1 : len(s.Command)-1]
	runServer(t, env, hostPath(s, s.Command[0]), append(slices.Clone(words), built.Server, "start")...)
	return "127.0.0.1:" + ports["FRONTEND_GRPC_PORT"], ports
}

// dynamicConfig returns the path of a copy of deploy/temporal-dynamicconfig.yaml, with which the server also
// uses new search attributes at once.
func dynamicConfig(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("temporal-dynamicconfig.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dynamic.yaml")
	if err := os.WriteFile(path, append(raw, "system.forceSearchAttributesCacheRefreshOnRead:\n  - value: true\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hostEnvironment returns the environment of a service. In the values, the paths of mounted files, and of
// files in mounted folders, are paths of this machine.
func hostEnvironment(s service) map[string]string {
	env := maps.Clone(s.Environment)
	for name, value := range env {
		if path := hostPath(s, value); path != "" {
			env[name] = path
		}
	}
	return env
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := devstack.Port(0)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// TestTemporal_RefusesStrangers runs Temporal with the environment of the Compose file, and checks which
// clients reach which of its ports.
func TestTemporal_RefusesStrangers(t *testing.T) {
	t.Parallel()
	address, ports := startTemporalService(t, nil)
	c, err := readRepository(t).compose(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"temporal-namespace", "api", "worker"} {
		await(t, func() error { return dialAs(t, c.Services[name], address, nil) }) // the server starts
	}
	for name, change := range map[string]func(env map[string]string){
		"without TLS": func(env map[string]string) {
			maps.DeleteFunc(env, func(name, _ string) bool { return strings.HasPrefix(name, "TEMPORAL_TLS") })
		},
		"without a certificate": func(env map[string]string) {
			delete(env, "TEMPORAL_TLS_CLIENT_CERT_PATH")
			delete(env, "TEMPORAL_TLS_CLIENT_KEY_PATH")
		},
		"with the certificate of another authority": func(env map[string]string) {
			env["TEMPORAL_TLS_CLIENT_CERT_PATH"] = filepath.Join(private, "rabbitmq", "certificate.pem")
			env["TEMPORAL_TLS_CLIENT_KEY_PATH"] = filepath.Join(private, "rabbitmq", "key.pem")
		},
	} {
		if err := dialAs(t, c.Services["worker"], address, change); err == nil {
			t.Errorf("call Temporal %s: got no error, want that Temporal refuses the client", name)
		}
	}
	if err := handshake(t, ports["FRONTEND_HTTP_PORT"], ""); err == nil {
		t.Error(
			"connect to Temporal's HTTP API without a certificate: got no error, want that Temporal refuses the client",
		)
	}
	if err := handshake(t, ports["FRONTEND_HTTP_PORT"], "ui"); err != nil {
		t.Errorf(
			"connect to Temporal's HTTP API with the certificate of the UI: got error %v, want none",
			err,
		)
	}
	if err := handshake(t, ports["FRONTEND_GRPC_PORT"], "temporal"); err != nil {
		t.Errorf(
			"connect to the frontend with the certificate of Temporal, as Temporal's own workers do: got error %v, want none",
			err,
		)
	}
	for _, port := range []string{"HISTORY_GRPC_PORT", "MATCHING_GRPC_PORT", "INTERNAL_FRONTEND_GRPC_PORT"} {
		if err := handshake(t, ports[port], "worker"); err == nil {
			t.Errorf(
				"connect to the port %s with the certificate of the worker: got no error, want that only Temporal's own services connect",
				port,
			)
		}
		if err := handshake(t, ports[port], "temporal"); err != nil {
			t.Errorf("connect to the port %s with the certificate of Temporal: got error %v, want none",
				port, err)
		}
	}
}

// connect returns a client of Temporal with the environment of a service, which `change` changes.
func connect(t *testing.T, s service, address string, change func(map[string]string)) client.Client {
	t.Helper()
	env := hostEnvironment(s)
	env["TEMPORAL_ADDRESS"] = address
	if change != nil {
		change(env)
	}
	var names []string
	options, err := envconfig.LoadClientOptions(
		envconfig.LoadClientOptionsRequest{EnvLookup: recordingEnv{env, &names}},
	)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewLazyClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// dialAs calls a method of Temporal that needs no token.
func dialAs(t *testing.T, s service, address string, change func(map[string]string)) error {
	t.Helper()
	_, err := connect(t, s, address, change).CheckHealth(t.Context(), &client.CheckHealthRequest{})
	return err
}

// TestTemporal_ClientsDoOnlyWhatTheirTokenAllows runs Temporal with the environment of the Compose file, and
// checks what the services may do.
func TestTemporal_ClientsDoOnlyWhatTheirTokenAllows(t *testing.T) {
	t.Parallel()
	h := newServiceHost(t)
	h.runOneShot(t, "temporal-namespace")
	describe := func(c client.Client, namespace string) error {
		_, err := c.WorkflowService().
			DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
		return err
	}
	start := func(c client.Client) error {
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "q"}, "Port")
		return err
	}
	list := func(c client.Client) error {
		_, err := c.WorkflowService().ListNamespaces(t.Context(), &workflowservice.ListNamespacesRequest{})
		return err
	}
	foreign, err := createCertificates(filepath.Join(t.TempDir(), "private"))
	if err != nil {
		t.Fatal(err)
	}
	noToken := func(env map[string]string) { env["TEMPORAL_CONFIG_FILE"] = os.DevNull }
	foreignToken := func(env map[string]string) {
		env["TEMPORAL_CONFIG_FILE"] = filepath.Join(foreign, "worker", "temporal.toml")
	}
	for _, c := range []struct {
		name, service                            string
		change                                   func(map[string]string)
		describes, describesOther, starts, lists bool
	}{
		{"the operator", "temporal-namespace", nil, true, true, true, true},
		{"the worker", "worker", nil, true, false, true, false},
		{"the API", "api", nil, true, false, false, false},
		{"a client without a token", "worker", noToken, false, false, false, false},
		{"a client with a token of another key", "worker", foreignToken, false, false, false, false},
	} {
		client := connect(t, h.services[c.service], h.temporal, c.change)
		for _, call := range []struct {
			name  string
			err   error
			allow bool
		}{
			{"describe the namespace berth", describe(client, "berth"), c.describes},
			{"describe another namespace", describe(client, "temporal-system"), c.describesOther},
			{"start a workflow", start(client), c.starts},
			{"list the namespaces", list(client), c.lists},
		} {
			var denied *serviceerror.PermissionDenied
			if refused := errors.As(call.err, &denied); call.allow && call.err != nil ||
				!call.allow && !refused {
				t.Errorf("%s: %s: got error %v, want that Temporal allows it: %v",
					c.name, call.name, call.err, call.allow)
			}
		}
	}
}

// handshake opens a TLS connection to a port with the certificate in a folder of deploy/private, or without a
// certificate. The server refuses a certificate only after the handshake of the client, so handshake also
// waits for the first byte of the server, which is a part of an HTTP/2 or HTTP/1.1 answer.
func handshake(t *testing.T, port, folder string) error {
	t.Helper()
	authority, err := os.ReadFile(filepath.Join(private, "temporal", "temporal-servers-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), NextProtos: []string{"h2", "http/1.1"}}
	config.RootCAs.AppendCertsFromPEM(authority)
	if folder != "" {
		certificate, err := tls.LoadX509KeyPair(filepath.Join(private, folder, "certificate.pem"),
			filepath.Join(private, folder, "key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		// Present the certificate even if its authority is not among those that the server names.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	}
	conn, err := tls.Dial("tcp", "127.0.0.1:"+port, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	// the preface of HTTP/2, with empty settings
	request := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		request = "GET /api/v1/cluster-info HTTP/1.1\r\nHost: temporal\r\n\r\n"
	}
	if _, err := fmt.Fprint(conn, request); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
