package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"berth/internal/config"
	"berth/internal/version"
)

// Object is a decoded JSON object of the API. The keys of an Object are the names of the JSON attributes.
type Object = map[string]any

// Client sends requests to the API over HTTP.
type Client struct {
	BaseURL, Token string
	OperatorURL    string // of paths below /operator/; empty: BaseURL
	HTTP           *http.Client
}

// NewClient makes a client that does not follow redirects.
func NewClient(baseURL, token string) *Client {
	return &Client{BaseURL: baseURL, Token: token, HTTP: &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// UseTLS makes the client use the PEM files of the settings for an https URL. UseTLS returns an error if it
// cannot read one of these files.
func (a *Client) UseTLS(files config.Client) error {
	c, err := tlsConfig(files)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c
	a.HTTP.Transport = transport
	return nil
}

// tlsConfig returns the TLS settings of the client: the trusted certificate authorities and the client
// certificate.
func tlsConfig(files config.Client) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if files.CAFile != "" {
		pem, err := os.ReadFile(files.CAFile)
		if err != nil {
			return nil, UsageError("BERTH_CA_FILE: %s", err)
		}
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			c.RootCAs = x509.NewCertPool()
		}
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, UsageError("BERTH_CA_FILE: no certificate in %s", files.CAFile)
		}
	}
	if files.CertFile != "" {
		own, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
		if err != nil {
			return nil, UsageError("BERTH_CLIENT_CERT_FILE, BERTH_CLIENT_KEY_FILE: %s", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// Do sends one request with the body `in` and decodes the answer into `out`. If `in` is nil, the request has
// no body; if `out` is nil, Do ignores the body of the answer. `headers` contains the name of a header, its
// value, the name of the next header, and so on.
func (a *Client) Do(ctx context.Context, method, path string, in, out any, headers ...string) error {
	_, err := a.Send(ctx, method, path, in, out, headers...)
	return err
}

// Send does the same as Do, and also returns the HTTP status of the answer.
func (a *Client) Send(ctx context.Context, method, path string, in, out any, headers ...string) (int, error) {
	req, err := a.newRequest(ctx, method, path, in, headers)
	if err != nil {
		return 0, err
	}
	res, err := a.HTTP.Do(req)
	if err != nil {
		return 0, a.unreachable(ctx, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return 0, Unavailable(
			"the API at "+a.baseURL(path),
			"The connection broke during the answer; the request may or may not have been executed.",
			err,
		)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return res.StatusCode, a.errorOf(res, raw)
	}
	if out == nil || len(raw) == 0 {
		return res.StatusCode, nil
	}
	if err := Decode(raw, out); err != nil {
		return res.StatusCode, Errorf(ExitOther, "Is --url a berth API?",
			"%s %s answered with a body that is not JSON", method, a.baseURL(path)+path)
	}
	return res.StatusCode, nil
}

// unreachable returns the error for a request without an answer.
func (a *Client) unreachable(ctx context.Context, path string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	next := "Is it running? Start it with `make run`, or set --url."
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		next = "Set BERTH_CA_FILE to the certificate authority of the API, and BERTH_URL to a name or address in its certificate."
	}
	return Unavailable("the API at "+a.baseURL(path), next, err)
}

// Copy copies the answer to a GET request to a writer while the answer arrives. Copy has no time limit. It
// returns an error if the answer ends too early.
func (a *Client) Copy(ctx context.Context, path string, to io.Writer) error {
	req, err := a.newRequest(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	endless := *a.HTTP
	endless.Timeout = 0
	res, err := endless.Do(req)
	if err != nil {
		return a.unreachable(ctx, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		return a.errorOf(res, raw)
	}
	if _, err := io.Copy(to, brokenAnswer{res.Body, a.baseURL(path)}); err != nil && ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		return err
	}
	return nil
}

// brokenAnswer is the body of an answer, whose errors have an exit code.
type brokenAnswer struct {
	io.Reader
	url string
}

func (b brokenAnswer) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = Unavailable("the API at "+b.url,
			"The connection broke during the answer, so the output is not complete.", err)
	}
	return n, err
}

// baseURL returns the URL to which the path belongs.
func (a *Client) baseURL(path string) string {
	if a.OperatorURL != "" && strings.HasPrefix(path, "/operator/") {
		return a.OperatorURL
	}
	return a.BaseURL
}

func (a *Client) newRequest(
	ctx context.Context,
	method, path string,
	in any,
	headers []string,
) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.baseURL(path)+path, body)
	if err != nil {
		return nil, UsageError("--url %q is not a URL", a.baseURL(path))
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("X-Auth-Token", a.Token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(path, "/placement") {
		req.Header.Set("OpenStack-API-Version", version.Placement.Name+" "+version.Placement.Newest)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req, nil
}

// Decode decodes JSON. Decode decodes JSON numbers as json.Number, so that no digit is lost.
func Decode(raw []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(out)
}
