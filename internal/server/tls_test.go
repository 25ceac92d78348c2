package server_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/config"
	"berth/internal/server"
	"berth/internal/server/servertest"
)

// authority is a certificate authority for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	cert, key := sign(t, "authority", true, authority{})
	return authority{cert, key}
}

// sign returns a certificate for 127.0.0.1 and its key. With the zero authority, the certificate is signed by
// its own key.
func sign(t *testing.T, name string, isCA bool, by authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  isCA,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if by.cert == nil {
		by = authority{c, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// issue returns a certificate with its key, in PEM.
func (a authority) issue(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	c, k := sign(t, name, false, a)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return cert, key
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// client returns an HTTP client that trusts the authority and opens a connection for each request.
func (a authority) client(own ...tls.Certificate) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: own},
			DisableKeepAlives: true,
		},
	}
}

// tlsFiles are the certificate files of a server.
type tlsFiles struct{ cert, key string }

// newTLSFiles issues a certificate with the given name to a server.
func newTLSFiles(t *testing.T, by authority, name string) tlsFiles {
	t.Helper()
	dir := t.TempDir()
	f := tlsFiles{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	cert, key := by.issue(t, name)
	write(t, f.cert, cert)
	write(t, f.key, key)
	return f
}

func (f tlsFiles) settings() []string {
	return []string{"BERTH_TLS_CERT_FILE=" + f.cert, "BERTH_TLS_KEY_FILE=" + f.key}
}

// write replaces a file by a new one.
func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// get sends a GET request and returns the answer and its body.
func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(body)
}

// servedName returns the name in the certificate with which the server answers.
func servedName(t *testing.T, by authority, a *server.App) string {
	t.Helper()
	r, _ := get(t, by.client(), a.URL()+"/healthz")
	return r.TLS.PeerCertificates[0].Subject.CommonName
}

func TestTLS_Version12OrNewerWithHTTP1AndHTTP2(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	a := servertest.StartApp(t, config.API, newTLSFiles(t, ca, "server").settings()...)
	if !strings.HasPrefix(a.URL(), "https://") {
		t.Fatalf("URL of a process with a certificate: got %s, want https", a.URL())
	}
	for proto, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		c := ca.client()
		c.Transport.(*http.Transport).ForceAttemptHTTP2 = h2
		if r, _ := get(t, c, a.URL()+"/healthz"); r.StatusCode != http.StatusOK || r.Proto != proto {
			t.Errorf("GET /healthz over TLS: got %s with %s, want 200 with %s", r.Status, r.Proto, proto)
		}
	}
	for version, accepted := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", a.Address(),
			&tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if (err == nil) != accepted {
			t.Errorf("handshake with %s: got error %v, want accepted: %v",
				tls.VersionName(version), err, accepted)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	if r, _ := get(t, http.DefaultClient, "http://"+a.Address()+"/healthz"); r.StatusCode != http.StatusBadRequest {
		t.Errorf("HTTP without TLS: got %s, want 400", r.Status)
	}
}

func TestTLS_RequestWithoutTLSGetsJSON(t *testing.T) {
	t.Parallel()
	listener, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	files, s := newTLSFiles(t, newAuthority(t), "server"), server.NewHTTPServer(http.NotFoundHandler())
	go func() { _ = s.ServeTLS(listener, files.cert, files.key) }()
	t.Cleanup(func() { _ = s.Close() })

	r, text := get(t, http.DefaultClient, "http://"+listener.Addr().String()+"/networking/v2.0/networks")

	var body struct {
		NeutronError struct{ Type, Message, Detail string }
	}
	err = json.Unmarshal([]byte(text), &body)
	const message = "The request could not be read: Client sent an HTTP request to an HTTPS server."
	if r.StatusCode != http.StatusBadRequest || r.Header.Get("Content-Type") != "application/json" ||
		err != nil ||
		body.NeutronError.Message != message {
		t.Errorf(
			"request without TLS: got %s, Content-Type %q, body %q; want 400 with the message %q as JSON",
			r.Status, r.Header.Get("Content-Type"), text, message,
		)
	}
	allowed := []string{"Connection", "Content-Length", "Content-Type", "X-Content-Type-Options"}
	for name := range r.Header {
		if !slices.Contains(allowed, name) {
			t.Errorf("request without TLS: got the header %s, want no header about the server", name)
		}
	}
}

func TestTLS_ChangedCertificateIsUsedAndBrokenOneIsNot(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	files := newTLSFiles(t, ca, "first")
	a := servertest.StartApp(t, config.API, files.settings()...)
	h, _ := server.NewMetricsHandler(0, a.Registry()) // the app keeps its metrics for some time
	metrics := serveProbe(t, h)
	expect := func(name, metric string) {
		t.Helper()
		if got := servedName(t, ca, a); got != name {
			t.Errorf("certificate of the server: got the name %s, want %s", got, name)
		}
		if _, text := get(t, http.DefaultClient, metrics); !strings.Contains(text, "\n"+metric+"\n") {
			t.Errorf("scrape /metrics: want %s, got:\n%s", metric, text)
		}
	}
	const succeeded, failed = `berth_tls_certificate_reloads_total{outcome="success"} `, `berth_tls_certificate_reloads_total{outcome="failure"} `
	expect("first", succeeded+"0")

	cert, key := ca.issue(t, "second")
	write(t, files.cert, cert) // the key file still has the first key
	expect("first", failed+"1")
	write(t, files.key, key)
	expect("second", succeeded+"1")

	write(t, files.cert, []byte("no certificate"))
	expect("second", failed+"2")
	expect("second", failed+"2") // one failure, although several handshakes have met it
	if err := os.Remove(files.cert); err != nil {
		t.Fatal(err)
	}
	expect("second", failed+"3")
	write(t, files.cert, cert)
	expect("second", succeeded+"2")
}

// TestTLS_FailedReloadIsRepeated repairs a file such that neither its size nor the time of its modification
// changes. The same happens when an administrator corrects the permissions of a file.
func TestTLS_FailedReloadIsRepeated(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	files := newTLSFiles(t, ca, "first")
	a := servertest.StartApp(t, config.API, files.settings()...)
	cert, key := ca.issue(t, "second")
	at := time.Now().Add(-time.Minute)
	overwrite := func(path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}

	overwrite(files.cert, cert)
	overwrite(files.key, bytes.Repeat([]byte("x"), len(key)))
	if got := servedName(t, ca, a); got != "first" {
		t.Errorf("certificate while the key file is broken: got the name %s, want first", got)
	}
	overwrite(files.key, key)

	if got := servedName(t, ca, a); got != "second" {
		t.Errorf("certificate after the repair of the key file: got the name %s, want second", got)
	}
}

func TestTLS_ClientsNeedACertificateOfTheClientAuthority(t *testing.T) {
	t.Parallel()
	ca, clients, strangers := newAuthority(t), newAuthority(t), newAuthority(t)
	clientCA := filepath.Join(t.TempDir(), "clients.pem")
	write(t, clientCA, clients.pem())
	a := servertest.StartApp(t, config.API,
		append(newTLSFiles(t, ca, "server").settings(), "BERTH_TLS_CLIENT_CA_FILE="+clientCA)...)
	own := func(by authority) tls.Certificate {
		t.Helper()
		pair, err := tls.X509KeyPair(by.issue(t, "client"))
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	known, strange := own(clients), own(strangers)
	check := func(who string, accepted bool, c *http.Client) {
		t.Helper()
		r, err := c.Get(a.URL() + "/healthz")
		if err == nil {
			_ = r.Body.Close()
		}
		if (err == nil) != accepted {
			t.Errorf("request of %s: got error %v, want accepted: %v", who, err, accepted)
		}
	}

	check("a client with a certificate", true, ca.client(known))
	check("a client without a certificate", false, ca.client())
	check("a client with the certificate of a stranger", false, ca.client(strange))
	remembering := ca.client(known)
	sessions := tls.NewLRUClientSessionCache(1)
	remembering.Transport.(*http.Transport).TLSClientConfig.ClientSessionCache = sessions
	check("a client that remembers its session", true, remembering)

	write(t, clientCA, strangers.pem())

	check("a client of the replaced authority", false, ca.client(known))
	check("a client of the replaced authority that remembers its session", false, remembering)
	check("a client of the new authority", true, ca.client(strange))
}

func TestTLS_UnusableFileStopsTheStart(t *testing.T) {
	t.Parallel()
	files := newTLSFiles(t, newAuthority(t), "server")
	for name, c := range map[string]struct {
		settings []string
		want     string
	}{
		"missing certificate":       {[]string{"BERTH_TLS_CERT_FILE=/nonexistent", "BERTH_TLS_KEY_FILE=" + files.key}, "BERTH_TLS_CERT_FILE, BERTH_TLS_KEY_FILE: open /nonexistent"},
		"certificate as key":        {[]string{"BERTH_TLS_CERT_FILE=" + files.cert, "BERTH_TLS_KEY_FILE=" + files.cert}, "BERTH_TLS_CERT_FILE, BERTH_TLS_KEY_FILE: "},
		"missing client authority":  {append(files.settings(), "BERTH_TLS_CLIENT_CA_FILE=/nonexistent"), "BERTH_TLS_CLIENT_CA_FILE: open"},
		"key as a client authority": {append(files.settings(), "BERTH_TLS_CLIENT_CA_FILE="+files.key), "BERTH_TLS_CLIENT_CA_FILE: no certificate in"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := servertest.OpenError(t, c.settings...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("start with unusable TLS files: got error %v, want %q", err, c.want)
			}
		})
	}
}
