package harness

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// faultyServer answers requests with the present fault, or passes them to a stub.
type faultyServer struct {
	handler http.Handler
	fault   atomic.Pointer[serverFault]
}

// serverFault is a fault of an HTTP server that lasts until `over` is closed.
type serverFault struct {
	// answer with this status, without any effect; 0: another field says what the fault is
	status     int
	hang       bool          // no answer, and no effect
	loseAnswer bool          // the request takes effect, but the connection ends without an answer
	delay      time.Duration // before the answer
	share      float64       // fraction of the requests that the fault hits, from 0 to 1
	over       chan struct{}
}

func (s *faultyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := s.fault.Load()
	if f == nil || rand.Float64() >= f.share || strings.HasPrefix(r.URL.Path, "/restconf/") {
		s.handler.ServeHTTP(w, r)
		return
	}
	switch {
	case f.status != 0:
		w.WriteHeader(f.status)
	case f.hang:
		select {
		case <-r.Context().Done():
		case <-f.over:
		}
		panic(http.ErrAbortHandler)
	case f.loseAnswer:
		s.handler.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		select {
		case <-r.Context().Done():
		case <-f.over:
		case <-time.After(f.delay):
		}
		s.handler.ServeHTTP(w, r)
	}
}

// set makes the server answer with the fault until `end` is called.
func (s *faultyServer) set(f serverFault) (end func() error) {
	f.over = make(chan struct{})
	s.fault.Store(&f)
	return sync.OnceValue(func() error {
		s.fault.CompareAndSwap(&f, nil)
		close(f.over)
		return nil
	})
}

// clientFault makes clients lose answers of berth, or disconnect time before the server handles the request.
type clientFault struct{ share atomic.Int64 } // percentage of the requests

func (c *clientFault) hits() bool { return rand.Int64N(100) < c.share.Load() }
