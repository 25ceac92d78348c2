package credential_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/contrib/envconfig"

	"berth/internal/config"
	"berth/internal/credential"
)

var (
	year2030 = time.Date(2030, 1, 31, 10, 0, 0, 0, time.UTC)
	year2031 = time.Date(2031, 1, 31, 10, 0, 0, 0, time.UTC)
)

const day = 24 * time.Hour

// certificate returns a certificate in PEM that is valid for a hundred days and ends at the given time.
func certificate(t *testing.T, ends time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: ends.Add(-100 * day), NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func validUntil(ends time.Time) credential.Validity {
	return credential.Validity{NotBefore: ends.Add(-100 * day), NotAfter: ends}
}

func TestOfFiles_FirstCertificateOrLastAuthorityThatEnds(t *testing.T) {
	t.Parallel()
	first, last := certificate(t, year2030), certificate(t, year2031)
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("key")})
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("broken")})
	for name, c := range map[string]struct {
		content     [][]byte
		authorities bool
		want        credential.Validity
		wantError   string
	}{
		"one certificate":              {[][]byte{first}, false, validUntil(year2030), ""},
		"with an intermediate one":     {[][]byte{last, first}, false, validUntil(year2030), ""},
		"before an intermediate one":   {[][]byte{first, last}, false, validUntil(year2030), ""},
		"with its key":                 {[][]byte{key, first}, false, validUntil(year2030), ""},
		"one authority":                {[][]byte{first}, true, validUntil(year2030), ""},
		"authority before its former":  {[][]byte{last, first}, true, validUntil(year2031), ""},
		"authority after its former":   {[][]byte{first, last}, true, validUntil(year2031), ""},
		"authority and a broken block": {[][]byte{broken, first}, true, validUntil(year2030), ""},
		"key only":                     {[][]byte{key}, false, credential.Validity{}, "no certificate"},
		"empty file":                   {nil, true, credential.Validity{}, "no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "cert.pem")
			if err := os.WriteFile(path, bytes.Join(c.content, nil), 0o600); err != nil {
				t.Fatal(err)
			}
			file := config.CertificateFile{Setting: "S", Path: path, Authorities: c.authorities}

			all := credential.OfFiles([]config.CertificateFile{file})

			got, err := all[0].Validity()
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("validity (-want +got):\n%s", d)
			}
			if (err != nil) != (c.wantError != "") || err != nil && !strings.Contains(err.Error(), c.wantError) {
				t.Errorf("got error %v, want %q", err, c.wantError)
			}
			if all[0].Setting != "S" || all[0].File != path {
				t.Errorf("got the setting %s and the file %s, want S and %s", all[0].Setting, all[0].File, path)
			}
		})
	}
	missing := credential.OfFiles([]config.CertificateFile{{Setting: "S", Path: "/nonexistent"}})
	if _, err := missing[0].Validity(); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("missing file: got error %v, want one that names the file", err)
	}
}

// variables are an environment.
type variables map[string]string

func (v variables) Environ() (all []string) {
	for name, value := range v {
		all = append(all, name+"="+value)
	}
	return all
}

func (v variables) LookupEnv(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// token returns a JSON Web Token with the claims.
func token(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestOfTemporal_VariablesAndFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert := filepath.Join(dir, "cert.pem")
	profile := filepath.Join(dir, "temporal.toml")
	if err := os.WriteFile(cert, certificate(t, year2030), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := "[profile.default]\napi_key = \"" + token(`{"exp":1927620000}`) + "\"\n"
	if err := os.WriteFile(profile, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none.toml")
	for name, c := range map[string]struct {
		env  variables
		want map[string]credential.Validity // by setting and file
	}{
		"nothing": {variables{"TEMPORAL_CONFIG_FILE": none}, map[string]credential.Validity{}},
		"certificates in files": {
			variables{
				"TEMPORAL_CONFIG_FILE":             none,
				"TEMPORAL_TLS_CLIENT_CERT_PATH":    cert,
				"TEMPORAL_TLS_SERVER_CA_CERT_PATH": cert,
			},
			map[string]credential.Validity{
				"TEMPORAL_TLS_CLIENT_CERT_PATH " + cert:    validUntil(year2030),
				"TEMPORAL_TLS_SERVER_CA_CERT_PATH " + cert: validUntil(year2030),
			},
		},
		"certificate in a variable": {
			variables{
				"TEMPORAL_CONFIG_FILE":          none,
				"TEMPORAL_TLS_CLIENT_CERT_DATA": string(certificate(t, year2031)),
			},
			map[string]credential.Validity{"TEMPORAL_TLS_CLIENT_CERT_DATA ": validUntil(year2031)},
		},
		"token in the file": {
			variables{"TEMPORAL_CONFIG_FILE": profile},
			map[string]credential.Validity{"TEMPORAL_API_KEY ": {NotAfter: time.Unix(1927620000, 0)}},
		},
		"token in a variable": {
			variables{"TEMPORAL_CONFIG_FILE": none, "TEMPORAL_API_KEY": token(`{"iat":1e9,"exp":1927620000.5}`)},
			map[string]credential.Validity{
				"TEMPORAL_API_KEY ": {NotBefore: time.Unix(1e9, 0), NotAfter: time.Unix(1927620000, 0)},
			},
		},
		"token without an end": {
			variables{"TEMPORAL_CONFIG_FILE": none, "TEMPORAL_API_KEY": token(`{"sub":"api"}`)},
			map[string]credential.Validity{"TEMPORAL_API_KEY ": {}},
		},
		"another token": {
			variables{"TEMPORAL_CONFIG_FILE": none, "TEMPORAL_API_KEY": "s3cret"},
			map[string]credential.Validity{"TEMPORAL_API_KEY ": {}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := credential.OfTemporal(envconfig.LoadClientConfigProfileOptions{EnvLookup: c.env})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]credential.Validity{}
			for _, one := range all {
				if got[one.Setting+" "+one.File], err = one.Validity(); err != nil {
					t.Error(err)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("credentials (-want +got):\n%s", d)
			}
		})
	}
}

func TestValidity_ExpiresSoonInItsLastThirdOrMonth(t *testing.T) {
	t.Parallel()
	now := year2030
	for name, c := range map[string]struct {
		begins, ends time.Duration // from now
		soon, ended  bool
	}{
		"825 days, 31 left": {-794 * day, 31 * day, false, false},
		"825 days, 29 left": {-796 * day, 29 * day, true, false},
		"3 days, 2 left":    {-1 * day, 2 * day, false, false},
		"3 days, hours left": {
			begins: -3*day + 10*time.Hour,
			ends:   10 * time.Hour,
			soon:   true,
		},
		"ended now": {-10 * day, 0, true, true},
		"ended":     {-10 * day, -day, true, true},
	} {
		v := credential.Validity{NotBefore: now.Add(c.begins), NotAfter: now.Add(c.ends)}
		if soon, ended := v.ExpiresSoon(now), v.Expired(now); soon != c.soon || ended != c.ended {
			t.Errorf("%s: got %t, %t, want it to end soon: %t, and to have ended: %t", name, soon, ended, c.soon, c.ended)
		}
	}
	endless, unknown := credential.Validity{}, credential.Validity{NotAfter: now.Add(20 * day)}
	if endless.ExpiresSoon(now) || endless.Expired(now) {
		t.Error("a credential that never ends: got one that ends, want none")
	}
	if !unknown.ExpiresSoon(now) || unknown.Expired(now) {
		t.Error("a token of unknown age with 20 days left: want it to end soon")
	}
}
