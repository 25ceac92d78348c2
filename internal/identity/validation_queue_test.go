package identity_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"berth/internal/identity"
	"berth/internal/identity/keystonetest"
)

// await repeats a check until it holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("want that %s within ten minutes", what)
		}
	}
}

// held returns a Keystone that validates two tokens at a time and waits before it answers. Keystone works on
// the two tokens u0 and u1.
func held(
	t *testing.T,
	queued int,
) (s *keystonetest.Server, k *identity.Keystone, running *sync.WaitGroup, release func()) {
	t.Helper()
	s, k = start(t)
	k.SetQueue(2, queued)
	// the service user is logged in
	expect(t, k, s.Issue(keystonetest.Token{User: "first", Project: "p"}), nil)
	_, release = s.Hold()
	t.Cleanup(release)
	running = &sync.WaitGroup{}
	for i := range 2 {
		user := fmt.Sprintf("u%d", i)
		token := s.Issue(keystonetest.Token{User: user, Project: "p"})
		running.Go(func() {
			if c, err := k.Authenticate(request(t.Context(), token)); err != nil || c.User != user {
				t.Errorf(
					"authenticate with the token of %s: got user %s, error %v; want %s and no error",
					user, c.User, err, user,
				)
			}
		})
		await(t, "Keystone gets the token of "+user, func() bool { return s.Validations(token) == 1 })
	}
	return s, k, running, release
}

func TestValidations_AbandonedInTheQueueAreNotSent(t *testing.T) {
	t.Parallel()
	s, k, running, release := held(t, 10)
	abandoned, cancel := context.WithCancel(t.Context())
	var queued sync.WaitGroup
	tokens := map[string]string{}
	for i := range 5 {
		user := fmt.Sprintf("queued-%d", i)
		token := s.Issue(keystonetest.Token{User: user, Project: "p"})
		tokens[user] = token
		queued.Go(func() {
			if _, err := k.Authenticate(request(abandoned, token)); !errors.Is(err, identity.ErrUnavailable) {
				t.Errorf(
					"authenticate, and leave before the validation: got error %v, want ErrUnavailable",
					err,
				)
			}
		})
	}
	await(t, "five validations are queued", func() bool { return k.Queued() == 5 })

	cancel()
	queued.Wait()

	if n := k.Queued(); n != 0 {
		t.Errorf("queued validations after their requests have left: got %d, want 0", n)
	}
	release()
	running.Wait()
	for user, token := range tokens {
		if n := s.Validations(token); n != 0 {
			t.Errorf("requests to Keystone for the abandoned token of %s: got %d, want 0", user, n)
		}
		if c := expect(t, k, token, nil); c.User != user {
			t.Errorf("authenticate again with the token of %s: got user %s", user, c.User)
		}
	}
}

func TestValidations_QueuedOnesRunWhenKeystoneAnswers(t *testing.T) {
	t.Parallel()
	s, k, running, release := held(t, 10)
	token := s.Issue(keystonetest.Token{User: "late", Project: "p"})
	leaving, leave := context.WithCancel(t.Context())
	var first, second sync.WaitGroup
	first.Go(func() { _, _ = k.Authenticate(request(leaving, token)) })
	await(t, "the validation is queued", func() bool { return k.Queued() == 1 })
	second.Go(func() {
		if c, err := k.Authenticate(request(t.Context(), token)); err != nil || c.User != "late" {
			t.Errorf("authenticate with a queued token: got user %s, error %v; want late and no error",
				c.User, err)
		}
	})
	await(t, "two requests wait for the token", func() bool { return k.Waiting(token) == 2 })

	leave()
	first.Wait()
	release()
	second.Wait()
	running.Wait()

	if n := s.Validations(token); n != 1 {
		t.Errorf("requests to Keystone for a token that two requests have used: got %d, want 1", n)
	}
}

func TestValidations_AtKeystoneContinueWithoutTheirRequest(t *testing.T) {
	t.Parallel()
	s, k := start(t)
	k.SetQueue(2, 10)
	expect(t, k, s.Issue(keystonetest.Token{User: "first", Project: "p"}), nil)
	token := s.Issue(keystonetest.Token{User: "u1", Project: "p"})
	_, release := s.Hold()
	defer release()
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := k.Authenticate(request(leaving, token))
		left <- err
	}()
	await(t, "Keystone gets the token", func() bool { return s.Validations(token) == 1 })

	leave()
	if err := <-left; !errors.Is(err, identity.ErrUnavailable) {
		t.Errorf("authenticate, and leave during the validation: got error %v, want ErrUnavailable", err)
	}
	release()

	expect(t, k, token, nil)
	if n := s.Validations(token); n != 1 {
		t.Errorf("requests to Keystone for a token whose first request has left: got %d, want 1", n)
	}
}

func TestValidations_QueueIsLimited(t *testing.T) {
	t.Parallel()
	s, k, running, release := held(t, 1)
	var queued sync.WaitGroup
	queued.Go(func() { _, _ = k.Authenticate(request(t.Context(), "queued")) })
	await(t, "one validation is queued", func() bool { return k.Queued() == 1 })

	expect(t, k, "one-too-many", identity.ErrUnavailable)

	release()
	running.Wait()
	queued.Wait()
	if n := s.Validations("one-too-many"); n != 0 {
		t.Errorf("requests to Keystone for a token beyond the limit of the queue: got %d, want 0", n)
	}
}

// panickingTransport panics at each request with a method.
type panickingTransport struct {
	http.RoundTripper
	method string
}

func (p *panickingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == p.method {
		panic("scripted")
	}
	return p.RoundTripper.RoundTrip(r)
}

func TestKeystone_PanicFailsOnlyItsOwnRequests(t *testing.T) {
	t.Parallel()
	for what, method := range map[string]string{
		"login of the service user": http.MethodPost,
		"validation of a token":     http.MethodGet,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t)
			transport := &panickingTransport{method: method}
			settings := service(s)
			settings.Wrap = func(next http.RoundTripper) http.RoundTripper {
				transport.RoundTripper = next
				return transport
			}
			k := connect(t, s, settings)
			token := s.Issue(keystonetest.Token{User: "u", Project: "p"})

			expect(t, k, token, identity.ErrUnavailable)

			transport.method = ""
			expect(t, k, token, nil)
			if n := k.Queued(); n != 0 {
				t.Errorf("queued validations after one has panicked: got %d, want 0", n)
			}
		})
	}
}
