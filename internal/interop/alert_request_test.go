package interop

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/devstack"
	"berth/internal/identity/keystonetest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// startRequests starts two processes with the role api, which validate tokens with a stub of Keystone. One of
// the processes serves HTTPS.
func startRequests(t *testing.T) *alertDeployment {
	t.Helper()
	d := &alertDeployment{keystone: keystonetest.New(t)}
	d.Deployment, d.temporal = servertest.SharedDeployment(t)
	d.keystone.User("berth", "secret", "service", "service")
	database, err := url.Parse(d.Database)
	if err != nil {
		t.Fatal(err)
	}
	query := database.Query()
	query.Set("pool_max_conns", "4")
	database.RawQuery = query.Encode()
	folder, token := t.TempDir(), d.newToken()
	d.authority = filepath.Join(folder, "keystone-ca.pem")
	d.writeAuthority(300)
	d.Settings = append(
		d.Settings,
		"BERTH_AUTH=keystone",
		"OS_AUTH_URL="+d.keystone.URL+"/v3",
		"OS_USERNAME=berth",
		"OS_PASSWORD=secret",
		"OS_PROJECT_NAME=service",
		"OS_CACERT="+d.authority,
		"BERTH_TOKEN="+token,
		"BERTH_CA_FILE="+filepath.Join(folder, "cert.pem"),
		"BERTH_DATABASE_URL="+database.String(),
		"BERTH_REQUEST_TIMEOUT=3s",
	)
	d.secure = newSecureProcess(d.Deployment, folder)
	d.prometheus = startPrometheus(d.Deployment)
	d.api = d.startScraped("api")
	d.api.Token = token
	d.secure.start()
	d.scrape(d.secure.url)
	return d
}

// newToken issues a token of an administrator.
func (d *alertDeployment) newToken() string {
	return d.keystone.Issue(keystonetest.Token{User: "boss", Project: "ops", Roles: []string{"admin", "member", "reader"}})
}

// writeAuthority writes the certificate authority of Keystone, which is 100 days old and expires after the
// given number of days. The stub of Keystone does not use TLS.
func (d *alertDeployment) writeAuthority(days int) {
	d.Helper()
	const day = 24 * time.Hour
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		d.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-100 * day),
		NotAfter:              time.Now().Add(time.Duration(days) * day),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		d.Fatal(err)
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(d.authority, content, 0o600); err != nil {
		d.Fatal(err)
	}
}

// secureProcess is a process with the role api that serves HTTPS. It has the same address after a restart.
type secureProcess struct {
	*servertest.Process
	s                  *servertest.Deployment
	url, cert, keyFile string
}

// newSecureProcess creates a process that does not run yet, with its certificate files in the folder.
func newSecureProcess(s *servertest.Deployment, folder string) *secureProcess {
	s.Helper()
	port, err := devstack.Port(0)
	if err != nil {
		s.Fatal(err)
	}
	p := &secureProcess{
		s:       s,
		url:     fmt.Sprintf("https://127.0.0.1:%d", port),
		cert:    filepath.Join(folder, "cert.pem"),
		keyFile: filepath.Join(folder, "key.pem"),
	}
	p.certify(30)
	return p
}

// certify gives the process a certificate that expires after the given number of days.
func (p *secureProcess) certify(days int) {
	p.s.Helper()
	out, err := exec.CommandContext(
		p.s.Context(), "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
		"-subj", "/CN=berth", "-addext", "subjectAltName=IP:127.0.0.1", "-days", fmt.Sprint(days),
		"-keyout", p.keyFile, "-out", p.cert,
	).CombinedOutput()
	if err != nil {
		p.s.Fatalf("make a certificate: %v\n%s", err, out)
	}
}

// start starts the process and waits until it serves.
func (p *secureProcess) start() {
	p.s.Helper()
	p.Process = servertest.StartProgram(
		p.s.T, servertest.Program(p.s.T, "worker"), []string{"-roles", "api"},
		append(
			p.s.Settings, "BERTH_LISTEN="+p.url[len("https://"):],
			"BERTH_TLS_CERT_FILE="+p.cert, "BERTH_TLS_KEY_FILE="+p.keyFile,
		)...)
	serving := regexp.MustCompile(`msg=serving `)
	p.s.Await("the process with TLS serves", func() string {
		if serving.MatchString(p.Output()) {
			return ""
		}
		return "its output is " + p.Output()
	})
}

// clients lets n clients list networks until `stop` is called.
func (d *alertDeployment) clients(n int, token func() string) (stop func()) {
	d.Helper()
	stops := make([]func(), n)
	for i := range stops {
		stops[i] = d.repeatedly(200*time.Millisecond, func() { _, _ = d.listNetworks(token()) })
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// listNetworks lists networks and returns the status of the answer.
func (d *alertDeployment) listNetworks(token string) (int, error) {
	caller := *d.api
	caller.Token = token
	code, _, err := caller.Do("GET", "/networking/v2.0/networks", nil)
	return code, err
}

// keystoneAway lets Keystone answer 503 while clients send tokens that the process has not validated.
var keystoneAway = alertScenario{
	name:   "Keystone does not answer",
	alerts: map[string][]string{"BerthKeystoneAway": {`FAIL +Keystone +Keystone at \S+ answers 503`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		d.keystone.Fail(http.StatusServiceUnavailable)
		stop := d.clients(2, uuid.NewString)
		return func(map[string]string) {
			stop()
			d.keystone.Fail(0)
			d.Await("Keystone validates tokens", func() string {
				if code, err := d.listNetworks(d.newToken()); code != http.StatusOK {
					return fmt.Sprint(code, err)
				}
				return ""
			})
		}
	},
}

var certificateExpires = alertScenario{
	name:   "a certificate expires within three days",
	alerts: map[string][]string{"BerthCertificateExpires": {`WARN +certificate +attention: the certificate of https://127\.0\.0\.1\S* expires at \S+, in 7[12]h`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		d.secure.certify(3)
		return func(map[string]string) { d.secure.certify(30) }
	},
}

// credentialExpires starts a process with a certificate authority of Keystone that expires within three days.
// The process does not read a new file before it is restarted.
var credentialExpires = alertScenario{
	name:   "a certificate authority expires within three days",
	alerts: map[string][]string{"BerthCredentialExpires": {`WARN +credentials +attention: OS_CACERT \(\S+\) expires at \S+, in 7[12]h`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		restart := func(days int) {
			d.writeAuthority(days)
			d.secure.Stop(d.T, syscall.SIGKILL)
			d.secure.start()
		}
		restart(3)
		return func(map[string]string) { restart(300) }
	},
}

// tableLocked keeps a lock for which more requests wait than the process has connections.
var tableLocked = alertScenario{
	name: "a session keeps a lock on a table",
	alerts: map[string][]string{
		"BerthRequestsSlow":         {`WARN +locks +.*session \d+ \(idle in transaction for .*\) .*network`},
		"BerthConnectionsExhausted": {`WARN +locks +.*session \d+ \(idle in transaction for .*\) .*network`},
	},
	fault: func(d *alertDeployment) func(map[string]string) {
		rival := storetest.NewRival(d.T, d.Database)
		rival.Do(`begin`)
		rival.Do(`lock table network`)
		stop := d.clients(16, func() string { return d.api.Token })
		return func(map[string]string) {
			rival.Do(`rollback`)
			stop()
		}
	},
}

// databaseAway makes PostgreSQL end all connections to the database and refuse new ones.
var databaseAway = alertScenario{
	name: "PostgreSQL refuses connections",
	alerts: map[string][]string{
		"BerthRequestsFail":       {`not ready`, `FAIL +database +.*not currently accepting connections`},
		"BerthErrorBudgetShrinks": {`FAIL +database +.*not currently accepting connections`},
	},
	fault: func(d *alertDeployment) func(map[string]string) {
		d.allowConnections(false)
		stop := d.clients(2, func() string { return d.api.Token })
		return func(map[string]string) {
			stop()
			d.allowConnections(true)
			failed := regexp.MustCompile(`msg="Request answered" .*route=/v2.0/networks status=503`)
			if !failed.MatchString(d.api.Output()) {
				d.Error("log of the process: got no message about a request with the status 503, want one")
			}
		}
	},
}

// allowConnections sets whether PostgreSQL accepts connections to the database. If not, it also ends the
// present ones.
func (d *alertDeployment) allowConnections(allowed bool) {
	d.Helper()
	server, err := url.Parse(d.Database)
	if err != nil {
		d.Fatal(err)
	}
	name := server.Path[1:]
	server.Path = "/postgres"
	admin := storetest.Connect(d.T, server.String())
	defer func() { _ = admin.Close(context.WithoutCancel(d.Context())) }()
	for _, sql := range []string{
		fmt.Sprintf(`alter database %s allow_connections %t`, name, allowed),
		fmt.Sprintf(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s'`, name),
	} {
		if _, err := admin.Exec(d.Context(), sql); err != nil {
			d.Fatal(err)
		}
	}
}

var processDown = alertScenario{
	name:   "a process does not run",
	alerts: map[string][]string{"BerthProcessDown": {`connection refused`}},
	fault: func(d *alertDeployment) func(map[string]string) {
		d.secure.Stop(d.T, syscall.SIGKILL)
		return func(map[string]string) { d.secure.start() }
	},
}
