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
	controller := service{
		name:        "OpenDaylight",
		url:         s.ODL.URL,
		setting:     "BERTH_ODL_URL",
		path:        "/controller/nb/v2/neutron",
		credentials: "BERTH_ODL_USERNAME and BERTH_ODL_PASSWORD",
		ca:          "BERTH_ODL_CA_FILE",
		waiting:     "Journal entries wait until it is back.",
	}
	status, err := requestStatus(ctx, s.ODL.URL+"/networks", s.ODL.Username, s.ODL.Password, s.ODL.CAFile)
	switch {
	case err != nil:
		return "", controller.unreachable(err)
	case status != http.StatusOK:
		return "", controller.refused(status)
	}
	return s.ODL.URL + " answers", nil
}

// checkNova checks that Nova answers. The request has no token, so the status 401 is a right answer.
func checkNova(ctx context.Context, s *cli.Session) (string, error) {
	if s.Nova.URL == "" {
		return "", fmt.Errorf("%w: BERTH_NOVA_URL is not set", errNotConfigured)
	}
	nova := service{
		name:    "Nova",
		url:     s.Nova.URL,
		setting: "BERTH_NOVA_URL",
		path:    "/v2.1",
		waiting: "Events for Nova wait until it is back.",
	}
	status, err := requestStatus(ctx, s.Nova.URL, "", "", "")
	switch {
	case err != nil:
		return "", nova.unreachable(err)
	case status >= http.StatusBadRequest && status != http.StatusUnauthorized && status != http.StatusForbidden:
		return "", nova.refused(status)
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
	c := http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	_ = res.Body.Close()
	return res.StatusCode, nil
}

// transportWithCA returns an HTTP transport that trusts the certificate authorities of a PEM file and of the
// system.
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
