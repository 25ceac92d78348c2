package notifytest

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault is what happens to the next requests.
type Fault struct {
	Request        string `json:"on,omitempty"`       // which: the beginning of "METHOD /path", after any prefix; empty for external events
	Times          int    `json:"times,omitempty"`    // 0 means once
	Applied        bool   `json:"applied,omitempty"`  // what was asked for is done first
	DelayMS        int    `json:"delay_ms,omitempty"` // before anything else
	Status         int    `json:"status,omitempty"`   // the answer to the whole
	Code           int    `json:"code,omitempty"`     // the code of each event, in a 207
	DropConnection bool   `json:"drop,omitempty"`     // the connection ends without an answer
}

// faults are those that are still to come.
type faults struct {
	mu   sync.Mutex
	next []Fault
}

func (q *faults) add(faults []Fault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, f := range faults {
		f.Times = max(f.Times, 1)
		q.next = append(q.next, f)
	}
}

// take is the first fault for a request, and no fault if there is none.
func (q *faults) take(what string) Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.next, func(f Fault) bool { return f.Request == what || f.Request != "" && strings.HasPrefix(what, f.Request) })
	if i < 0 {
		return Fault{}
	}
	f := q.next[i]
	if q.next[i].Times--; q.next[i].Times == 0 {
		q.next = slices.Delete(q.next, i, i+1)
	}
	return f
}

// meet answers a request as its fault says, or as it should be.
func (q *faults) meet(w http.ResponseWriter, r *http.Request, what string, answer func(Fault) (int, any)) {
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
		write(w, f.Status, map[string]any{"itemNotFound": map[string]any{"code": f.Status, "message": "No instances found for any event"}})
	case f.Status != 0:
		w.WriteHeader(f.Status)
	default:
		write(w, status, body)
	}
}
