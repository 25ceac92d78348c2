package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// maxRetryAfter is the longest time that berth passes on in the header Retry-After.
const maxRetryAfter = time.Hour

// retryError is an error with the time after which Keystone wants to get the next request.
type retryError struct {
	error
	after time.Duration
}

func (e *retryError) Unwrap() error { return e.error }

// RetryAfter returns the time after which the identity service wants to get the next request, according to
// the header Retry-After of its response. RetryAfter returns 0 if the identity service has not named a time.
func RetryAfter(err error) time.Duration {
	var e *retryError
	if errors.As(err, &e) {
		return e.after
	}
	return 0
}

// unavailable returns an error that wraps ErrUnavailable, with the time after which Keystone wants to get the
// next request.
func (k *Keystone) unavailable(operation string, err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return delayed(unavailable(operation, err), k.retryAt.Sub(k.now()))
}

// unavailable returns an error that wraps ErrUnavailable. The error that unavailable returns does not contain
// the body of Keystone's response, because the body may be an HTML page.
func unavailable(operation string, err error) error {
	var code gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &code) {
		return fmt.Errorf("%w: %s: Keystone answered %d", ErrUnavailable, operation, code.Actual)
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, operation, err)
}

// delayed adds the time after which Keystone wants to get the next request to an error. A time that is not
// positive means that Keystone has named none.
func delayed(err error, after time.Duration) error {
	if after > 0 {
		return &retryError{error: err, after: after}
	}
	return err
}

// noteRetryAfter stores the time that the header Retry-After of an error response names, so that the requests
// that the open circuit breaker refuses get the rest of this time.
func (k *Keystone) noteRetryAfter(err error) {
	now := k.now()
	if after := retryAfter(err, now); after > 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.retryAt = now.Add(after)
	}
}

// retryAfter returns the time that the header Retry-After of an error response names, or 0.
func retryAfter(err error, now time.Time) time.Duration {
	var answer gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &answer) {
		return 0
	}
	return min(parseRetryAfter(answer.ResponseHeader, now), maxRetryAfter)
}

// parseRetryAfter reads the header Retry-After, which is a number of seconds or a date.
func parseRetryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now)
	}
	seconds, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
}

// isTokenMissing reports whether Keystone has answered that a token does not exist. A 404 without Keystone's
// JSON error says nothing about the token: a proxy in front of Keystone, or another service at OS_AUTH_URL,
// has sent it.
func isTokenMissing(err error) bool {
	var answer gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &answer) || answer.Actual != http.StatusNotFound {
		return false
	}
	var body struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	return json.Unmarshal(answer.Body, &body) == nil && body.Error.Code == http.StatusNotFound
}
