package notifytest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault replaces the stub's response to the next requests that match the Fault.
type Fault struct {
	// prefix of "METHOD /path", without the path of the endpoint; empty: external events
	Request string `json:"on,omitempty"`
	// number of requests to which the fault applies; 0 means one request
	Times          int  `json:"times,omitempty"`
	Applied        bool `json:"applied,omitempty"`  // execute the request before the fault
	DelayMS        int  `json:"delay_ms,omitempty"` // delay before everything else, in milliseconds
	Status         int  `json:"status,omitempty"`   // status of the response
	Code           int  `json:"code,omitempty"`     // code of each event, in a response 207
	DropConnection bool `json:"drop,omitempty"`     // close the connection without a response
}

// faultQueue contains the remaining faults.
type faultQueue struct {
	mu      sync.Mutex
	pending []Fault
}

func (q *faultQueue) add(faults []Fault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, f := range faults {
		f.Times = max(f.Times, 1)
		q.pending = append(q.pending, f)
	}
}

// take returns the first fault that matches a request, and decreases by one the number of further requests to
// which this fault applies. take returns the zero Fault if no fault matches.
func (q *faultQueue) take(what string) Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.pending, func(f Fault) bool {
		return f.Request == what || f.Request != "" && strings.HasPrefix(what, f.Request)
	})
	if i < 0 {
		return Fault{}
	}
	f := q.pending[i]
	if q.pending[i].Times--; q.pending[i].Times == 0 {
		q.pending = slices.Delete(q.pending, i, i+1)
	}
	return f
}

// serve answers a request with the first matching fault, or calls the function `answer` if no fault matches.
func (q *faultQueue) serve(
	w http.ResponseWriter,
	r *http.Request,
	what string,
	answer func(Fault) (int, any),
) {
	f := q.take(what)
	select {
	case <-time.After(time.Duration(f.DelayMS) * time.Millisecond):
	case <-r.Context().Done():
		return
	}
	failed := f.DropConnection || f.Status != 0
	status, body := http.StatusOK, any(nil)
	if !failed || f.Applied {
		status, body = answer(f)
	}
	switch {
	case f.DropConnection:
		panic(http.ErrAbortHandler)
	case f.Status == http.StatusNotFound:
		writeJSON(w, f.Status, map[string]any{
			"itemNotFound": map[string]any{
				"code":    f.Status,
				"message": "No instances found for any event",
			},
		})
	case f.Status != 0:
		w.WriteHeader(f.Status)
	default:
		writeJSON(w, status, body)
	}
}
