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
	// smallAnswer is the size up to which an answer does not count. An answer that a connection accepts at
	// once needs its memory only for a moment.
	smallAnswer = 16 << 10
)

var answerMemory = semaphore.NewWeighted(maxAnswerBytes)

// encodeAnswer encodes the body of an answer. If the answer is large, encodeAnswer counts its memory until
// the caller calls `release`, because a client can have many answers that it does not read. If too much
// memory is in use, by all answers or by those of the client, encodeAnswer returns a 503 or a 429. The answer
// to a request that may have changed something is counted but never refused: checkAnswers has refused the
// request before. An answer without credentials is not counted: it is small, or shares its memory.
func encodeAnswer(r *http.Request, body any) (encoded any, release func(), err error) {
	raw, ok := body.([]byte)
	if _, stream := body.(Stream); body == nil || stream {
		return body, func() {}, nil
	}
	if !ok {
		if raw, err = encode(body); err != nil {
			return nil, func() {}, fmt.Errorf("encode the response: %w", err)
		}
	}
	switch {
	case identity.From(r.Context()).User == "":
		return raw, func() {}, nil
	case r.Method != http.MethodGet:
		return raw, countAnswer(r, len(raw)), nil
	}
	release, err = holdAnswer(r, len(raw))
	if err != nil {
		return nil, func() {}, err
	}
	return raw, release, nil
}

// holdAnswer counts the memory of an answer, or of a part of it, with `size` bytes until the caller calls
// `release`. If too much memory is in use, by all answers or by those of the client, holdAnswer returns a 503
// or a 429.
func holdAnswer(r *http.Request, size int) (release func(), err error) {
	n := min(int64(size), maxClientAnswers) // one answer is never too large
	if n <= smallAnswer {
		return func() {}, nil
	}
	of := clientShares(r, "answers", maxClientAnswers)
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

// countAnswer counts the memory of an answer that cannot be refused against the part of its client, until the
// caller calls `release`.
func countAnswer(r *http.Request, size int) (release func()) {
	n := int64(size)
	if n <= smallAnswer {
		return func() {}
	}
	of := clientShares(r, "answers", maxClientAnswers)
	shares.add(of, n)
	return func() { shares.release(of, n) }
}

// checkAnswers refuses a request that may change something with a 429 while the client does not read its
// other answers.
func checkAnswers(r *http.Request) error {
	if r.Method == http.MethodGet || !shares.full(clientShares(r, "answers", maxClientAnswers)) {
		return nil
	}
	return unreadAnswers()
}

func unreadAnswers() *Error {
	return Fault(http.StatusTooManyRequests, "",
		"This client does not read other answers. Read them, and try again.").RetryIn(1)
}
