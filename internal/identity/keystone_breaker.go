package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/sony/gobreaker/v2"
)

const (
	// failuresToOpen is how many consecutive failures of Keystone open the circuit breaker.
	failuresToOpen = 5
	// probeInterval is how long the open circuit breaker sends no request to Keystone. It then sends one
	// request, to find out whether Keystone answers again.
	probeInterval = time.Second
	// checkInterval is how long the result of Check stays valid. Without it, everybody who asks for the
	// readiness of the process would cause a request to Keystone.
	checkInterval = 5 * time.Second
)

// overloaded are the statuses with which Keystone, or a proxy in front of it, says that it has too much work
// or does not run. The status 500 is missing, because a single token may cause it, and must not close
// Keystone to the callers with other tokens.
var overloaded = []int{
	http.StatusTooManyRequests,
	http.StatusBadGateway,
	http.StatusServiceUnavailable,
	http.StatusGatewayTimeout,
}

// newBreaker returns a circuit breaker, which is open while Keystone does not answer: berth then refuses
// callers at once, instead of sending requests that a slow Keystone works on after their callers have left.
func newBreaker(probeInterval time.Duration) *gobreaker.CircuitBreaker[any] {
	return gobreaker.NewCircuitBreaker[any](gobreaker.Settings{
		Timeout:      probeInterval,
		MaxRequests:  1,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresToOpen },
		IsSuccessful: func(err error) bool { return !isOverload(err) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case from == gobreaker.StateClosed:
				slog.Warn("Keystone does not answer; berth sends it one request at a time",
					"pause", probeInterval)
			case to == gobreaker.StateClosed:
				slog.Info("Keystone answers again")
			}
		},
	})
}

// isOverload reports whether the error of a request means that Keystone does not answer: no response in time,
// or one of the statuses in overloaded.
func isOverload(err error) bool {
	var answer gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &answer) {
		return slices.Contains(overloaded, answer.Actual)
	}
	var broken *url.Error
	return errors.As(err, &broken) || errors.Is(err, context.DeadlineExceeded)
}

// errNoAnswer means that the circuit breaker is open.
var errNoAnswer = errors.New("no answer of Keystone to the last requests")

// request sends one request to Keystone through the circuit breaker. If the circuit breaker is open, request
// returns an error without sending the request.
func (k *Keystone) request(send func() error) error {
	_, err := k.breaker.Execute(func() (any, error) { return nil, send() })
	k.noteRetryAfter(err)
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return err
}

// BreakerOpen reports whether the circuit breaker is open, because Keystone has not answered the last
// requests.
func (k *Keystone) BreakerOpen() bool { return k.breaker.State() != gobreaker.StateClosed }

// checkResult is the result of Check, with the time until which it is valid.
type checkResult struct {
	err   error
	until time.Time
}

// Check returns an error that wraps ErrUnavailable if Keystone cannot validate tokens now. Check lets
// Keystone validate the token of the service user, and repeats the result of the last validation for
// checkInterval.
func (k *Keystone) Check(ctx context.Context) error {
	k.mu.Lock()
	last := k.checked
	k.mu.Unlock()
	if k.now().Before(last.until) {
		return last.err
	}
	v, err := k.shareCall(ctx, "check", func(ctx context.Context) (any, error) {
		err := k.checkNow(ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.checked = checkResult{err: err, until: k.now().Add(checkInterval)}
		return err, nil
	})
	if err != nil {
		return err
	}
	err, _ = v.(error)
	return err
}

// checkNow lets Keystone validate the token of the service user. If the token was revoked, checkNow does so
// with a new token.
func (k *Keystone) checkNow(ctx context.Context) error {
	own, err := k.Fresh(ctx, "")
	if err != nil {
		return err
	}
	_, err = k.validate(ctx, own)
	if !errors.Is(err, ErrUnauthenticated) {
		return err
	}
	if own, err = k.Fresh(ctx, own); err != nil {
		return err
	}
	if _, err = k.validate(ctx, own); errors.Is(err, ErrUnauthenticated) {
		return fmt.Errorf("%w: Keystone does not accept the token that it has just issued to user %s",
			ErrUnavailable, k.service.Username)
	}
	return err
}

// noteValidation stores that Keystone has just answered a validation.
func (k *Keystone) noteValidation() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.validated = k.now()
}

// SinceValidation returns the time since Keystone last answered a validation of any token. The result ok is
// false if Keystone has not answered a validation since this process started.
func (k *Keystone) SinceValidation() (since time.Duration, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now().Sub(k.validated), !k.validated.IsZero()
}
