package osapi

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"berth/internal/identity"
)

// maxBodyBytes is the memory, in bytes, that all request bodies of the process may use together. maxBodyBytes
// is small, because the values decoded from a JSON body can need twenty times the memory of the body.
const maxBodyBytes = 32 << 20

var bodyMemory = semaphore.NewWeighted(maxBodyBytes)

// errBodiesFull means that the bodies of other requests already use maxBodyBytes of memory.
var errBodiesFull = errors.New("the bodies of other requests use the whole memory limit")

// Parts of maxBodyBytes. They are small enough that a client that does not end its bodies leaves memory for
// others.
const (
	maxClientBodies  = 4 << 20   // for all bodies of a project, or of the agents of a host
	maxOpenBodies    = 1 << 20   // for all bodies of requests without credentials
	maxAddressBodies = 128 << 10 // for all bodies of requests without credentials from one address
	maxOpenBody      = 16 << 10  // for one body of a request without credentials: the form with a token
)

// errShareFull means that the bodies of other requests of the same client already use the client's part of
// the memory.
var errShareFull = errors.New("the bodies of other requests of the client use its part of the memory limit")

// share is a part of a limited memory that one client, or one group of clients, may use.
type share struct {
	name  string
	limit int64
}

// shareTable counts the memory of each share. A share that is not in use is not in the table.
type shareTable struct {
	mutex sync.Mutex
	used  map[string]int64
}

var shares = shareTable{used: map[string]int64{}}

// tryAcquire counts n bytes for each of the shares, unless one of them has too few bytes left.
func (t *shareTable) tryAcquire(of []share, n int64) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, s := range of {
		if t.used[s.name]+n > s.limit {
			return false
		}
	}
	for _, s := range of {
		t.used[s.name] += n
	}
	return true
}

// add counts n bytes for each of the shares, also if this exceeds a limit.
func (t *shareTable) add(of []share, n int64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, s := range of {
		t.used[s.name] += n
	}
}

// full reports whether one of the shares has reached its limit.
func (t *shareTable) full(of []share) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return slices.ContainsFunc(of, func(s share) bool { return t.used[s.name] >= s.limit })
}

func (t *shareTable) release(of []share, n int64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, s := range of {
		if t.used[s.name] -= n; t.used[s.name] == 0 {
			delete(t.used, s.name)
		}
	}
}

// bodySharesOf returns the shares of a request, and the maximum size of its body.
func bodySharesOf(r *http.Request, route *Route) (of []share, limit int64) {
	limit = MaxBody
	if route.LargeBody {
		limit = MaxBatch
	}
	if route.Open {
		return openShares(r, "bodies", maxOpenBodies, maxAddressBodies), maxOpenBody
	}
	return clientShares(r, "bodies", maxClientBodies), limit
}

// openShares returns the shares that a request without credentials has of the memory for bodies or answers:
// one of all such requests and, if the address of the client is known, one of those from this address.
func openShares(r *http.Request, of string, all, perAddress int64) []share {
	open := []share{{of + " without credentials", all}}
	if client := identity.AddressOf(r.Context()); client.IsValid() {
		open = append(open, share{of + " of the address " + client.String(), perAddress})
	}
	return open
}

// clientShares returns the share that the caller of a request has of the memory for bodies or answers.
// Administrators and services have none, because a service sends the requests of many projects.
func clientShares(r *http.Request, of string, limit int64) []share {
	name := clientName(identity.From(r.Context()))
	if name == "" {
		return nil
	}
	return []share{{of + " of " + name, limit}}
}

// clientName returns the name under which a caller counts for the limits of a client: its project, or the
// host of an agent. Administrators and services have no limits, and clientName returns "".
func clientName(c identity.Caller) string {
	switch {
	case c.AdminOrService():
		return ""
	case c.AgentHost != "":
		return "host " + c.AgentHost
	default:
		return ProjectName(c)
	}
}

// limitedBody counts the bytes of a request body against maxBodyBytes and against the shares of its client
// while the handler reads the body, and releases the bytes when the request is answered. If a client sends a
// body slowly, limitedBody counts only the bytes that the client has already sent.
type limitedBody struct {
	io.ReadCloser
	shares []share
	used   int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case n == 0:
		return n, err
	case !shares.tryAcquire(b.shares, int64(n)):
		return 0, errShareFull
	case !bodyMemory.TryAcquire(int64(n)):
		shares.release(b.shares, int64(n))
		return 0, errBodiesFull
	}
	b.used += int64(n)
	return n, err
}

// release gives the memory of the request's body back to the memory limit of all bodies.
func (b *limitedBody) release() {
	bodyMemory.Release(b.used)
	shares.release(b.shares, b.used)
}

// limitBody limits the size of the request's body, of all bodies of its client and of all bodies together.
// The caller of limitBody must call release when the request is answered.
func limitBody(w http.ResponseWriter, r *http.Request, route *Route) (release func()) {
	of, limit := bodySharesOf(r, route)
	b := &limitedBody{ReadCloser: http.MaxBytesReader(w, r.Body, limit), shares: of}
	r.Body = b
	return b.release
}
