package diagnosis

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"berth/starter/cli"
)

// checkKeystone checks that Keystone gives berth's service user a token, and lets the service user validate
// tokens.
func checkKeystone(ctx context.Context, s *cli.Session) (string, error) {
	if !s.UsesKeystone() {
		return "", fmt.Errorf("%w: BERTH_AUTH is not keystone", errNotConfigured)
	}
	transport, err := transportWithCA(s.Service.CAFile)
	if err != nil {
		return "", err
	}
	defer transport.CloseIdleConnections()
	k := keystone{session: s, client: &http.Client{
		Transport: transport,
		// as berth's processes do: a redirect would send the password to another server
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	token, err := k.login(ctx)
	if err != nil {
		return "", err
	}
	if err := k.validate(ctx, token); err != nil {
		return "", err
	}
	return s.Service.AuthURL + " accepts berth's service user", nil
}

// keystone sends the requests of berth's service user to Keystone.
type keystone struct {
	client  *http.Client
	session *cli.Session
}

func (k keystone) service() service {
	return service{
		name:        "Keystone",
		url:         k.session.Service.AuthURL,
		setting:     "OS_AUTH_URL",
		path:        "/v3",
		credentials: "OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME and their domains",
		ca:          "OS_CACERT",
		waiting:     "The API answers 503 to callers whose token it has not validated before.",
	}
}

// login returns a new token of the service user.
func (k keystone) login(ctx context.Context) (string, error) {
	user, domain := k.session.Service, func(name string) cli.Object { return cli.Object{"name": name} }
	raw, err := json.Marshal(cli.Object{"auth": cli.Object{
		"identity": cli.Object{"methods": []string{"password"}, "password": cli.Object{
			"user": cli.Object{
				"name":     user.Username,
				"password": user.Password,
				"domain":   domain(user.UserDomain),
			}}},
		"scope": cli.Object{
			"project": cli.Object{"name": user.Project, "domain": domain(user.ProjectDomain)},
		}}})
	if err != nil {
		return "", err
	}
	res, err := k.send(ctx, http.MethodPost, bytes.NewReader(raw),
		http.Header{"Content-Type": {"application/json"}})
	if err != nil {
		return "", err
	}
	switch res.StatusCode {
	case http.StatusCreated:
		return res.Header.Get("X-Subject-Token"), nil
	default:
		return "", k.service().refused(res.StatusCode)
	}
}

// validate lets Keystone validate the token of the service user.
func (k keystone) validate(ctx context.Context, token string) error {
	res, err := k.send(ctx, http.MethodGet, nil,
		http.Header{"X-Auth-Token": {token}, "X-Subject-Token": {token}})
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusForbidden:
		return cli.Errorf(cli.ExitDenied, "Give the user the role service in the project.",
			"Keystone does not let berth's service user %s validate tokens", k.session.Service.Username)
	case res.StatusCode != http.StatusOK:
		return k.service().refused(res.StatusCode)
	}
	return nil
}

// send sends a request to the resource of tokens. The body of the response that send returns is closed.
func (k keystone) send(
	ctx context.Context,
	method string,
	body io.Reader,
	header http.Header,
) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method,
		strings.TrimRight(k.session.Service.AuthURL, "/")+"/auth/tokens", body)
	if err != nil {
		return nil, err
	}
	req.Header = header
	res, err := k.client.Do(req)
	if err != nil {
		return nil, k.service().unreachable(err)
	}
	return res, res.Body.Close()
}
