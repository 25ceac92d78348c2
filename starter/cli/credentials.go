package cli

import (
	"slices"

	"go.temporal.io/sdk/contrib/envconfig"

	"berth/internal/credential"
)

// Credentials returns the certificates and tokens of the settings: those of a process of berth with the same
// settings, and those of starter.
func (s *Session) Credentials() ([]credential.Credential, error) {
	temporal, err := credential.OfTemporal(envconfig.LoadClientConfigProfileOptions{
		EnvLookup:   s.Env,
		DisableFile: s.developmentServer,
	})
	if err != nil {
		return nil, err
	}
	files := append(s.CertificateFiles(s.Env.Environ()), s.Client.CertificateFiles()...)
	return slices.Concat(credential.OfFiles(files), temporal), nil
}
