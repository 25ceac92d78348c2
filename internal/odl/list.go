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
)

// ErrUnreadable means that an answer 200 is not the list that was asked for.
var ErrUnexpectedBody = errors.New("not a list of the controller")

// List asks for a collection and hands its objects to each, one at a time as they arrive, so that a list of any length
// costs no more memory than its largest object. key is the list's envelope, with a slash between one and the next inside. The time-out is for each piece of the answer,
// not for the whole, and does not run while each does. An Answer with status 200 and without trouble means that the list
// was read to its end; an error is one of each, ErrUnreadable, or the end of ctx.
func (c *Client) List(ctx context.Context, path, key string, each func(json.RawMessage) error) (Response, error) {
	if wait, last := c.breaker.admit(ctx); wait > 0 {
		return resting(wait, last), nil
	}
	a, err := c.list(ctx, c.base+path, key, each)
	if cause := ctx.Err(); cause != nil && (err != nil || a.Failure != "") {
		return Response{}, fmt.Errorf("GET %s: %w", path, cause)
	}
	c.breaker.report(ctx, sick(a))
	return a, err
}

func (c *Client) list(ctx context.Context, at, key string, each func(json.RawMessage) error) (Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var p progress
	r, err := c.request(p.trace(ctx), http.MethodGet, at, nil)
	if err != nil {
		return Response{Failure: FailureInvalidRequest, Detail: err.Error()}, nil
	}
	w := newWatchdog(c.config.Timeout, cancel)
	defer w.rest()
	resp, err := c.http.Do(r)
	if err != nil {
		return w.trouble(ctx, &p, err), nil
	}
	defer func() { _ = resp.Body.Close() }()
	a := Response{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	w.body = resp.Body
	if a.Status != http.StatusOK {
		a.Body, err = io.ReadAll(io.LimitReader(w, maxAnswer))
	} else {
		err = decodeList(w, key, each)
	}
	if w.broken != nil {
		return w.trouble(ctx, &p, w.broken), nil
	}
	return a, err
}

// decodeList reads {"key": [object, …]}, or that in further envelopes, with anything else beside it.
func decodeList(w *watchdog, key string, each func(json.RawMessage) error) error {
	d := json.NewDecoder(w)
	found, err := inEnvelope(w, d, strings.Split(key, "/"), each)
	if err == nil && !found {
		return fmt.Errorf("%w: it has no %q", ErrUnexpectedBody, key)
	}
	return err
}

func inEnvelope(w *watchdog, d *json.Decoder, path []string, each func(json.RawMessage) error) (found bool, err error) {
	if err := opens(d, '{'); err != nil {
		return false, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return false, unreadable(err)
		}
		switch {
		case name != path[0]:
			err = object(w, d, func(json.RawMessage) error { return nil })
		case len(path) == 1:
			found, err = true, objects(w, d, each)
		default:
			found, err = inEnvelope(w, d, path[1:], each)
		}
		if err != nil {
			return false, err
		}
	}
	return found, opens(d, '}')
}

func objects(w *watchdog, d *json.Decoder, each func(json.RawMessage) error) error {
	if err := opens(d, '['); err != nil {
		return err
	}
	for d.More() {
		if err := object(w, d, each); err != nil {
			return err
		}
	}
	return opens(d, ']')
}

func opens(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v where %v was due", got, want)
	}
	return unreadable(err)
}

func unreadable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnexpectedBody, err)
}

// object reads one value, of bounded size, and hands it on.
func object(w *watchdog, d *json.Decoder, each func(json.RawMessage) error) error {
	w.budget = maxAnswer
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return unreadable(err)
	}
	w.budget = maxAnswer
	w.rest()
	return each(raw)
}

// watchdog reads a body of any length, piece by piece, and gives up when a piece does not come in time.
type watchdog struct {
	body   io.Reader
	limit  time.Duration
	timer  *time.Timer
	barked atomic.Bool
	budget int64 // bytes that the value being read may still have
	broken error // what ended the connection
}

var errTooLong = errors.New("one value of it is too long")

func newWatchdog(limit time.Duration, give func()) *watchdog {
	w := &watchdog{limit: limit, budget: maxAnswer}
	w.timer = time.AfterFunc(limit, func() {
		w.barked.Store(true)
		give()
	})
	return w
}

// rest lets no time run until the next Read.
func (w *watchdog) rest() { w.timer.Stop() }

// Read is io.Reader's.
func (w *watchdog) Read(p []byte) (int, error) {
	if w.budget <= 0 {
		return 0, errTooLong
	}
	w.timer.Reset(w.limit)
	n, err := w.body.Read(p[:min(int64(len(p)), w.budget)])
	w.rest()
	w.budget -= int64(n)
	if err != nil && err != io.EOF {
		w.broken = err
	}
	return n, err
}

// trouble is progress's, and knows that nothing came for too long.
func (w *watchdog) trouble(ctx context.Context, p *progress, err error) Response {
	a := p.trouble(ctx, err)
	if w.barked.Load() && a.Failure == FailureReset {
		a.Failure, a.Detail = FailureTimeout, "nothing came for "+w.limit.String()
	}
	return a
}
