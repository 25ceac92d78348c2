package osapi

import (
	"errors"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// maxBodyBytes is the memory, in bytes, that all request bodies of the process may use together. maxBodyBytes is small, because the
// values decoded from a JSON body can need twenty times the memory of the body.
const maxBodyBytes = 32 << 20

var bodyMemory = semaphore.NewWeighted(maxBodyBytes)

// errBodiesFull means that the bodies of other requests already use maxBodyBytes of memory.
var errBodiesFull = errors.New("the bodies of other requests use the whole memory limit")

// limitedBody counts the bytes of a request body against maxBodyBytes while the handler reads the body, and releases the bytes when the
// request is answered. If a client sends a body slowly, limitedBody counts only the bytes that the client has already sent.
type limitedBody struct {
	io.ReadCloser
	limit *semaphore.Weighted
	used  int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.limit.TryAcquire(int64(n)) {
		return 0, errBodiesFull
	}
	b.used += int64(n)
	return n, err
}

// release gives the memory of the request's body back to the memory limit of all bodies.
func (b *limitedBody) release() { b.limit.Release(b.used) }

// limitBody limits the size of the request's body and of all bodies together. The caller of limitBody must call release when the request
// is answered.
func limitBody(w http.ResponseWriter, r *http.Request, limit int64) (release func()) {
	b := &limitedBody{ReadCloser: http.MaxBytesReader(w, r.Body, limit), limit: bodyMemory}
	r.Body = b
	return b.release
}
