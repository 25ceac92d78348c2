package osapi

import (
	"fmt"
	"net/http"

	"golang.org/x/sync/semaphore"

	"berth/internal/identity"
)

const (
	// maxAnswerBytes is the memory, in bytes, that the large answers of the process may use together until
	// their clients have read them.
	maxAnswerBytes = 128 << 20
	// maxClientAnswers is the part of maxAnswerBytes for the answers of a project, or of the agents of one
	// host.
	maxClientAnswers = 16 << 20
	// maxOpenAnswers and maxAddressAnswers are the parts of maxAnswerBytes for the answers to all requests
	// without credentials, and to those from one address. These answers are small, except for a form that
	// repeats long names; the limits are for answers of which a client makes more than berth expects.
	maxOpenAnswers    = 4 << 20
	maxAddressAnswers = 512 << 10
	// smallAnswer is the size up to which an answer does not count. An answer that a connection accepts at
	// once needs its memory only for a moment.
	smallAnswer = 16 << 10
)

// Shared is the body of a response whose memory all responses share, such as a static file. It does not count
// as an answer.
type Shared []byte

var answerMemory = semaphore.NewWeighted(maxAnswerBytes)

// encodeAnswer encodes the body of an answer. If the answer is large, encodeAnswer counts its memory until
// the caller calls `release`, because a client can have many answers that it does not read. If too much
// memory is in use, by all answers or by those of the client, encodeAnswer returns a 503 or a 429. The answer
// to a request of a client with credentials that may have changed something is counted but never refused:
// checkAnswers has refused the request before.
func encodeAnswer(r *http.Request, body any) (encoded any, release func(), err error) {
	var raw []byte
	switch b := body.(type) {
	case nil, Stream:
		return body, func() {}, nil
	case Shared:
		return []byte(b), func() {}, nil
	case []byte:
		raw = b
	default:
		if raw, err = encode(body); err != nil {
			return nil, func() {}, fmt.Errorf("encode the response: %w", err)
		}
	}
	if r.Method != http.MethodGet && !isAnonymous(r) {
		return raw, countAnswer(r, cap(raw)), nil
	}
	release, err = holdAnswer(r, cap(raw))
	if err != nil {
		return nil, func() {}, err
	}
	return raw, release, nil
}

// holdAnswer counts the memory of an answer, or of a part of it, with `size` bytes until the caller calls
// `release`. If too much memory is in use, by all answers or by those of the client, holdAnswer returns a 503
// or a 429.
func holdAnswer(r *http.Request, size int) (release func(), err error) {
	n, of := min(int64(size), maxClientAnswers), answerShares(r)
	if n <= smallAnswer {
		return func() {}, nil
	}
	for _, s := range of {
		n = min(n, s.limit) // one answer is never too large
	}
	switch {
	case !shares.tryAcquire(of, n):
		return nil, unreadAnswers()
	case !answerMemory.TryAcquire(n):
		shares.release(of, n)
		return nil, Fault(http.StatusServiceUnavailable, "",
			"The server sends too many large answers at the same time. Try again later.").RetryIn(1)
	}
	return func() {
		answerMemory.Release(n)
		shares.release(of, n)
	}, nil
}

// answerShares returns the shares of the answer to a request.
func answerShares(r *http.Request) []share {
	if isAnonymous(r) {
		return openShares(r, "answers", maxOpenAnswers, maxAddressAnswers)
	}
	return clientShares(r, "answers", maxClientAnswers)
}

// isAnonymous reports whether the caller of a request is not known: the route needs no credentials.
func isAnonymous(r *http.Request) bool { return identity.From(r.Context()).User == "" }

// countAnswer counts the memory of an answer that cannot be refused against the part of its client, until the
// caller calls `release`.
func countAnswer(r *http.Request, size int) (release func()) {
	n := int64(size)
	if n <= smallAnswer {
		return func() {}
	}
	of := answerShares(r)
	shares.add(of, n)
	return func() { shares.release(of, n) }
}

// checkAnswers refuses a request that may change something with a 429 while the client does not read its
// other answers.
func checkAnswers(r *http.Request) error {
	if r.Method == http.MethodGet || !shares.full(answerShares(r)) {
		return nil
	}
	return unreadAnswers()
}

func unreadAnswers() *Error {
	return Fault(http.StatusTooManyRequests, "",
		"This client does not read other answers. Read them, and try again.").RetryIn(1)
}
