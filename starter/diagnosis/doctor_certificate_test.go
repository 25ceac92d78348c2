package diagnosis

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDoctor_WarnsBeforeTheCertificateExpires(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	secure, plain := httptest.NewTLSServer(answer), httptest.NewServer(answer)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		url         string
		before      time.Duration // the expiry
		state, want string
	}{
		"enough time": {secure.URL, 8 * day, "ok", "in 192h0m0s"},
		"a few days":  {secure.URL, 3 * day, "WARN", "in 72h0m0s; replace the files of BERTH_TLS_CERT_FILE and BERTH_TLS_KEY_FILE"},
		"without TLS": {plain.URL, 8 * day, "-", "has no TLS"},
		"no answer":   {"https://127.0.0.1:1", 8 * day, "FAIL", "cannot reach the API"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := secure.Certificate().NotAfter.Add(-c.before)
			s, _ := newSession(t, now, "BERTH_URL="+c.url, "BERTH_CA_FILE="+ca)

			found, err := checkCertificate(t.Context(), s)

			row, _ := resultRow("certificate", found, err)
			if text, _ := row["found"].(string); row["state"] != c.state || !strings.Contains(text, c.want) {
				t.Errorf("got %v, want the state %s and the text %q", row, c.state, c.want)
			}
		})
	}
}
