// Package safeurl builds and checks the paths of outgoing requests, so that a value from outside never leads
// a request, which carries berth's own token, to another path than the one that the client means. It also
// limits what a client reads of an answer.
package safeurl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// ErrPath means that the path of a request could leave its collection. A request with such a path is never
// sent.
var ErrPath = errors.New("the path of the request contains a dot segment")

// Segment returns the value as one segment of a path: every character that could end the segment is escaped.
// Segment cannot escape the values "." and "..", because servers decode the segment first; CheckPath refuses
// them.
func Segment(value string) string { return url.PathEscape(value) }

// CheckPath returns ErrPath if a server could read a segment "." or ".." in the path of the URL, also after
// decoding it once.
func CheckPath(u *url.URL) error {
	for segment := range strings.FieldsFuncSeq(u.Path, func(c rune) bool { return c == '/' || c == '\\' }) {
		if segment == "." || segment == ".." {
			return fmt.Errorf("%w: %q", ErrPath, u.EscapedPath())
		}
	}
	return nil
}

// ErrAnswerTooLarge means that the body of an answer is larger than its client allows.
var ErrAnswerTooLarge = errors.New("the answer is too large")

// Client returns an HTTP client of another service, which sends its requests with a Transport and follows no
// redirects. A request may take the time `timeout`. If `wrap` is not nil, it wraps the transport that sends
// the requests.
func Client(timeout time.Duration, wrap func(http.RoundTripper) http.RoundTripper, maxAnswer int64) *http.Client {
	var next http.RoundTripper = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     20 * time.Second,
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
// Transport allows all their answers together the size that it otherwise allows one answer.
func LimitTotal(ctx context.Context) context.Context {
	return context.WithValue(ctx, totalKey{}, new(total))
}

// total is the number of bytes that were read of the answers to the requests with one context of LimitTotal.
type total struct{ bytes atomic.Int64 }

// Transport returns a transport that sends a request with the given transport only if CheckPath accepts the
// URL of the request. Reading more than maxAnswer bytes of the body of an answer fails with
// ErrAnswerTooLarge; the bytes are those after decompression. LimitTotal applies the limit to several answers
// together.
func Transport(next http.RoundTripper, maxAnswer int64) http.RoundTripper {
	return transport{next, maxAnswer}
}

type transport struct {
	next      http.RoundTripper
	maxAnswer int64 // bytes
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
	if err == nil {
		read, shared := r.Context().Value(totalKey{}).(*total)
		if !shared {
			read = new(total)
		}
		answer.Body = &limitedBody{ReadCloser: answer.Body, limit: t.maxAnswer, read: read}
	}
	return answer, err
}

// limitedBody is the body of an answer, of which a client reads a limited number of bytes.
type limitedBody struct {
	io.ReadCloser
	limit int64 // bytes
	read  *total
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
	return n, err
}

// CloseIdleConnections closes the idle connections of the given transport, for
// http.Client.CloseIdleConnections.
func (t transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
