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
// to a request that may have changed something is never refused, and neither is one without credentials: such
// answers are small, or share their memory.
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
	n := min(int64(len(raw)), maxClientAnswers) // one answer is never too large
	if n <= smallAnswer || r.Method != http.MethodGet || identity.From(r.Context()).User == "" {
		return raw, func() {}, nil
	}
	of := clientShares(r, "answers", maxClientAnswers)
	switch {
	case !shares.tryAcquire(of, n):
		return nil, func() {}, Fault(http.StatusTooManyRequests, "",
			"This client does not read other answers. Read them, and try again.").RetryIn(1)
	case !answerMemory.TryAcquire(n):
		shares.release(of, n)
		return nil, func() {}, Fault(http.StatusServiceUnavailable, "",
			"The server sends too many large answers at the same time. Try again later.").RetryIn(1)
	}
	return raw, func() {
		answerMemory.Release(n)
		shares.release(of, n)
	}, nil
}
