package diagnosis

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"berth/starter/cli"
)

// checkKeystone checks that Keystone gives berth's service user a token.
func checkKeystone(ctx context.Context, s *cli.Session) (string, error) {
	if !s.UsesKeystone() {
		return "", fmt.Errorf("%w: BERTH_AUTH is not keystone", errNotConfigured)
	}
	service := s.Service
	domain := func(name string) cli.Object { return cli.Object{"name": name} }
	raw, err := json.Marshal(cli.Object{"auth": cli.Object{
		"identity": cli.Object{"methods": []string{"password"}, "password": cli.Object{
			"user": cli.Object{"name": service.Username, "password": service.Password, "domain": domain(service.UserDomain)}}},
		"scope": cli.Object{"project": cli.Object{"name": service.Project, "domain": domain(service.ProjectDomain)}}}})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", strings.TrimRight(service.AuthURL, "/")+"/auth/tokens", bytes.NewReader(raw))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	transport, err := transportWithCA(service.CAFile)
	if err != nil {
		return "", err
	}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return "", cli.Unavailable("Keystone at "+service.AuthURL, "The API answers 503 to callers whose token it has not validated before. Are OS_AUTH_URL and OS_CACERT correct?", err)
	}
	_ = res.Body.Close()
	switch res.StatusCode {
	case http.StatusCreated:
		return service.AuthURL + " accepts berth's service user", nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return "", cli.Errorf(cli.ExitDenied, "Set OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME and their domains.", "Keystone rejects berth's service user (%d)", res.StatusCode)
	default:
		return "", cli.Errorf(cli.ExitUnavailable, "Does OS_AUTH_URL end in /v3?", "Keystone at %s answers %d", service.AuthURL, res.StatusCode)
	}
}
