package diagnosis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/starter/cli"
)

// certificateFile writes a certificate that is valid for 825 days and expires at the given time.
func certificateFile(t *testing.T, ends time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: ends.Add(-825 * 24 * time.Hour), NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cert.pem")
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDoctor_WarnsBeforeACredentialOfTheSettingsEnds(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Date(2030, 1, 31, 10, 0, 0, 0, time.UTC)
	later, soon, ended := certificateFile(t, now.Add(31*day)), certificateFile(t, now.Add(29*day)), certificateFile(t, now.Add(-day))
	noFile := "TEMPORAL_CONFIG_FILE=" + filepath.Join(t.TempDir(), "none.toml")
	odl := []string{noFile, "BERTH_ODL_URL=https://127.0.0.1:1"}
	token := func(ends time.Time) string {
		claims := fmt.Sprintf(`{"exp":%d}`, ends.Unix())
		return "TEMPORAL_API_KEY=e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for name, c := range map[string]struct {
		environ     []string
		state, want string
	}{
		"nothing":     {[]string{noFile}, "-", "no certificate and no token"},
		"enough time": {append(odl, "BERTH_ODL_CA_FILE="+later), "ok", "the first to expire: BERTH_ODL_CA_FILE (" + later + ") expires at 2030-03-03T10:00:00Z"},
		"a month":     {append(odl, "BERTH_ODL_CA_FILE="+soon), "WARN", "BERTH_ODL_CA_FILE (" + soon + ") expires at 2030-03-01T10:00:00Z, in 696h0m0s; replace it"},
		"ended":       {append(odl, "BERTH_ODL_CA_FILE="+ended), "FAIL", "BERTH_ODL_CA_FILE (" + ended + ") has expired at 2030-01-30T10:00:00Z"},
		"ended and soon": {
			append(odl, "BERTH_ODL_CA_FILE="+ended, "BERTH_DATABASE_URL=postgres://u@h/d?sslrootcert="+soon), "FAIL",
			"has expired at 2030-01-30T10:00:00Z; sslrootcert of BERTH_DATABASE_URL (" + soon + ") expires at",
		},
		"client certificate of Temporal": {[]string{noFile, "TEMPORAL_TLS_CLIENT_CERT_PATH=" + soon}, "WARN", "TEMPORAL_TLS_CLIENT_CERT_PATH ("},
		"own certificate":                {[]string{noFile, "BERTH_TLS_CERT_FILE=" + soon, "BERTH_TLS_KEY_FILE=/k"}, "WARN", "BERTH_TLS_CERT_FILE ("},
		"token":                          {[]string{noFile, token(now.Add(31 * day))}, "ok", "TEMPORAL_API_KEY expires at"},
		"token that ends soon":           {[]string{noFile, token(now.Add(day))}, "WARN", "TEMPORAL_API_KEY expires at 2030-02-01T10:00:00Z, in 24h0m0s"},
		"missing file":                   {append(odl, "BERTH_ODL_CA_FILE=/nonexistent"), "WARN", "BERTH_ODL_CA_FILE cannot be read: open /nonexistent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newSession(t, now, c.environ...)

			found, err := checkCredentials(t.Context(), s)

			row, failure := resultRow("credentials", found, err)
			if text, _ := row["found"].(string); row["state"] != c.state || !strings.Contains(text, c.want) {
				t.Errorf("got %v, want the state %s and the text %q", row, c.state, c.want)
			}
			if advice, _ := row["next"].(string); c.state == "FAIL" &&
				(!strings.Contains(advice, "deploy/certificates.sh") || cli.ExitCode(failure) != cli.ExitOther) {
				t.Errorf("got the advice %q and error %v, want the script that renews certificates", advice, failure)
			}
		})
	}
}
