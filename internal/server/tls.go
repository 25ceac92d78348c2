package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"berth/internal/config"
)

// certificateFiles are the TLS settings of the HTTP listeners, read from PEM files: the certificate with its
// key, and the certificate authorities of clients. certificateFiles reads the files again when they have
// changed.
type certificateFiles struct {
	files   config.TLS
	reloads *prometheus.CounterVec

	mu      sync.Mutex
	loaded  *tls.Config
	seen    []os.FileInfo // of the files at the last attempt to read them; nil for a missing file
	problem string        // error of the last attempt to read the files; empty after a success
}

// openCertificateFiles reads the files, and registers the metrics of the certificate. openCertificateFiles
// returns nil if the settings name no certificate, and an error that names the setting if a file cannot be
// used.
func openCertificateFiles(files config.TLS, registry *prometheus.Registry) (*certificateFiles, error) {
	if files.CertFile == "" {
		return nil, nil
	}
	c := &certificateFiles{files: files, reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "berth_tls_certificate_reloads_total",
		Help: "Attempts to read changed TLS certificate files again, by outcome. After a failure, the previous certificate stays in use.",
	}, []string{"outcome"})}
	c.seen = c.stat() // before reading the files, so that a later change is noticed
	var err error
	if c.loaded, err = c.read(); err != nil {
		return nil, err
	}
	for _, outcome := range []string{"success", "failure"} {
		c.reloads.WithLabelValues(outcome)
	}
	registry.MustRegister(c.reloads, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_tls_certificate_expiry_timestamp_seconds",
		Help: "When the TLS certificate of the HTTP listeners expires, in seconds since 1970.",
	}, func() float64 { return float64(c.current().Certificates[0].Leaf.NotAfter.Unix()) }))
	return c, nil
}

// serverConfig returns the settings for http.Server.ServeTLS. Each handshake uses the certificate that
// current returns.
func (c *certificateFiles) serverConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil }}
}

// current returns the TLS settings from the files as they are now. If the files have changed and cannot be
// used, current logs and counts the failure and returns the previous settings. After a failure, current reads
// the files at every call, because a change of the permissions of a file does not change the time of its
// modification.
func (c *certificateFiles) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stat()
	changed := !slices.EqualFunc(c.seen, now, sameFile)
	if !changed && c.problem == "" {
		return c.loaded
	}
	c.seen = now
	next, err := c.read()
	if err == nil {
		c.loaded, c.problem = next, ""
		c.reloads.WithLabelValues("success").Inc()
		slog.Info("TLS certificate reloaded",
			"file", c.files.CertFile, "expires", next.Certificates[0].Leaf.NotAfter)
		return c.loaded
	}
	if changed || err.Error() != c.problem {
		c.problem = err.Error()
		c.reloads.WithLabelValues("failure").Inc()
		slog.Error("TLS certificate files cannot be used; the previous certificate stays in use",
			"error", err)
	}
	return c.loaded
}

// stat returns the state of each file.
func (c *certificateFiles) stat() []os.FileInfo {
	var found []os.FileInfo
	for _, path := range []string{c.files.CertFile, c.files.KeyFile, c.files.ClientCAFile} {
		if path != "" {
			info, _ := os.Stat(path) // read reports the error
			found = append(found, info)
		}
	}
	return found
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// read reads the files.
func (c *certificateFiles) read() (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("BERTH_TLS_CERT_FILE, BERTH_TLS_KEY_FILE: %w", err)
	}
	next := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{own},
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if c.files.ClientCAFile == "" {
		return next, nil
	}
	pem, err := os.ReadFile(c.files.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("BERTH_TLS_CLIENT_CA_FILE: %w", err)
	}
	next.ClientCAs, next.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !next.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("BERTH_TLS_CLIENT_CA_FILE: no certificate in %s", c.files.ClientCAFile)
	}
	return next, nil
}
