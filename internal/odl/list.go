package odl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"berth/internal/text"
)

// The maximum number of levels of a JSON value in a list, and of its keys and values in each MiB. Decoding a
// value needs much more memory than its text if it has many short keys and values. berth's APIs have the same
// limits for the objects that they send to the controller.
const (
	maxDepth  = 64
	maxTokens = 100_000
)

// ErrUnexpectedBody means that the body of a response with status 200 does not have the expected form.
var ErrUnexpectedBody = errors.New("unexpected response body")

// List reads a collection and calls the function `each` for every object as it arrives, so that memory does
// not grow with the collection. `key` is the name of the list in the response; a slash separates nested
// names. The timeout applies to the arrival of each piece of the response. The time that `each` takes does
// not count. A Response with status 200 and no Failure means that the whole list was read. List returns an
// error if `each` returned an error, if the body is unexpected (ErrUnexpectedBody), or if ctx ended.
func (c *Client) List(
	ctx context.Context,
	path, key string,
	each func(json.RawMessage) error,
) (Response, error) {
	if wait, last := c.breaker.admit(ctx); wait > 0 {
		return breakerOpenResponse(wait, last), nil
	}
	a, err := c.list(ctx, c.base+path, key, each)
	if cause := ctx.Err(); cause != nil && (err != nil || a.Failure != "") {
		return Response{}, fmt.Errorf("GET %s: %w", path, cause)
	}
	c.breaker.report(ctx, controllerFailure(a))
	return a, err
}

func (c *Client) list(
	ctx context.Context,
	target, key string,
	each func(json.RawMessage) error,
) (Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var p requestProgress
	r, err := c.newRequest(p.trace(ctx), http.MethodGet, target, nil)
	if err != nil {
		return Response{Failure: FailureInvalidRequest, Detail: err.Error()}, nil
	}
	w := newStallDetector(c.config.Timeout, cancel)
	defer w.stop()
	resp, err := c.http.Do(r)
	if err != nil {
		return w.failureResponse(ctx, &p, err), nil
	}
	defer func() { _ = resp.Body.Close() }()
	a := Response{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	w.body = resp.Body
	if a.Status != http.StatusOK {
		a.Body, err = io.ReadAll(io.LimitReader(w, MaxObject))
	} else {
		err = decodeEnvelope(w, key, each)
	}
	if w.readErr != nil {
		return w.failureResponse(ctx, &p, w.readErr), nil
	}
	return a, err
}

// decodeEnvelope decodes {"key": [object, …]}, which may be nested in further objects. decodeEnvelope skips
// all other keys.
func decodeEnvelope(w *stallDetector, key string, each func(json.RawMessage) error) error {
	d := json.NewDecoder(w)
	found, err := decodeLevel(w, d, strings.Split(key, "/"), each)
	if err == nil && !found {
		return fmt.Errorf("%w: no %q", ErrUnexpectedBody, key)
	}
	return err
}

func decodeLevel(
	w *stallDetector,
	d *json.Decoder,
	path []string,
	each func(json.RawMessage) error,
) (found bool, err error) {
	if err := expectDelim(d, '{'); err != nil {
		return false, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return false, unexpectedBody(err)
		}
		switch {
		case name != path[0]:
			err = decodeValue(w, d, func(json.RawMessage) error { return nil })
		case len(path) == 1:
			found, err = true, decodeArray(w, d, each)
		default:
			found, err = decodeLevel(w, d, path[1:], each)
		}
		if err != nil {
			return false, err
		}
	}
	return found, expectDelim(d, '}')
}

func decodeArray(w *stallDetector, d *json.Decoder, each func(json.RawMessage) error) error {
	if err := expectDelim(d, '['); err != nil {
		return err
	}
	for d.More() {
		if err := decodeValue(w, d, each); err != nil {
			return err
		}
	}
	return expectDelim(d, ']')
}

func expectDelim(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err == nil && got != want {
		err = fmt.Errorf("found the JSON token %v instead of %v", got, want)
	}
	return unexpectedBody(err)
}

func unexpectedBody(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnexpectedBody, err)
}

// decodeValue decodes one JSON value of at most MaxObject bytes and calls the function `each` with it.
func decodeValue(w *stallDetector, d *json.Decoder, each func(json.RawMessage) error) error {
	w.budget = MaxObject
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return unexpectedBody(err)
	}
	w.budget = MaxObject
	w.stop()
	if err := text.CheckJSONCost(raw, maxDepth, maxTokens*(1+len(raw)>>20)); err != nil {
		return unexpectedBody(fmt.Errorf("a value is %w", err))
	}
	return each(raw)
}

// stallDetector reads a response body of any length. stallDetector cancels the request if no data arrives
// within the timeout.
type stallDetector struct {
	body    io.Reader
	timeout time.Duration
	timer   *time.Timer
	expired atomic.Bool
	budget  int64 // bytes that the current value may still have
	readErr error // the error that ended the connection
}

var errValueTooLong = errors.New("a JSON value in the response is too long")

func newStallDetector(limit time.Duration, give func()) *stallDetector {
	w := &stallDetector{timeout: limit, budget: MaxObject}
	w.timer = time.AfterFunc(limit, func() {
		w.expired.Store(true)
		give()
	})
	return w
}

// stop stops the timer of the timeout until the next Read.
func (w *stallDetector) stop() { w.timer.Stop() }

// Read implements io.Reader.
func (w *stallDetector) Read(p []byte) (int, error) {
	if w.budget <= 0 {
		return 0, errValueTooLong
	}
	w.timer.Reset(w.timeout)
	n, err := w.body.Read(p[:min(int64(len(p)), w.budget)])
	w.stop()
	w.budget -= int64(n)
	if err != nil && err != io.EOF {
		w.readErr = err
	}
	return n, err
}

// failureResponse returns the result of requestProgress.failureResponse, but with FailureTimeout if the
// detector cancelled the request.
func (w *stallDetector) failureResponse(ctx context.Context, p *requestProgress, err error) Response {
	a := p.failureResponse(ctx, err)
	if w.expired.Load() && a.Failure == FailureReset {
		a.Failure, a.Detail = FailureTimeout, "no data for "+w.timeout.String()
	}
	return a
}
