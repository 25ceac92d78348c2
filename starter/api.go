package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// object is what the API shows of something, in the API's own words.
type object = map[string]any

// api speaks to the API's routes.
type api struct {
	base, token string
	http        *http.Client
}

func newAPI(s *settings) *api {
	return &api{base: s.url, token: s.token, http: &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// refusal is an answer of the API that is not a success.
type refusal struct {
	status    int
	kind      string // Neutron's type or Placement's code; may be empty
	message   string
	requestID string
}

func (r *refusal) Error() string {
	if r.kind == "" || strings.HasSuffix(r.kind, "undefined_code") {
		return fmt.Sprintf("%s (%d)", r.message, r.status)
	}
	return fmt.Sprintf("%s (%d %s)", r.message, r.status, r.kind)
}

// do sends one request and decodes the answer into out, if both have a body.
func (a *api) do(ctx context.Context, method, path string, in, out any, headers ...string) error {
	_, err := a.send(ctx, method, path, in, out, headers...)
	return err
}

// send is do for those who need the status of a success too.
func (a *api) send(ctx context.Context, method, path string, in, out any, headers ...string) (int, error) {
	req, err := a.request(ctx, method, path, in, headers)
	if err != nil {
		return 0, err
	}
	res, err := a.http.Do(req)
	if err != nil {
		if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
			return 0, ctx.Err()
		}
		return 0, away("the API at "+a.base, "Is it running? Start it with `make run`, or set --url.", err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return 0, away("the API at "+a.base, "It went away in the middle of its answer; whether it did what was asked is open.", err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return res.StatusCode, a.trouble(res, raw)
	}
	if out == nil || len(raw) == 0 {
		return res.StatusCode, nil
	}
	if err := decode(raw, out); err != nil {
		return res.StatusCode, fail(exitOther, "Is --url a berth API?", "%s %s answered something that is not JSON", method, a.base+path)
	}
	return res.StatusCode, nil
}

func (a *api) request(ctx context.Context, method, path string, in any, headers []string) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return nil, usage("--url %q is not a URL", a.base)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("X-Auth-Token", a.token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(path, "/placement") {
		req.Header.Set("OpenStack-API-Version", "placement 1.39")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req, nil
}

// trouble is the one table from an HTTP status to an exit code and a hint.
func (a *api) trouble(res *http.Response, raw []byte) error {
	r := refusalOf(res, raw)
	t := &trouble{code: exitOther, what: "the API refused", err: r}
	switch r.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		t.next = "The request was understood but is not valid; change what the message names."
	case http.StatusUnauthorized:
		t.code, t.next = exitDenied, "Set --token or BERTH_TOKEN."
	case http.StatusForbidden:
		t.code, t.next = exitDenied, "This token may not do it; use one of the project that owns the object, or admin."
	case http.StatusNotFound:
		t.code = exitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		t.code = exitConflict
		if strings.HasSuffix(r.kind, "concurrent_update") || r.status == http.StatusPreconditionFailed {
			t.next = "Somebody was faster: read it again, then repeat with the new generation or revision."
		}
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		t.code, t.next = exitUnavailable, "`starter doctor` tells which part is away."
	default:
		t.next = "The server's log has it as " + r.requestID + "."
		if r.requestID == "" {
			t.next = "Is --url a berth API?"
		}
	}
	return t
}

// refusalOf reads the error shapes of Neutron, Placement, Blazar, the agents' gateway and readiness.
func refusalOf(res *http.Response, raw []byte) *refusal {
	r := &refusal{status: res.StatusCode, requestID: res.Header.Get("X-Openstack-Request-Id")}
	var shapes struct {
		NeutronError struct{ Type, Message string }
		Errors       []struct{ Detail, Code string }
		ErrorMessage string `json:"error_message"`
		Message      string
		Error        json.RawMessage
		Checks       map[string]string // of readiness
	}
	_ = json.Unmarshal(raw, &shapes)
	var inner struct{ Type, Message string }
	_ = json.Unmarshal(shapes.Error, &inner)
	switch {
	case shapes.NeutronError.Message != "":
		r.kind, r.message = shapes.NeutronError.Type, shapes.NeutronError.Message
	case len(shapes.Errors) > 0:
		r.kind, r.message = shapes.Errors[0].Code, placementDetail(shapes.Errors[0].Detail)
	case shapes.ErrorMessage != "":
		r.message = shapes.ErrorMessage
	case inner.Message != "":
		r.kind, r.message = inner.Type, inner.Message
	case shapes.Message != "":
		r.message = shapes.Message
	case len(shapes.Checks) > 0:
		r.message = unready(shapes.Checks)
	default:
		r.message = http.StatusText(res.StatusCode)
	}
	r.message = strings.TrimSpace(r.message)
	return r
}

// placementDetail drops the fixed explanation that Placement puts before the message.
func placementDetail(detail string) string {
	if _, message, found := strings.Cut(detail, "\n\n"); found && strings.TrimSpace(message) != "" {
		return strings.TrimSpace(message)
	}
	return detail
}

func decode(raw []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(out)
}

// refused tells whether an error is a refusal with that HTTP status.
func refused(err error, status int) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == status
}
