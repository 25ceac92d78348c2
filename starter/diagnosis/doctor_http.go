package diagnosis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"berth/starter/cli"
)

func checkODL(ctx context.Context, s *cli.Session) (string, error) {
	if s.ODL.URL == "" {
		return "", fmt.Errorf("%w: BERTH_ODL_URL is not set", errNotConfigured)
	}
	status, err := requestStatus(ctx, s.ODL.URL+"/networks", s.ODL.Username, s.ODL.Password, s.ODL.CAFile)
	switch {
	case err != nil:
		return "", cli.Unavailable("OpenDaylight at "+s.ODL.URL, "Journal entries wait until it is back. Is BERTH_ODL_URL correct?", err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "", cli.Errorf(cli.ExitDenied, "Set BERTH_ODL_USERNAME and BERTH_ODL_PASSWORD.", "OpenDaylight rejects the user (%d)", status)
	case status != http.StatusOK:
		return "", cli.Errorf(cli.ExitUnavailable, "Does BERTH_ODL_URL end in /controller/nb/v2/neutron?", "OpenDaylight at %s answers %d", s.ODL.URL, status)
	}
	return s.ODL.URL + " answers", nil
}

func checkNova(ctx context.Context, s *cli.Session) (string, error) {
	if s.Nova.URL == "" {
		return "", fmt.Errorf("%w: BERTH_NOVA_URL is not set", errNotConfigured)
	}
	if _, err := requestStatus(ctx, s.Nova.URL, "", "", ""); err != nil {
		return "", cli.Unavailable("Nova at "+s.Nova.URL, "Events for Nova wait until it is back. Is BERTH_NOVA_URL correct?", err)
	}
	return s.Nova.URL + " answers", nil
}

// requestStatus sends a GET request and returns the HTTP status of the answer.
func requestStatus(ctx context.Context, url, user, password, ca string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return 0, err
	}
	if user != "" {
		req.SetBasicAuth(user, password)
	}
	transport, err := transportWithCA(ca)
	if err != nil {
		return 0, err
	}
	defer transport.CloseIdleConnections()
	c := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	_ = res.Body.Close()
	return res.StatusCode, nil
}

// transportWithCA returns an HTTP transport that trusts the certificate authorities of a PEM file and of the system.
func transportWithCA(ca string) (*http.Transport, error) {
	if ca == "" {
		return &http.Transport{}, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no certificate", ca)
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, nil
}
