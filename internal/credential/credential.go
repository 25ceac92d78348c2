// Package credential finds out how long the certificates and tokens are valid with which a process of berth
// authenticates itself to other services, and by which it recognizes them.
package credential

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/contrib/envconfig"

	"berth/internal/config"
)

// Credential is a certificate, a file with certificate authorities, or a token.
type Credential struct {
	Setting  string // that has the credential or names its file, for example BERTH_ODL_CA_FILE
	File     string // empty: the setting has the credential itself
	Reloaded bool   // the process reads the file again when it changes
	read     func() (Validity, error)
}

// Validity reads the credential and returns for how long it is valid.
func (c Credential) Validity() (Validity, error) { return c.read() }

// Validity is the time for which a credential is valid.
type Validity struct {
	NotBefore time.Time // zero: unknown
	NotAfter  time.Time // zero: never, or unknown
}

// maxNotice is the longest time before the expiry from which on a credential expires soon.
const maxNotice = 30 * 24 * time.Hour

// ExpiresSoon reports whether the credential needs a successor: it expires within 30 days, or within the last
// third of its time if this is shorter, because programs usually renew such a credential later.
func (v Validity) ExpiresSoon(now time.Time) bool {
	notice := maxNotice
	if !v.NotBefore.IsZero() {
		notice = min(notice, v.NotAfter.Sub(v.NotBefore)/3)
	}
	return !v.NotAfter.IsZero() && v.NotAfter.Sub(now) < notice
}

// Expired reports whether the credential is not valid any more.
func (v Validity) Expired(now time.Time) bool { return !v.NotAfter.IsZero() && !now.Before(v.NotAfter) }

// OfFiles returns the credentials in the files.
func OfFiles(files []config.CertificateFile) []Credential {
	all := make([]Credential, len(files))
	for i, f := range files {
		all[i] = Credential{
			Setting:  f.Setting,
			File:     f.Path,
			Reloaded: f.Reloaded,
			read: func() (Validity, error) {
				raw, err := os.ReadFile(f.Path)
				if err != nil {
					return Validity{}, err
				}
				v, err := parseCertificates(raw, f.Authorities)
				if err != nil {
					err = fmt.Errorf("%s: %w", f.Path, err)
				}
				return v, err
			},
		}
	}
	return all
}

// OfTemporal returns the credentials of a client of Temporal: those of its variables and of its file with
// settings.
func OfTemporal(options envconfig.LoadClientConfigProfileOptions) ([]Credential, error) {
	profile, err := envconfig.LoadClientConfigProfile(options)
	if err != nil {
		return nil, fmt.Errorf("load the settings of Temporal's client: %w", err)
	}
	var all []Credential
	if t := profile.TLS; t != nil && !t.Disabled {
		all = append(all, temporalCertificates("TEMPORAL_TLS_CLIENT_CERT", t.ClientCertPath, t.ClientCertData, false)...)
		all = append(all, temporalCertificates("TEMPORAL_TLS_SERVER_CA_CERT", t.ServerCACertPath, t.ServerCACertData, true)...)
	}
	if token := profile.APIKey; token != "" {
		all = append(all, Credential{
			Setting: "TEMPORAL_API_KEY",
			read:    func() (Validity, error) { return parseToken(token), nil },
		})
	}
	return all, nil
}

// temporalCertificates returns the certificates that one of two settings of Temporal has: the path of their
// file, or the certificates themselves.
func temporalCertificates(setting, path string, data []byte, authorities bool) []Credential {
	switch {
	case path != "":
		return OfFiles([]config.CertificateFile{
			{Setting: setting + "_PATH", Path: path, Authorities: authorities},
		})
	case len(data) > 0:
		return []Credential{{
			Setting: setting + "_DATA",
			read:    func() (Validity, error) { return parseCertificates(data, authorities) },
		}}
	default:
		return nil
	}
}

// errNoCertificate means that a text contains no certificate in PEM.
var errNoCertificate = errors.New("no certificate")

// parseCertificates returns the validity of the certificates in PEM. A certificate with its intermediate ones
// is valid until the first of them expires. Of several certificate authorities, the one counts that is valid
// for the longest, because a file may also contain the former one.
func parseCertificates(raw []byte, authorities bool) (v Validity, err error) {
	err = errNoCertificate
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, failed := x509.ParseCertificate(block.Bytes)
		if failed != nil {
			continue // as x509.CertPool does
		}
		if err != nil || cert.NotAfter.After(v.NotAfter) == authorities {
			v, err = Validity{cert.NotBefore, cert.NotAfter}, nil
		}
	}
	return v, err
}

// parseToken returns the validity of a JSON Web Token, or the zero value for any other token.
func parseToken(token string) (v Validity) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return v
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return v
	}
	var claims struct {
		IssuedAt float64 `json:"iat"`
		Expires  float64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Expires <= 0 {
		return v
	}
	v.NotAfter = time.Unix(int64(claims.Expires), 0)
	if claims.IssuedAt > 0 {
		v.NotBefore = time.Unix(int64(claims.IssuedAt), 0)
	}
	return v
}
