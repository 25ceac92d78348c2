package cli

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/config"
)

func TestClient_RedirectIsAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.RedirectHandler("/login", http.StatusFound))
	t.Cleanup(server.Close)

	err := NewClient(server.URL, "").Do(t.Context(), "GET", "/", nil, nil)

	if err == nil || !strings.Contains(err.Error(), "302") {
		t.Error(err)
	}
}

// writePEM writes a PEM file and returns its path.
func writePEM(t *testing.T, typ string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestClient_TrustsTheGivenAuthorityAndSendsItsCertificate(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }),
	)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := writePEM(t, "CERTIFICATE", server.Certificate().Raw)
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := writePEM(t, "PRIVATE KEY", key)
	for name, c := range map[string]struct {
		files config.Client
		want  string // part of the error or of its advice; empty: success
	}{
		"authority and certificate": {config.Client{CAFile: ca, CertFile: ca, KeyFile: keyFile}, ""},
		"no authority":              {config.Client{CertFile: ca, KeyFile: keyFile}, "Set BERTH_CA_FILE"},
		"no certificate":            {config.Client{CAFile: ca}, "cannot reach the API"},
		"missing authority file":    {config.Client{CAFile: ca + ".gone"}, "BERTH_CA_FILE: open"},
		"authority file with a key": {config.Client{CAFile: keyFile}, "BERTH_CA_FILE: no certificate in"},
		"missing key file":          {config.Client{CertFile: ca, KeyFile: ca + ".gone"}, "BERTH_CLIENT_CERT_FILE, BERTH_CLIENT_KEY_FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := NewClient(server.URL, "")

			err := client.UseTLS(c.files)
			if err == nil {
				err = client.Do(t.Context(), "GET", "/", nil, nil)
			}

			var e *Error
			switch {
			case c.want == "" && err != nil:
				t.Errorf("request over TLS: got error %v, want none", err)
			case c.want != "" && (!errors.As(err, &e) || !strings.Contains(e.Error()+e.Next, c.want)):
				t.Errorf("request over TLS: got error %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestReadSettings_URLIsHTTPSIfTheAPIHasACertificate(t *testing.T) {
	t.Parallel()
	data := "BERTH_DATA=" + t.TempDir()
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"without TLS":      {nil, "http://127.0.0.1:1"},
		"with TLS":         {[]string{"BERTH_TLS_CERT_FILE=/c", "BERTH_TLS_KEY_FILE=/k"}, "https://127.0.0.1:1"},
		"BERTH_URL counts": {[]string{"BERTH_TLS_CERT_FILE=/c", "BERTH_TLS_KEY_FILE=/k", "BERTH_URL=http://api:2"}, "http://api:2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := ReadSettings(append(c.environ, data, "BERTH_LISTEN=127.0.0.1:1"))
			if err != nil || s.URL != c.want {
				t.Errorf("URL of the API: got %s, error %v, want %s", s.URL, err, c.want)
			}
		})
	}
}

func TestClient_OperatorRequestsGoToTheAddressForOperators(t *testing.T) {
	t.Parallel()
	data := "BERTH_DATA=" + t.TempDir()
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"one address":             {nil, "http://127.0.0.1:1"},
		"separate address":        {[]string{"BERTH_OPERATOR_LISTEN=127.0.0.1:2"}, "http://127.0.0.1:2"},
		"separate address, TLS":   {[]string{"BERTH_OPERATOR_LISTEN=127.0.0.1:2", "BERTH_URL=https://127.0.0.1:1"}, "https://127.0.0.1:2"},
		"another API":             {[]string{"BERTH_OPERATOR_LISTEN=127.0.0.1:2", "BERTH_URL=http://api:1"}, "http://api:1"},
		"URL of another operator": {[]string{"BERTH_OPERATOR_LISTEN=127.0.0.1:2", "BERTH_OPERATOR_URL=http://api:3"}, "http://api:3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, err := ReadSettings(append(c.environ, data, "BERTH_LISTEN=127.0.0.1:1"))
			if err != nil {
				t.Fatal(err)
			}
			s := Session{Settings: &settings}
			if err := s.Open(io.Discard); err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]string{"/operator/v1/notes": c.want, "/networking/v2.0/ports": settings.URL, "/readyz": settings.URL} {
				r, err := s.API.newRequest(t.Context(), "GET", path, nil, nil)
				if err != nil || r.URL.String() != want+path {
					t.Errorf("request for %s: got the URL %s, error %v, want %s", path, r.URL, err, want+path)
				}
			}
		})
	}
}
