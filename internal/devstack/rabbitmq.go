package devstack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// RabbitMQ is a running RabbitMQ broker with an Erlang port mapper (epmd) of its own.
type RabbitMQ struct {
	dir     string
	port    int // AMQP port of the broker; Erlang uses the next two ports
	tlsPort int // AMQP port with TLS
	node    int
	mapper  int
	proc    *process
	epmd    *process
}

// rabbitServer is the script in Debian's package that starts the broker as the current user.
const rabbitServer = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// StartRabbitMQ starts a broker that keeps its state in the folder, and creates the folder if it does not
// exist. The broker has the given number of virtual hosts, each of which makes every start of the broker
// slower.
func StartRabbitMQ(ctx context.Context, dir string, virtualHosts int) (*RabbitMQ, error) {
	if _, err := os.Stat(rabbitServer); err != nil {
		return nil, errors.New("RabbitMQ is not installed: install rabbitmq-server, or run make deps")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &RabbitMQ{dir: dir}
	err = withPort(0, func(port int) error {
		more, err := freePorts(3)
		if err != nil {
			return err
		}
		r.port, r.node, r.mapper, r.tlsPort = port, more[0], more[1], more[2]
		if err := r.configure(virtualHosts); err != nil {
			return err
		}
		return r.Start(ctx)
	})
	return r, err
}

// URL returns the AMQP URL of the virtual host with the number n, which begins at 0, with a user that has all
// permissions there.
func (r *RabbitMQ) URL(n int) string {
	return fmt.Sprintf("amqp://berth:berth@127.0.0.1:%d/v%d", r.port, n)
}

// SecureURL returns the AMQP URL of a virtual host for connections over TLS. The certificate authority in
// CAFile signed the broker's certificate.
func (r *RabbitMQ) SecureURL(n int) string {
	return fmt.Sprintf("amqps://berth:berth@localhost:%d/v%d", r.tlsPort, n)
}

// CAFile returns the path of the PEM file with the certificate authority of the broker.
func (r *RabbitMQ) CAFile() string { return filepath.Join(r.dir, "ca.pem") }

// configure writes the configuration files of the broker.
func (r *RabbitMQ) configure(virtualHosts int) error {
	definitions := map[string][]map[string]any{
		"users": {{"name": "berth", "password": "berth", "tags": "administrator"}},
	}
	for n := range virtualHosts {
		host := "v" + strconv.Itoa(n)
		definitions["vhosts"] = append(definitions["vhosts"], map[string]any{"name": host})
		definitions["permissions"] = append(definitions["permissions"],
			map[string]any{
				"user":      "berth",
				"vhost":     host,
				"configure": ".*",
				"write":     ".*",
				"read":      ".*",
			})
	}
	text, err := json.Marshal(definitions)
	if err != nil {
		return err
	}
	settings := "log.console = true\nlog.console.level = warning\nlog.file = false\n" +
		"disk_free_limit.absolute = 1MB\n" +
		"load_definitions = " + filepath.Join(r.dir, "definitions.json") + "\n" +
		"listeners.ssl.default = 127.0.0.1:" + strconv.Itoa(r.tlsPort) + "\n" +
		"ssl_options.cacertfile = " + r.CAFile() + "\n" +
		"ssl_options.certfile = " + r.CAFile() + "\n" +
		"ssl_options.keyfile = " + filepath.Join(r.dir, "key.pem") + "\n" +
		"ssl_options.verify = verify_none\n"
	file := func(name, text string) error { return os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644) }
	return errors.Join(
		file("definitions.json", string(text)),
		file("plugins", "[].\n"),
		file("rabbitmq.conf", settings),
		r.writeCertificate(),
	)
}

// Start starts a stopped broker on the same ports. After a restart of the broker, only durable queues and
// persistent messages are left.
func (r *RabbitMQ) Start(ctx context.Context) error {
	log, err := openLog(r.dir)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	// Without this port mapper, Erlang would start one that continues after the broker has ended.
	if r.epmd, err = r.launch(log.File, "epmd", "-port", strconv.Itoa(r.mapper), "-address", "127.0.0.1"); err != nil {
		return fmt.Errorf("start Erlang's port mapper: %w", err)
	}
	if r.proc, err = r.launch(log.File, rabbitServer); err != nil {
		r.epmd.stop(syscall.SIGKILL, time.Second)
		return fmt.Errorf("start RabbitMQ: %w", err)
	}
	err = r.proc.await(ctx, "RabbitMQ (log: "+log.Name()+")", r.ready)
	if err != nil {
		err = log.explain(err)
		r.Kill()
	}
	return err
}

func (r *RabbitMQ) launch(log *os.File, name string, args ...string) (*process, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Env = r.environ()
	return start(cmd)
}

// environ returns the environment of the broker's programs.
func (r *RabbitMQ) environ() []string {
	return append(
		withoutRabbitMQ(os.Environ()),
		"HOME="+r.dir, // folder of the Erlang cookie
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_EPMD_PORT="+strconv.Itoa(r.mapper),
		"RABBITMQ_NODENAME=berth"+strconv.Itoa(r.port)+"@localhost",
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+strconv.Itoa(r.port),
		"RABBITMQ_DIST_PORT="+strconv.Itoa(r.node),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(r.dir, "data"),
		"RABBITMQ_LOG_BASE="+filepath.Join(r.dir, "logs"),
		"RABBITMQ_PID_FILE="+filepath.Join(r.dir, "pid"),
		"RABBITMQ_CONFIG_FILE="+filepath.Join(r.dir, "rabbitmq.conf"),
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(r.dir, "plugins"),
		// the script replaces itself by the server, so that Pdeathsig reaches the server
		"RABBITMQ_ALLOW_INPUT=1",
		"RABBITMQ_SERVER_START_ARGS=-noinput",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none",
	)
}

// Control runs a shell command that manages the broker with rabbitmqctl. The parameter `environ` contains
// additional environment variables.
func (r *RabbitMQ) Control(ctx context.Context, command string, environ ...string) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	path := "PATH=" + filepath.Dir(rabbitServer) + ":" + os.Getenv("PATH")
	cmd.Dir = r.dir
	cmd.Env = append(append(r.environ(), path), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return nil
}

func withoutRabbitMQ(environ []string) []string {
	var kept []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "RABBITMQ_") && !strings.HasPrefix(v, "ERL_") &&
			!strings.HasPrefix(v, "HOME=") {
			kept = append(kept, v)
		}
	}
	return kept
}

// ready checks that the broker accepts AMQP connections: it must answer an unknown protocol version with the
// version that it supports.
func (r *RabbitMQ) ready(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(r.port))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("AMQP\x00\x00\x00\x00")); err != nil {
		return err
	}
	var hello [4]byte
	_, err = conn.Read(hello[:])
	return err
}

// Kill sends SIGKILL to the broker.
func (r *RabbitMQ) Kill() {
	r.proc.stop(syscall.SIGKILL, time.Second)
	r.epmd.stop(syscall.SIGKILL, time.Second)
}

// writeCertificate creates a self-signed certificate for this machine.
func (r *RabbitMQ) writeCertificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	of := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "berth"},
		DNSNames:              []string{"localhost"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(1, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	file := func(name, kind string, der []byte) error {
		return os.WriteFile(filepath.Join(r.dir, name),
			pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	return errors.Join(file("ca.pem", "CERTIFICATE", certificate), file("key.pem", "PRIVATE KEY", private))
}
