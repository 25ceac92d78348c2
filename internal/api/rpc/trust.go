package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Trust is how brokers are believed that show a certificate of the authority in the PEM file; nil without one, which means that the
// system's authorities are believed.
func TLSConfig(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
