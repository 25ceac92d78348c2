package odltest

import (
	"net"
	"net/http"
	"slices"
	"time"
)

// Break is how a connection fails.
type Break string

// The ways.
const (
	BreakReset Break = "reset" // the connection is reset without an answer
	BreakHang  Break = "hang"  // no answer comes until the client leaves
	BreakCut   Break = "cut"   // the answer ends in the middle of its body
)

// Fault is what happens to the next requests that fit.
type Fault struct {
	Method  string            `json:"method,omitempty"`   // empty: any
	Type    string            `json:"type,omitempty"`     // of the object; empty: any
	ID      string            `json:"id,omitempty"`       // of the object; empty: any
	Times   int               `json:"times,omitempty"`    // 0 means once
	Applied bool              `json:"applied,omitempty"`  // the request is applied first
	DelayMS int               `json:"delay_ms,omitempty"` // before anything else happens
	Status  int               `json:"status,omitempty"`   // the answer; 0: the real one
	Header  map[string]string `json:"header,omitempty"`   // of the answer
	Body    string            `json:"body,omitempty"`     // of the answer
	Break   Break             `json:"break,omitempty"`    // instead of an answer
}

// Inject adds faults. Of several that fit a request, the oldest meets it.
func (c *Controller) InjectFaults(faults ...Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range faults {
		f.Times = max(f.Times, 1)
		c.faults = append(c.faults, &f)
	}
}

// Faults lists those that have not run out.
func (c *Controller) Faults() []Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := []Fault{}
	for _, f := range c.faults {
		left = append(left, *f)
	}
	return left
}

// Heal forgets all faults.
func (c *Controller) ClearFaults() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = nil
}

// fault takes the fault that meets a request, if any.
func (c *Controller) fault(seen Request) *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.faults, func(f *Fault) bool {
		return (f.Method == "" || f.Method == seen.Method) && (f.Type == "" || f.Type == seen.Type) && (f.ID == "" || f.ID == seen.ID)
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

// fail lets a fault meet a request.
func (c *Controller) fail(w http.ResponseWriter, r *http.Request, f *Fault, seen Request, do func() reply) {
	if !wait(r, time.Duration(f.DelayMS)*time.Millisecond) {
		c.note(seen, reply{})
		return
	}
	slow := f.Status == 0 && f.Break == "" && f.Body == "" // a delay and nothing else
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
		c.note(seen, a)
	}
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	switch f.Break {
	case BreakReset:
		reset(w)
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
		answer(w, a)
	}
}

// wait is over after d; false means that the client left before.
func wait(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// reset ends the connection without a word, with a TCP reset where the connection allows it.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
