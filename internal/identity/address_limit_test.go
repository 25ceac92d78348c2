package identity_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"berth/internal/identity"
	"berth/internal/identity/keystonetest"
)

// from returns a request with a token that a client with the address has sent.
func from(ctx context.Context, address, token string) *http.Request {
	return request(identity.WithAddress(ctx, netip.MustParseAddr(address)), token)
}

// expectFrom sends a token from the address, and returns the time after which the client should try again.
func expectFrom(t *testing.T, k *identity.Keystone, address, token string, want error) time.Duration {
	t.Helper()
	_, err := k.Authenticate(from(t.Context(), address, token))
	if !errors.Is(err, want) {
		t.Fatalf("authenticate with the token %s from %s: got error %v, want %v", token, address, err, want)
	}
	if after := identity.RetryAfter(err); (after > 0) != errors.Is(want, identity.ErrTooManyAttempts) {
		t.Errorf("time to wait after the error %v: got %s, want one only for ErrTooManyAttempts", err, after)
	}
	return identity.RetryAfter(err)
}

func TestAddressLimit_OneAddressLeavesPlacesForOthers(t *testing.T) {
	t.Parallel()
	s, k, running, release := held(t, 10)
	const limit = 3
	k.SetAddressLimit(limit, 100)
	leaving, leave := context.WithCancel(t.Context())
	var greedy, other sync.WaitGroup
	for i := range limit {
		greedy.Go(func() { _, _ = k.Authenticate(from(leaving, "192.0.2.1", fmt.Sprintf("greedy-%d", i))) })
	}
	await(t, "the validations of the greedy address are queued", func() bool { return k.Queued() == limit })

	expectFrom(t, k, "192.0.2.1", "one-too-many", identity.ErrTooManyAttempts)

	token := s.Issue(keystonetest.Token{User: "other", Project: "p"})
	other.Go(func() {
		if c, err := k.Authenticate(from(t.Context(), "192.0.2.2", token)); err != nil || c.User != "other" {
			t.Errorf(
				"authenticate from another address: got user %s, error %v; want other and no error",
				c.User,
				err,
			)
		}
	})
	await(t, "the validation of the other address is queued", func() bool { return k.Queued() == limit+1 })
	leave()
	greedy.Wait()
	release()
	other.Wait()
	running.Wait()
	if n := s.Validations("one-too-many"); n != 0 || k.Refused() != 1 {
		t.Errorf(
			"token over the limit of its address: got %d requests to Keystone and %d refusals, want 0 and 1",
			n,
			k.Refused(),
		)
	}
	// The abandoned validations no longer count.
	await(t, "the greedy address has a place again", func() bool {
		_, err := k.Authenticate(
			from(t.Context(), "192.0.2.1", s.Issue(keystonetest.Token{User: "greedy", Project: "p"})),
		)
		return err == nil
	})
}

func TestAddressLimit_InvalidTokensAreDelayedLongerAndLonger(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	cached := s.Issue(keystonetest.Token{User: "cached", Project: "p"})
	expectFrom(t, k, "192.0.2.1", cached, nil)
	for i := range identity.FreeBadTokens + 1 {
		expectFrom(t, k, "192.0.2.1", fmt.Sprintf("bad-%d", i), identity.ErrUnauthenticated)
	}

	last := time.Duration(0)
	for i := range 6 {
		token := fmt.Sprintf("worse-%d", i)
		wait := expectFrom(t, k, "192.0.2.1", token, identity.ErrTooManyAttempts)
		if n := s.Validations(token); n != 0 || wait < last || i < 3 && wait == last {
			t.Errorf(
				"invalid token %d that is too many: got %d requests to Keystone and %s to wait, want no request and more than %s",
				i, n, wait, last,
			)
		}
		last = wait
		expectFrom(t, k, "192.0.2.1", cached, nil) // a cached token needs no Keystone
		expectFrom(t, k, "192.0.2.1", "bad-0", identity.ErrUnauthenticated)
		expectFrom(t, k,
			fmt.Sprintf("192.0.2.%d", i+2), fmt.Sprintf("elsewhere-%d", i), identity.ErrUnauthenticated)
		s.Advance(wait)
		expectFrom(t, k, "192.0.2.1", token, identity.ErrUnauthenticated)
	}

	s.Advance(time.Hour)
	for i := range identity.FreeBadTokens {
		expectFrom(t, k, "192.0.2.1", fmt.Sprintf("later-%d", i), identity.ErrUnauthenticated)
	}
}

// TestAddressLimit_DelayOfABurstIsBounded lets more validations fail at the same time than the address may
// have later.
func TestAddressLimit_DelayOfABurstIsBounded(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	k.SetQueue(100, 100)
	_, release := s.Hold()
	var burst sync.WaitGroup
	for i := range 100 {
		burst.Go(func() {
			_, err := k.Authenticate(from(t.Context(), "192.0.2.1", fmt.Sprintf("bad-%d", i)))
			if !errors.Is(err, identity.ErrUnauthenticated) {
				t.Errorf(
					"authenticate with one of many invalid tokens: got error %v, want ErrUnauthenticated",
					err,
				)
			}
		})
	}
	await(t, "all validations are at Keystone or in the queue",
		func() bool { return k.Validating("192.0.2.1") == 100 })
	release()
	burst.Wait()

	wait := expectFrom(t, k, "192.0.2.1", "worse", identity.ErrTooManyAttempts)

	if wait != 32*time.Second {
		t.Errorf("time to wait after 100 invalid tokens at once: got %s, want 32s", wait)
	}
	s.Advance(wait)
	expectFrom(t, k, "192.0.2.1", s.Issue(keystonetest.Token{User: "u", Project: "p"}), nil)
}

func TestAddressLimit_DelayedAddressHasOneValidationAtATime(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	k.SetQueue(2, 10)
	for i := range identity.FreeBadTokens + 2 {
		if i > identity.FreeBadTokens {
			s.Advance(250 * time.Millisecond)
		}
		expectFrom(t, k, "192.0.2.1", fmt.Sprintf("bad-%d", i), identity.ErrUnauthenticated)
	}
	s.Advance(500 * time.Millisecond)
	_, release := s.Hold()
	defer release()
	first := make(chan error)
	go func() {
		_, err := k.Authenticate(from(t.Context(), "192.0.2.1", "first"))
		first <- err
	}()
	await(t, "Keystone gets the first token", func() bool { return s.Validations("first") == 1 })

	expectFrom(t, k, "192.0.2.1", "second", identity.ErrTooManyAttempts)

	release()
	if err := <-first; !errors.Is(err, identity.ErrUnauthenticated) {
		t.Errorf("authenticate with an invalid token: got error %v, want ErrUnauthenticated", err)
	}
}

func TestAddressLimit_ValidTokensAndOutagesDelayNothing(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	for i := range 5 * identity.FreeBadTokens {
		expectFrom(t, k, "192.0.2.1",
			s.Issue(keystonetest.Token{User: fmt.Sprintf("u%d", i), Project: "p"}), nil)
	}
	s.Fail(500)
	for i := range 5 * identity.FreeBadTokens {
		expectFrom(t, k, "192.0.2.1", fmt.Sprintf("unknown-%d", i), identity.ErrUnavailable)
	}
	s.Fail(0)
	expectFrom(t, k, "192.0.2.1", "bad", identity.ErrUnauthenticated)
	if n := k.Refused(); n != 0 {
		t.Errorf("refused tokens: got %d, want none", n)
	}
}

func TestAddressLimit_MemoryIsBounded(t *testing.T) {
	t.Parallel()
	_, k := start(t)
	k.SetAddressLimit(1, 10)
	for i := range 50 {
		expectFrom(t, k,
			fmt.Sprintf("198.51.100.%d", i), fmt.Sprintf("bad-%d", i), identity.ErrUnauthenticated)
	}
	if n := k.KnownAddresses(); n != 10 {
		t.Errorf(
			"addresses in the memory after invalid tokens from 50 addresses: got %d, want the limit of 10",
			n,
		)
	}
}

// TestBreaker_WaitingInTheQueueDoesNotOpenIt lets requests give up whose turn has not come.
func TestBreaker_WaitingInTheQueueDoesNotOpenIt(t *testing.T) {
	t.Parallel()
	s, k, running, release := held(t, 100)
	k.SetProbeInterval(time.Hour)
	var waiting sync.WaitGroup
	for i := range 5 * identity.FailuresToOpen {
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		waiting.Go(func() {
			_, err := k.Authenticate(request(impatient, fmt.Sprintf("queued-%d", i)))
			if !errors.Is(err, identity.ErrUnavailable) {
				t.Errorf("authenticate, and give up in the queue: got error %v, want ErrUnavailable", err)
			}
		})
	}
	waiting.Wait()

	if k.BreakerOpen() {
		t.Error("after requests that gave up in berth's own queue: the breaker is open, want it closed")
	}
	release()
	running.Wait()
	expect(t, k, s.Issue(keystonetest.Token{User: "later", Project: "p"}), nil)
}
