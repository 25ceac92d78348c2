package safeurl

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"berth/internal/text"
)

// ErrAnswerTooLarge means that the body of an answer is larger than its client allows, or that decoding it
// would need more memory than its client allows.
var ErrAnswerTooLarge = errors.New("the answer is too large")

const (
	// MaxHeader is the maximum size of the headers of an answer, in bytes.
	MaxHeader = 256 << 10
	// maxErrorBody is the maximum size of an answer without success, in bytes.
	maxErrorBody = 64 << 10
	// smallAnswer is the cost up to which an answer is read while others are read, and largeAnswers the
	// number of those with a higher cost that a client reads at the same time.
	smallAnswer  = 1 << 20
	largeAnswers = 4
)

// Client returns an HTTP client of another service, which sends its requests with a Transport and follows no
// redirects. A request may take the time `timeout`. If `wrap` is not nil, it wraps the transport that sends
// the requests.
func Client(timeout time.Duration, wrap func(http.RoundTripper) http.RoundTripper, maxAnswer int64) *http.Client {
	var next http.RoundTripper = &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        20 * time.Second,
		MaxResponseHeaderBytes: MaxHeader,
	}
	if wrap != nil {
		next = wrap(next)
	}
	return &http.Client{
		Timeout:       timeout,
		Transport:     Transport(next, maxAnswer),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// totalKey is the key of the context value of LimitTotal.
type totalKey struct{}

// LimitTotal returns a context for requests that follow each other, such as those for the pages of a list: a
// Transport allows all their answers together the size and the cost that it otherwise allows one answer.
func LimitTotal(ctx context.Context) context.Context {
	return context.WithValue(ctx, totalKey{}, new(total))
}

// total is what was read of the answers to the requests with one context of LimitTotal.
type total struct{ bytes, cost atomic.Int64 }

// Transport returns a transport that sends a request with the given transport only if CheckPath accepts the
// URL of the request. Reading more than maxAnswer bytes of the body of an answer fails with
// ErrAnswerTooLarge; the bytes are those after decompression. Reading also fails if decoding the body as JSON
// would need more than about twice maxAnswer. LimitTotal applies the limits to several answers together. Few
// large answers are read at the same time; an answer is read until its body is closed.
func Transport(next http.RoundTripper, maxAnswer int64) http.RoundTripper {
	return transport{next, maxAnswer, make(chan struct{}, largeAnswers)}
}

type transport struct {
	next      http.RoundTripper
	maxAnswer int64         // bytes
	large     chan struct{} // a value for each large answer that is read
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := CheckPath(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		err = shortError{err}
	} else {
		read, shared := r.Context().Value(totalKey{}).(*total)
		if !shared {
			read = new(total)
		}
		limit := t.maxAnswer
		if answer.StatusCode >= http.StatusMultipleChoices {
			limit = min(limit, maxErrorBody)
		}
		answer.Body = &limitedBody{
			ReadCloser: answer.Body,
			ctx:        r.Context(),
			limit:      limit,
			read:       read,
			large:      t.large,
		}
	}
	return answer, err
}

// maxError is the maximum length of the text of an error, in characters.
const maxError = 500

// shortError is an error of a request with a text of one line, because package net/http quotes the headers of
// an answer in its errors.
type shortError struct{ error }

func (e shortError) Error() string { return text.OneLine(e.error.Error(), maxError) }

// Unwrap returns the error with the whole text.
func (e shortError) Unwrap() error { return e.error }

// limitedBody is the body of an answer, of which a client reads a limited part.
type limitedBody struct {
	io.ReadCloser
	ctx   context.Context // of the request
	limit int64           // bytes
	read  *total
	meter jsonMeter

	large   chan struct{}
	isLarge bool // the body has put a value into the channel
}

// Read implements io.Reader. It reads one byte more than the limit, to tell whether the body ends there.
func (b *limitedBody) Read(p []byte) (int, error) {
	left := b.limit - b.read.bytes.Load()
	if left < 0 {
		return 0, ErrAnswerTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), left+1)])
	if b.read.bytes.Add(int64(n)) > b.limit {
		return max(n-1, 0), ErrAnswerTooLarge
	}
	if cost := b.read.cost.Add(b.meter.cost(p[:n])); cost > 2*b.limit {
		return 0, ErrAnswerTooLarge
	} else if cost > smallAnswer && !b.isLarge {
		select {
		case b.large <- struct{}{}:
			b.isLarge = true
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	return n, err
}

// Close implements io.Closer.
func (b *limitedBody) Close() error {
	if b.isLarge {
		b.isLarge = false
		<-b.large
	}
	return b.ReadCloser.Close()
}

// jsonMeter estimates the memory for the decoded form of a JSON text that it gets in parts. The values of
// short texts, such as those of empty objects, need much more memory than their text.
type jsonMeter struct{ inString, escaped bool }

// cost returns the estimate for the next part of the text, in bytes.
func (m *jsonMeter) cost(part []byte) (bytes int64) {
	const object, list, value = 1 << 10, 64, 8
	bytes = int64(len(part))
	for _, c := range part {
		switch {
		case m.escaped:
			m.escaped = false
		case m.inString && c == '\\':
			m.escaped = true
		case c == '"':
			m.inString = !m.inString
		case m.inString:
		case c == '{':
			bytes += object
		case c == '[':
			bytes += list
		case c == ',' || c == ':':
			bytes += value
		}
	}
	return bytes
}

// CloseIdleConnections closes the idle connections of the given transport, for
// http.Client.CloseIdleConnections.
func (t transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
