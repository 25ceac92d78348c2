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

// RabbitMQ is a running broker with its own port mapper, both in one folder and on ports of their own.
type RabbitMQ struct {
	dir    string
	port   int // of the broker; the next two are Erlang's
	secure int // of the broker with TLS
	node   int
	mapper int
	proc   *process
	epmd   *process
}

// rabbitServer is where Debian has the script that starts the broker as whoever calls it.
const rabbitServer = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// StartRabbitMQ starts a broker whose state is in that folder, which is made if missing.
func StartRabbitMQ(ctx context.Context, dir string) (*RabbitMQ, error) {
	if _, err := os.Stat(rabbitServer); err != nil {
		return nil, errors.New("there is no RabbitMQ on this machine: install rabbitmq-server, or run make deps")
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
		r.port, r.node, r.mapper, r.secure = port, more[0], more[1], more[2]
		if err := r.configure(); err != nil {
			return err
		}
		return r.Start(ctx)
	})
	return r, err
}

// VirtualHosts is how many separate brokers the one broker is.
const VirtualHosts = 32

// URL connects to one of the virtual hosts, of which there are VirtualHosts, as a user who may do anything there.
func (r *RabbitMQ) URL(n int) string {
	return fmt.Sprintf("amqp://berth:berth@127.0.0.1:%d/v%d", r.port, n)
}

// SecureURL is URL with TLS, under a certificate of the authority in the file CAFile.
func (r *RabbitMQ) SecureURL(n int) string {
	return fmt.Sprintf("amqps://berth:berth@localhost:%d/v%d", r.secure, n)
}

// CAFile is the PEM file with the broker's authority.
func (r *RabbitMQ) CAFile() string { return filepath.Join(r.dir, "ca.pem") }

// configure writes what the broker reads when it starts.
func (r *RabbitMQ) configure() error {
	definitions := map[string][]map[string]any{"users": {{"name": "berth", "password": "berth", "tags": "administrator"}}}
	for n := range VirtualHosts {
		host := "v" + strconv.Itoa(n)
		definitions["vhosts"] = append(definitions["vhosts"], map[string]any{"name": host})
		definitions["permissions"] = append(definitions["permissions"],
			map[string]any{"user": "berth", "vhost": host, "configure": ".*", "write": ".*", "read": ".*"})
	}
	text, err := json.Marshal(definitions)
	if err != nil {
		return err
	}
	file := func(name, text string) error { return os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644) }
	return errors.Join(file("definitions.json", string(text)), file("plugins", "[].\n"),
		file("rabbitmq.conf", "log.console = true\nlog.console.level = warning\nlog.file = false\ndisk_free_limit.absolute = 1MB\n"+
			"load_definitions = "+filepath.Join(r.dir, "definitions.json")+"\n"+
			"listeners.ssl.default = 127.0.0.1:"+strconv.Itoa(r.secure)+"\n"+
			"ssl_options.cacertfile = "+r.CAFile()+"\nssl_options.certfile = "+r.CAFile()+"\n"+
			"ssl_options.keyfile = "+filepath.Join(r.dir, "key.pem")+"\nssl_options.verify = verify_none\n"), r.certify())
}

// Start brings a stopped broker back on its ports. What was not durable is gone.
func (r *RabbitMQ) Start(ctx context.Context) error {
	log, err := openLog(r.dir)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	// Erlang would start a port mapper that outlives it.
	if r.epmd, err = r.launch(log.File, "epmd", "-port", strconv.Itoa(r.mapper), "-address", "127.0.0.1"); err != nil {
		return fmt.Errorf("start Erlang's port mapper: %w", err)
	}
	if r.proc, err = r.launch(log.File, rabbitServer); err != nil {
		r.epmd.stop(syscall.SIGKILL, time.Second)
		return fmt.Errorf("start RabbitMQ: %w", err)
	}
	err = r.proc.await(ctx, "RabbitMQ (log: "+log.Name()+")", r.answers)
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
	cmd.Env = append(withoutRabbitMQ(os.Environ()),
		"HOME="+r.dir, // of the cookie
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
		"RABBITMQ_ALLOW_INPUT=1", // the script becomes the server, which ends when we do
		"RABBITMQ_SERVER_START_ARGS=-noinput",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none")
	return start(cmd)
}

func withoutRabbitMQ(environ []string) []string {
	var kept []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "RABBITMQ_") && !strings.HasPrefix(v, "ERL_") && !strings.HasPrefix(v, "HOME=") {
			kept = append(kept, v)
		}
	}
	return kept
}

// answers tells whether the broker speaks AMQP: to an unknown version of it, it answers with its own.
func (r *RabbitMQ) answers(ctx context.Context) error {
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

// Stop ends the broker in order.
func (r *RabbitMQ) Stop() {
	r.proc.stop(syscall.SIGTERM, 20*time.Second)
	r.epmd.stop(syscall.SIGKILL, time.Second)
}

// Kill ends it as kill -9 does.
func (r *RabbitMQ) Kill() {
	r.proc.stop(syscall.SIGKILL, time.Second)
	r.epmd.stop(syscall.SIGKILL, time.Second)
}

// certify makes a certificate for this machine, which is its own authority.
func (r *RabbitMQ) certify() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	of := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "berth"}, DNSNames: []string{"localhost"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	certificate, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	file := func(name, kind string, der []byte) error {
		return os.WriteFile(filepath.Join(r.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	return errors.Join(file("ca.pem", "CERTIFICATE", certificate), file("key.pem", "PRIVATE KEY", private))
}
