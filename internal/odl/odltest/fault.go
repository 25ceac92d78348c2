package odltest

import (
	"net"
	"net/http"
	"slices"
	"time"
)

// Break is a way in which the stub breaks a connection.
type Break string

// The ways in which the stub breaks a connection.
const (
	BreakReset Break = "reset" // a TCP reset without a response
	BreakHang  Break = "hang"  // no response until the client disconnects
	BreakCut   Break = "cut"   // the response ends inside the body
)

// Fault describes how the stub answers the next requests that match it, instead of the real response.
type Fault struct {
	Method  string            `json:"method,omitempty"`   // empty: any method
	Type    string            `json:"type,omitempty"`     // object type; empty: any type
	ID      string            `json:"id,omitempty"`       // object ID; empty: any object
	Times   int               `json:"times,omitempty"`    // number of requests; 0: one
	Applied bool              `json:"applied,omitempty"`  // execute the request before the fault
	DelayMS int               `json:"delay_ms,omitempty"` // delay before everything else, in milliseconds
	Status  int               `json:"status,omitempty"`   // status of the response; 0: the real one
	Header  map[string]string `json:"header,omitempty"`   // headers of the response
	Body    string            `json:"body,omitempty"`     // body of the response
	Break   Break             `json:"break,omitempty"`    // instead of a response
}

// InjectFaults adds faults. If several faults match a request, the oldest is applied.
func (c *Controller) InjectFaults(faults ...Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range faults {
		f.Times = max(f.Times, 1)
		c.faults = append(c.faults, &f)
	}
}

// Faults returns the faults that still wait for matching requests.
func (c *Controller) Faults() []Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := []Fault{}
	for _, f := range c.faults {
		left = append(left, *f)
	}
	return left
}

// ClearFaults removes all faults.
func (c *Controller) ClearFaults() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = nil
}

// takeFault returns the fault to apply to a request, and counts this request as one of the requests to which
// the fault applies. takeFault returns nil if no fault matches.
func (c *Controller) takeFault(seen Request) *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.faults, func(f *Fault) bool {
		return (f.Method == "" || f.Method == seen.Method) && (f.Type == "" || f.Type == seen.Type) &&
			(f.ID == "" || f.ID == seen.ID)
	})
	if i < 0 {
		return nil
	}
	f := *c.faults[i]
	if c.faults[i].Times--; c.faults[i].Times == 0 {
		c.faults = slices.Delete(c.faults, i, i+1)
	}
	return &f
}

// applyFault answers a request as the fault says.
func (c *Controller) applyFault(
	w http.ResponseWriter,
	r *http.Request,
	f *Fault,
	seen Request,
	do func() reply,
) {
	if !sleep(r, time.Duration(f.DelayMS)*time.Millisecond) {
		c.logRequest(seen, reply{})
		return
	}
	slow := f.Status == 0 && f.Break == "" && f.Body == "" // the fault is only a delay
	a := reply{status: f.Status, text: f.Body}
	switch {
	case slow:
		a = do()
	case f.Applied:
		applied := do()
		if a.status == 0 {
			a.status = applied.status
		}
	default:
		if a.status == 0 && f.Break == "" {
			a.status = http.StatusOK
		}
		c.logRequest(seen, a)
	}
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	switch f.Break {
	case BreakReset:
		resetConnection(w)
	case BreakHang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case BreakCut:
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(max(a.status, http.StatusOK))
		_, _ = w.Write([]byte(`{"cut`))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default:
		writeReply(w, a)
	}
}

// sleep waits for the duration d. sleep returns false if the client disconnects first.
func sleep(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// resetConnection closes the connection without a response. If possible, resetConnection sends a TCP reset.
func resetConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
