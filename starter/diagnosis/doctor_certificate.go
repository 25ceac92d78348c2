package diagnosis

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"berth/starter/cli"
)

// minCertificateTime is the time before the expiry of the API's certificate from which on doctor warns.
const minCertificateTime = 7 * 24 * time.Hour

// checkCertificate warns if the certificate of the API expires soon. If a reverse proxy serves HTTPS for the
// API, the certificate is that of the proxy.
func checkCertificate(ctx context.Context, s *cli.Session) (string, error) {
	if !strings.HasPrefix(s.API.BaseURL, "https://") {
		return "", fmt.Errorf("%w: the API at %s has no TLS", errNotConfigured, s.URL)
	}
	req, err := http.NewRequestWithContext(ctx, "GET", s.API.BaseURL+"/healthz", nil)
	if err != nil {
		return "", err
	}
	res, err := s.API.HTTP.Do(req)
	if err != nil {
		return "", cli.Unavailable("the API at "+s.URL, "The check API shows what is wrong.", err)
	}
	_ = res.Body.Close()
	if res.TLS == nil || len(res.TLS.PeerCertificates) == 0 {
		return "", fmt.Errorf("%w: the connection to the API has no certificate", errNotConfigured)
	}
	expiry := res.TLS.PeerCertificates[0].NotAfter
	left := expiry.Sub(s.Now())
	found := fmt.Sprintf("the certificate of %s expires at %s, in %s",
		s.URL, expiry.UTC().Format(time.RFC3339), left.Round(time.Minute))
	if left < minCertificateTime {
		return "", fmt.Errorf("%w: %s; replace the files of BERTH_TLS_CERT_FILE and BERTH_TLS_KEY_FILE",
			errWarning, found)
	}
	return found, nil
}
